//! Operands of fewer rows than their tiles, such as those of the few tokens of a decoding step.
//!
//! All SMs of an H200 together get 13 to 20 rows of 128 bytes per cycle from beside tensors, and 60 from tensors in L2; one
//! SM alone gets either at the same rate. So the box of an operand that stays at its rows throughout a loop has no more of
//! them than the tensor (`MapSource::shrinks`), and the barrier of a slot expects the fewer bytes. The other rows of the slots
//! are zeroed before the first copy, and nothing writes them again: a tensor with fewer rows than a tile has rows in the first
//! tile only, from its first row on.
//!
//! ```text
//! fewer = (64 - max(min(%M, 64), 1)) * bytes of a row
//! producer:   if fewer > 0 { wait(zeroed) };  for programs { .. expect(full[slot], bytes - fewer) .. }
//! consumer:   if fewer > 0 { zeros into all slots; arrive(zeroed) };  for programs { .. }
//! ```

use std::collections::HashSet;

use rtc_abi::{ParamType, ValueType};
use rtc_ir::analysis::{Poly, Symbol};
use rtc_ir::{Builder, Elem, Kernel, Literal, Op, Predicate, SharedType, Type, Value};
use rtc_layout::Layout;

use super::branch::branch;
use super::producer_loop::ProducerLoop;
use crate::PassError;
use crate::access::box_access::{BoxAccess, Fill};
use crate::pass::missing;
use crate::schedule::tma::buffer_boxes::{SWIZZLED_ROWS, boxes_of};
use crate::schedule::tma::coordinates::Names;

/// The rings, by number, of operands whose boxes shrink to the rows of their tensors; `rings` are the types of their slots.
pub(crate) fn shrinking(kernel: &Kernel, loops: &[ProducerLoop], rings: &[SharedType]) -> HashSet<usize> {
    let shrink = |number: &usize| {
        let all = loops.iter().flat_map(|of| &of.transfers).filter(|transfer| transfer.ring == *number);
        let mut sizes: Vec<&[Poly]> = Vec::new();
        for transfer in all {
            let Some(rows) = transfer.access().and_then(|access| rows(kernel, transfer.buffer, access)) else {
                return false;
            };
            if kernel.value_type(transfer.buffer).as_shared() != Some(rings[*number]) {
                return false;
            }
            sizes.push(rows);
        }
        // Copies of another number of rows would write the rows that have to stay zero.
        sizes.windows(2).all(|pair| pair[0] == pair[1])
    };
    (0..rings.len()).filter(shrink).collect()
}

/// The sizes that bound the rows of an access, if its boxes can shrink to them.
fn rows<'a>(kernel: &Kernel, buffer: Value, access: &'a BoxAccess) -> Option<&'a [Poly]> {
    // Others have maps whose boxes the compiler does not choose, or rows whose number only the kernel knows.
    let is_of_host = access.descriptor.is_none() && !access.is_made;
    (is_of_host && access.fill == Fill::Zero && !access.may_begin_before()).then_some(())?;
    let axis = &access.axes[1 - access.inner];
    let symbols = |poly: &Poly| poly.terms().iter().flat_map(|term| term.symbols.clone()).collect::<Vec<_>>();
    let stays = symbols(&axis.index).iter().all(|symbol| !matches!(symbol, Symbol::Round(_)));
    let given = axis.sizes.iter().flat_map(symbols).all(|symbol| is_signed_argument(kernel, symbol));
    (stays && given && !axis.sizes.is_empty()).then_some(())?;
    let boxes = boxes_of(kernel, buffer, access)?;
    let of_tile = boxes.ty.shape[0];
    let may_be_short = axis.sizes.iter().all(|size| size.value().is_none_or(|size| size < of_tile.into()));
    (may_be_short && of_tile > SWIZZLED_ROWS && boxes.parts.iter().all(|part| part[0] == 0)).then_some(&axis.sizes[..])
}

fn is_signed_argument(kernel: &Kernel, symbol: Symbol) -> bool {
    let Symbol::Scalar(value) = symbol else { return false };
    let param = kernel.params.iter().find(|param| param.value == value);
    let is_signed = |ty: &ParamType| matches!(ty, ParamType::Value(ValueType::Scalar(dtype)) if dtype.is_signed());
    param.is_some_and(|param| param.hidden.is_none() && is_signed(&param.ty))
}

/// What the partitions do about operands of few rows.
pub(crate) struct ShortOperands {
    /// The number of each ring, and the bytes of a tile that are not copied, all of them 0 or more.
    pub fewer: Vec<(usize, Value)>,
    /// Whether one of them is not 0.
    is_short: Value,
    /// The barrier at which each warp of the consumer arrives once it has written its zeros.
    zeroed: Value,
}

impl ShortOperands {
    /// Computes before `at`, where both partitions see it, how much is not copied; `None` without such operands.
    pub fn find(
        kernel: &mut Kernel,
        at: Op,
        (loops, rings): (&[ProducerLoop], &[SharedType]),
        warps: u32,
    ) -> Result<Option<ShortOperands>, PassError> {
        let mut numbers: Vec<usize> = shrinking(kernel, loops, rings).into_iter().collect();
        numbers.sort_unstable();
        let mut fewer = Vec::new();
        for number in numbers {
            let all = loops.iter().flat_map(|of| &of.transfers);
            let access = all.filter(|transfer| transfer.ring == number).find_map(|transfer| transfer.access());
            let access = access.ok_or_else(|| missing("an access"))?;
            fewer.push((number, not_copied(kernel, at, access, rings[number])?));
        }
        let [(_, first), others @ ..] = &fewer[..] else { return Ok(None) };
        let mut builder = Builder::before(kernel, at);
        let mut all = *first;
        for (_, other) in others {
            all = builder.ori(all, *other)?;
        }
        let none = builder.constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
        let is_short = builder.cmpi(all, none, Predicate::Gt)?;
        let zeroed = builder.barriers(1, warps)?;
        Ok(Some(ShortOperands { fewer, is_short, zeroed }))
    }

    /// Has the producer wait for the zeros before its loop over programs.
    pub fn producer(&self, kernel: &mut Kernel, programs: Op) -> Result<(), PassError> {
        let end = branch(kernel, programs, self.is_short)?;
        let mut builder = Builder::before(kernel, end);
        let zero = builder.constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
        let zeroed = builder.slot(self.zeroed, zero)?;
        builder.barrier_wait(zeroed, zero)?;
        Ok(())
    }

    /// Has the consumer write the zeros before its loop over programs.
    pub fn consumer(&self, kernel: &mut Kernel, programs: Op, rings: &[Value]) -> Result<(), PassError> {
        let end = branch(kernel, programs, self.is_short)?;
        let ty = Type::Scalar(Elem::I32);
        for (number, _) in &self.fewer {
            let ring = kernel.value_type(rings[*number]).as_shared().ok_or_else(|| missing("a ring"))?;
            let zeros = zeros(kernel, end, ring)?;
            for slot in 0..ring.slots {
                let mut builder = Builder::before(kernel, end);
                let slot = builder.constant_of(Literal::Int(slot.into()), ty)?;
                let place = builder.slot(rings[*number], slot)?;
                builder.local_store(zeros, place)?;
            }
        }
        let mut builder = Builder::before(kernel, end);
        let zero = builder.constant_of(Literal::Int(0), ty)?;
        let zeroed = builder.slot(self.zeroed, zero)?;
        builder.barrier_arrive(zeroed)?;
        Ok(())
    }
}

/// The bytes of a tile that are not copied because the tensor has fewer rows, as an `i32`.
fn not_copied(kernel: &mut Kernel, at: Op, access: &BoxAccess, tile: SharedType) -> Result<Value, PassError> {
    let outer = 1 - access.inner;
    let (of_tile, bytes) = (i64::from(tile.shape[outer]), tile.shape[access.inner] * tile.elem.bytes());
    let none = Builder::before(kernel, at).constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
    let names = Names { pids: [none; 3], grid: [none; 3], map: None };
    let long = Type::Scalar(Elem::I64);
    let mut rows = Builder::before(kernel, at).constant_of(Literal::Int(of_tile), long)?;
    for size in &access.axes[outer].sizes {
        let size = names.sum_in(kernel, at, size, Elem::I64)?;
        rows = Builder::before(kernel, at).minsi(rows, size)?;
    }
    let mut builder = Builder::before(kernel, at);
    // A map has no empty dimension.
    let one = builder.constant_of(Literal::Int(1), long)?;
    let rows = builder.maxsi(rows, one)?;
    let rows = builder.trunci(rows, Elem::I32)?;
    let of_tile = builder.constant_of(Literal::Int(of_tile), Type::Scalar(Elem::I32))?;
    let left_out = builder.subi(of_tile, rows)?;
    let bytes = builder.constant_of(Literal::Int(bytes.into()), Type::Scalar(Elem::I32))?;
    Ok(builder.muli(left_out, bytes)?)
}

/// Bytes that a thread writes at a time.
const WIDTH: u32 = 16;

/// A tile of zeros for a slot of a ring, 16 bytes side by side in each thread.
fn zeros(kernel: &mut Kernel, before: Op, ring: SharedType) -> Result<Value, PassError> {
    let inner = usize::from(kernel.slot_layout(ring).as_nvmma(ring.elem.bits()).is_none_or(|(_, inner)| inner != 0));
    let width = (WIDTH / ring.elem.bytes()).min(ring.shape[inner]);
    let lanes = (ring.shape[inner] / width).min(32);
    let ordered = |along: u32, across: u32| if inner == 1 { [across, along] } else { [along, across] };
    let warps = kernel.group_of(before).warps;
    let order = [inner as u32, 1 - inner as u32];
    let layout =
        Layout::blocked(&ring.shape, &ordered(width, 1), &ordered(lanes, 32 / lanes), &ordered(1, warps), &order);
    let layout = kernel.intern_layout(layout);
    let ty = Type::tile(ring.elem, ring.shape).with_layout(Some(layout));
    let is_float = ring.elem.num().is_some_and(|elem| elem.is_float());
    let zero = if is_float { Literal::float(0.0) } else { Literal::Int(0) };
    Ok(Builder::before(kernel, before).constant_of(zero, ty)?)
}
