//! Operands of fewer rows than their tiles, such as those of the few tokens of a decoding step.
//!
//! All SMs of an H200 together get 13 to 20 rows of 128 bytes per cycle from beside tensors, and 60 from tensors in L2; one
//! SM alone gets either at the same rate. So copies leave out the rows of a tile that lie beside the tensor: the launch
//! encodes a map with fewer rows in a box (`MapSource::shrinks`), and the barrier of a slot expects the fewer bytes.
//!
//! - *The only tile.* The boxes of an operand that stays at its rows throughout a loop have no more rows than the tensor. The
//!   other rows of the slots are zeroed before the first copy, and nothing writes them again: a tensor with fewer rows than a
//!   tile has rows in the first tile only, from its first row on.
//! - *The last tile.* If no result depends on the rows beside the tensor, the last tile of a tensor of any length has a map
//!   of its own, of the rows that are left there. What slots have of an earlier tile stays in the other rows.
//!
//! ```text
//! left = min(%M, 64)  or  (%M - 1) % 64 + 1;  fewer = (64 - left) * bytes of a row
//! producer:   if fewer > 0 { wait(zeroed) };  for programs { .. expect(full[slot], bytes - fewer) .. }
//! consumer:   if fewer > 0 { zeros into all slots; arrive(zeroed) };  for programs { .. }
//! ```

use std::collections::HashMap;

use rtc_abi::{ParamType, ValueType};
use rtc_ir::analysis::{Poly, Symbol};
use rtc_ir::{Builder, Elem, Kernel, Literal, Op, Predicate, SharedType, Type, Value};
use rtc_layout::Layout;

use super::branch::branch;
use super::producer_loop::ProducerLoop;
use super::transfers::Transfer;
use crate::PassError;
use crate::access::box_access::{BoxAccess, Fill};
use crate::access::host_values;
use crate::pass::missing;
use crate::schedule::tma::buffer_boxes::{SWIZZLED_ROWS, boxes_of};
use crate::schedule::tma::coordinates::{LastTile, Names};
use crate::schedule::tma::copy_maps::BoxRows;

/// How many rows the boxes of operands have, by the numbers of their rings, where not as many as a tile; `rings` are the
/// types of their slots.
pub(crate) fn shrinking(kernel: &Kernel, loops: &[ProducerLoop], rings: &[SharedType]) -> HashMap<usize, BoxRows> {
    let shrinks = |number: usize| {
        let all = || loops.iter().flat_map(|of| &of.transfers).filter(|transfer| transfer.ring == number);
        let mut sizes: Vec<&[Poly]> = Vec::new();
        for transfer in all() {
            let access = transfer.access()?;
            sizes.push(short_rows(kernel, transfer.buffer, access)?);
            (kernel.value_type(transfer.buffer).as_shared()? == rings[number]).then_some(())?;
        }
        // Copies of another number of rows would write the rows that have to stay zero.
        let is_one = sizes.windows(2).all(|pair| pair[0] == pair[1]);
        let of_tile = rings[number].shape[1 - all().next()?.access()?.inner];
        let only = || sizes.iter().flat_map(|sizes| sizes.iter()).all(|size| may_be_less(size, of_tile));
        match () {
            _ if !is_one => None,
            _ if all().all(|transfer| transfer.dead_beside && is_of_tiles(transfer, of_tile)) => Some(BoxRows::Left),
            _ if all().all(stays) && only() => Some(BoxRows::Tensor),
            _ => None,
        }
    };
    (0..rings.len()).filter_map(|number| Some((number, shrinks(number)?))).collect()
}

/// The sizes that bound the rows of an access, if the launch can make maps of fewer, and copies leave the others out.
fn short_rows<'a>(kernel: &Kernel, buffer: Value, access: &'a BoxAccess) -> Option<&'a [Poly]> {
    // Others have maps whose boxes the compiler does not choose, or rows whose number only the kernel knows.
    let is_of_host = access.descriptor.is_none() && !access.is_made;
    (is_of_host && access.fill == Fill::Zero && !access.may_begin_before()).then_some(())?;
    let sizes = &access.axes[1 - access.inner].sizes;
    let given = sizes.iter().flat_map(symbols).all(|symbol| is_signed_argument(kernel, symbol));
    (given && !sizes.is_empty()).then_some(())?;
    let boxes = boxes_of(kernel, buffer, access)?;
    let of_tile = boxes.ty.shape[0];
    let is_whole = sizes.iter().any(|size| is_multiple(kernel, size, of_tile));
    (!is_whole && of_tile > SWIZZLED_ROWS && boxes.parts.iter().all(|part| part[0] == 0)).then_some(&sizes[..])
}

fn symbols(poly: &Poly) -> impl Iterator<Item = Symbol> {
    poly.terms().iter().flat_map(|term| &term.symbols).copied()
}

/// Whether a size is a multiple of the rows of a tile.
fn is_multiple(kernel: &Kernel, size: &Poly, of_tile: u32) -> bool {
    let divisor = |symbol: &Symbol| match symbol {
        Symbol::Scalar(value) => host_values::divisor(kernel, *value).unwrap_or(1),
        _ => 1,
    };
    let terms = || size.terms().iter();
    terms().all(|term| term.symbols.iter().map(divisor).product::<i128>() * term.factor % i128::from(of_tile) == 0)
}

fn may_be_less(size: &Poly, of_tile: u32) -> bool {
    size.value().is_none_or(|size| size < of_tile.into())
}

/// Whether a transfer has the same rows throughout a loop.
fn stays(transfer: &Transfer) -> bool {
    let rows = transfer.access().map(|access| &access.axes[1 - access.inner].index);
    rows.is_some_and(|rows| symbols(rows).all(|symbol| !matches!(symbol, Symbol::Round(_))))
}

/// Whether the rows of a transfer begin at a multiple of those of a tile.
fn is_of_tiles(transfer: &Transfer, of_tile: u32) -> bool {
    let rows = transfer.access().map(|access| &access.axes[1 - access.inner].index);
    rows.is_some_and(|rows| rows.terms().iter().all(|term| term.factor % i128::from(of_tile) == 0))
}

fn is_signed_argument(kernel: &Kernel, symbol: Symbol) -> bool {
    let Symbol::Scalar(value) = symbol else { return false };
    let param = kernel.params.iter().find(|param| param.value == value);
    let is_signed = |ty: &ParamType| matches!(ty, ParamType::Value(ValueType::Scalar(dtype)) if dtype.is_signed());
    param.is_some_and(|param| param.hidden.is_none() && is_signed(&param.ty))
}

/// What the partitions do about operands of few rows.
pub(crate) struct ShortOperands {
    operands: Vec<ShortOperand>,
    /// Whether rows of one of them are left out.
    is_short: Value,
    /// The barrier at which each warp of the consumer arrives once it has written its zeros.
    zeroed: Value,
}

/// An operand of few rows.
struct ShortOperand {
    /// The number of its ring.
    ring: usize,
    /// The bytes of its only or its last tile that are not copied, 0 or more.
    fewer: Value,
    /// The first row of the last tile, if that has a map of its own.
    last: Option<Value>,
}

impl ShortOperands {
    /// Computes before `at`, where both partitions see it, how much is not copied; `None` without such operands.
    pub fn find(
        kernel: &mut Kernel,
        at: Op,
        (loops, rings): (&[ProducerLoop], &[SharedType]),
        rows: &HashMap<usize, BoxRows>,
        warps: u32,
    ) -> Result<Option<ShortOperands>, PassError> {
        let mut operands = Vec::new();
        for (ring, ty) in rings.iter().enumerate() {
            let Some(rows) = rows.get(&ring) else { continue };
            let mut all = loops.iter().flat_map(|of| &of.transfers).filter(|transfer| transfer.ring == ring);
            let access = all.find_map(|transfer| transfer.access()).ok_or_else(|| missing("an access"))?;
            operands.push(ShortOperand::find(kernel, at, access, (ring, *ty), *rows)?);
        }
        let [first, others @ ..] = &operands[..] else { return Ok(None) };
        let mut builder = Builder::before(kernel, at);
        let mut all = first.fewer;
        for other in others {
            all = builder.ori(all, other.fewer)?;
        }
        let none = builder.constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
        let is_short = builder.cmpi(all, none, Predicate::Gt)?;
        let zeroed = builder.barriers(1, warps)?;
        Ok(Some(ShortOperands { operands, is_short, zeroed }))
    }

    /// Whether a transfer takes the map of its last tile, if it has one; and how many bytes it leaves out.
    pub fn left_out(
        &self,
        kernel: &mut Kernel,
        before: Op,
        names: &Names<'_>,
        transfer: &Transfer,
    ) -> Result<(Option<LastTile>, Option<Value>), PassError> {
        let Some(operand) = self.operands.iter().find(|operand| operand.ring == transfer.ring) else {
            return Ok((None, None));
        };
        let Some(first) = operand.last else { return Ok((None, Some(operand.fewer))) };
        let access = transfer.access().ok_or_else(|| missing("an access"))?;
        let ty = kernel.value_type(transfer.buffer).as_shared().ok_or_else(|| missing("a buffer"))?;
        let row = names.place(kernel, before, access, &ty.shape)?.row()?;
        let mut builder = Builder::before(kernel, before);
        let is_last = builder.cmpi(row, first, Predicate::Ge)?;
        let none = builder.constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
        let fewer = builder.select(is_last, operand.fewer, none)?;
        Ok((Some(LastTile { is_last, first }), Some(fewer)))
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
        for operand in &self.operands {
            let place = rings[operand.ring];
            let ring = kernel.value_type(place).as_shared().ok_or_else(|| missing("a ring"))?;
            let zeros = zeros(kernel, end, ring)?;
            for slot in 0..ring.slots {
                let mut builder = Builder::before(kernel, end);
                let slot = builder.constant_of(Literal::Int(slot.into()), ty)?;
                let place = builder.slot(place, slot)?;
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

impl ShortOperand {
    /// Computes before `at` how many rows of the only or the last tile are left out.
    fn find(
        kernel: &mut Kernel,
        at: Op,
        access: &BoxAccess,
        (ring, tile): (usize, SharedType),
        rows: BoxRows,
    ) -> Result<ShortOperand, PassError> {
        let outer = 1 - access.inner;
        let (of_tile, bytes) = (tile.shape[outer], tile.shape[access.inner] * tile.elem.bytes());
        // Sizes do not depend on programs.
        let none = Builder::before(kernel, at).constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
        let names = Names { pids: [none; 3], grid: [none; 3], map: None };
        let sizes = &access.axes[outer].sizes;
        let sizes: Vec<Value> =
            sizes.iter().map(|size| names.sum_in(kernel, at, size, Elem::I64)).collect::<Result<_, _>>()?;
        let mut builder = Builder::before(kernel, at);
        let mut number = |number: u32, elem| builder.constant_of(Literal::Int(number.into()), Type::Scalar(elem));
        let [one, most] = [number(1, Elem::I64)?, number(of_tile, Elem::I64)?];
        let [of_tile, bytes] = [number(of_tile, Elem::I32)?, number(bytes, Elem::I32)?];
        let mut size = *sizes.first().ok_or_else(|| missing("a size"))?;
        for other in &sizes[1..] {
            size = builder.minsi(size, *other)?;
        }
        // A map has no empty dimension.
        let size = builder.maxsi(size, one)?;
        let (left, last) = if rows == BoxRows::Left {
            let before = builder.subi(size, one)?;
            let over = builder.remsi(before, most)?;
            let (first, left) = (builder.subi(before, over)?, builder.addi(over, one)?);
            (left, Some(builder.trunci(first, Elem::I32)?))
        } else {
            (builder.minsi(size, most)?, None)
        };
        let left = builder.trunci(left, Elem::I32)?;
        let left_out = builder.subi(of_tile, left)?;
        Ok(ShortOperand { ring, fewer: builder.muli(left_out, bytes)?, last })
    }
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
