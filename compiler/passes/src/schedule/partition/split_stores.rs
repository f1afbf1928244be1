//! Results that threads store directly, as where a list says which rows they are, but that change their layout through shared
//! memory for that: in pieces of columns, one after the other through the same memory, which is left for slots of the rings.
//!
//! ```text
//! %y = convert_layout %x : tile<128x256xbf16, #rows>         %x0, %x1 = halves of %x
//! store %p, %y                                          →    %y0 = convert_layout %x0 : tile<128x128xbf16, #half>
//!                                                            store %p0, %y0
//!                                                            .. the same with %x1
//! ```
//!
//! Pointers and masks are computed again in a layout of which each thread has its part of every piece.

use std::collections::HashSet;

use rtc_ir::{Block, Builder, Kernel, Op, OpKind, Value, regions, view};
use rtc_layout::Layout;

use super::transfers::gathered_tiles;
use crate::PassError;
use crate::laid::rematerialize::{self, Remade};
use crate::pass::missing;
use crate::schedule::tma::tensor_maps::{parts, stored_tile};

/// The axis along which pieces follow each other.
const COLUMNS: usize = 1;

/// How a store is divided.
struct Division {
    pieces: u32,
    /// That of all pieces together, in the form in which they are stored.
    layout: Layout,
}

/// Divides the stores in a block whose results take more than `most` bytes of shared memory.
pub(crate) fn split(kernel: &mut Kernel, block: Block, most: u32) -> Result<(), PassError> {
    for op in rtc_ir::walk_block(kernel, block) {
        if let Some(division) = division(kernel, op, most) {
            divide(kernel, op, &division)?;
        }
    }
    Ok(())
}

fn division(kernel: &Kernel, store: Op, most: u32) -> Option<Division> {
    let &OpKind::Store { vector, descriptor: false, .. } = kernel.kind(store) else { return None };
    let (value, tile) = (kernel.operand(store, 1), stored_tile(kernel, store));
    (value != tile && kernel.users(value) == [store]).then_some(())?;
    let (elem, from) = (kernel.value_type(tile).elem()?, kernel.layout_of(tile)?);
    let &[rows, columns] = from.shape() else { return None };
    let bytes = rows * columns * elem.bytes();
    let pieces = bytes.div_ceil(most).next_power_of_two();
    // Rows of a piece are whole sectors of the memory.
    (pieces > 1 && columns / pieces * elem.bytes() >= 128).then_some(())?;
    let bits = pieces.trailing_zeros() as usize;
    let own = from.bases().register.iter().filter(|basis| basis[COLUMNS] >= columns / pieces).count();
    (own == bits).then_some(())?;
    let width = vector.unwrap_or(1);
    let lanes = (columns / pieces / width).min(32);
    let warps = kernel.group_of(store).warps;
    let again = [kernel.operand(store, 0)].into_iter().chain(kernel.mask(store));
    (lanes > 0 && again.into_iter().all(|value| can_be_repeated(kernel, value))).then_some(())?;
    let layout = Layout::blocked(&[rows, columns], &[1, width], &[32 / lanes, lanes], &[warps, 1], &[1, 0]);
    layout.copies().none().then_some(Division { pieces, layout })
}

/// Whether a value follows from loads and operations that give the same in another layout, without loops or branches.
fn can_be_repeated(kernel: &Kernel, value: Value) -> bool {
    let (mut work, mut seen) = (vec![value], HashSet::new());
    while let Some(value) = work.pop() {
        if kernel.value_type(value).shape().is_none() || !seen.insert(value) {
            continue;
        }
        let Some(op) = kernel.def_op(value).filter(|_| regions::slot_of(kernel, value).is_none()) else { return false };
        if !gathered_tiles::can_be_repeated(kernel, op) {
            return false;
        }
        work.extend(&kernel.op(op).operands);
    }
    true
}

fn divide(kernel: &mut Kernel, store: Op, division: &Division) -> Result<(), PassError> {
    let Division { pieces, layout } = division;
    let (tile, kind) = (stored_tile(kernel, store), kernel.kind(store).clone());
    let mut made = Remade::new();
    let mut pieces_of = |kernel: &mut Kernel, value: Value| {
        let again =
            rematerialize::again(kernel, &mut made, store, value, layout).ok_or_else(|| missing("an address"))?;
        parts(kernel, store, again, *pieces, COLUMNS)
    };
    let pointers = pieces_of(kernel, view::Store::at(kernel, store).pointer())?;
    let masks = kernel.mask(store).map(|mask| pieces_of(kernel, mask)).transpose()?;
    let values = parts(kernel, store, tile, *pieces, COLUMNS)?;
    for (number, (pointer, value)) in pointers.into_iter().zip(values).enumerate() {
        let ty = kernel.value_type(value).with_layout(kernel.value_type(pointer).layout());
        let mut builder = Builder::before(kernel, store);
        let value = builder.convert_to(value, ty)?;
        let mask = masks.as_ref().map(|masks| masks[number]);
        builder.build(kind.clone(), &[pointer, value], &[mask], &[], &[], &[])?;
    }
    kernel.erase(store);
    Ok(())
}
