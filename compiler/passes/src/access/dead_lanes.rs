//! Dead lanes: the elements of an operand or an accumulator that never reach memory, so that their values do not matter.

use std::collections::HashSet;

use rtc_ir::analysis::{Bound, BoundSide, Poly, Symbol, Wraps};
use rtc_ir::{OpKind, Traits, Value, regions, view};

use super::box_analysis::BoxAnalysis;

/// Whether the elements of an operand of dots in a buffer whose place along `axis` is `size` or more, counted from `index`,
/// never reach memory.
pub(crate) fn are_dead_in(
    known: &mut BoxAnalysis<'_>,
    buffer: Value,
    axis: usize,
    (index, size): (&Poly, &Poly),
) -> bool {
    let kernel = known.kernel;
    let mut work = vec![(buffer, axis)];
    while let Some((place, axis)) = work.pop() {
        for user in kernel.users(place) {
            let side = kernel.op(user).operands.iter().position(|operand| *operand == place);
            match (kernel.kind(user), side) {
                (OpKind::CopyAsync { .. }, _) => {}
                (OpKind::SharedTrans { order }, _) => {
                    let Some(to) = order.iter().position(|from| *from as usize == axis) else { return false };
                    work.push((kernel.result(user, 0), to));
                }
                (OpKind::LocalLoad {} | OpKind::CopyAwait {}, _) => work.push((kernel.result(user, 0), axis)),
                (kind, _) if kind.spec().traits.has(Traits::ELEMENTWISE.and(Traits::PURE)) => {
                    work.push((kernel.result(user, 0), axis));
                }
                // Rows of the left operand are rows of the sum, columns of the right one its columns.
                (OpKind::Mma {}, Some(side)) if side < 2 && side == axis => {
                    let mma = view::Mma::at(kernel, user);
                    let twice = mma.lhs() == mma.rhs();
                    if twice || !are_dead(known, kernel.result(user, 0), axis, index, size) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }
    true
}

/// Whether the elements of `sum` along `axis` whose place is `size` or more, counted from `index`, never reach memory: all
/// ways lead through element-wise operations into stores with a mask that leaves them out.
fn are_dead(known: &mut BoxAnalysis<'_>, sum: Value, axis: usize, index: &Poly, size: &Poly) -> bool {
    let kernel = known.kernel;
    let mut seen: HashSet<(Value, usize)> = HashSet::new();
    let mut work = vec![(sum, axis)];
    while let Some((value, axis)) = work.pop() {
        if !seen.insert((value, axis)) {
            continue;
        }
        for user in kernel.users(value) {
            let kind = kernel.kind(user);
            let traits = kind.spec().traits;
            let operands = &kernel.op(user).operands;
            let places = (0..operands.len()).filter(|place| operands[*place] == value);
            for place in places {
                match kind {
                    _ if regions::is_handed(kernel, user, place) => {
                        work.extend(regions::targets(kernel, user, place).into_iter().map(|target| (target, axis)));
                    }
                    OpKind::Mma {} | OpKind::MmaAsync {} | OpKind::Dot { .. } if place == 2 => {
                        work.push((kernel.result(user, 0), axis));
                    }
                    OpKind::ConvertLayout {} => work.push((kernel.result(user, 0), axis)),
                    OpKind::Trans { order } => {
                        let Some(to) = order.iter().position(|from| *from as usize == axis) else { return false };
                        work.push((kernel.result(user, 0), to));
                    }
                    OpKind::Store { .. } | OpKind::AtomicRmw { .. } if place == 1 => {
                        let Some(mask) = kernel.mask(user) else { return false };
                        let mask = known.affine.bounds(mask);
                        let leaves_out = |bound: &Bound| {
                            bound.side == BoundSide::Below
                                && bound.wraps != Wraps::Possible
                                && bound.bound == *size
                                && bound
                                    .offset
                                    .split(Symbol::Dim(axis as u8))
                                    .is_some_and(|(by, offset)| by.value() == Some(1) && offset == *index)
                        };
                        if !mask.along(axis).any(leaves_out) {
                            return false;
                        }
                    }
                    _ if traits.has(Traits::ELEMENTWISE.and(Traits::PURE)) && !traits.has(Traits::NESTED) => {
                        work.push((kernel.result(user, 0), axis));
                    }
                    _ => return false,
                }
            }
        }
    }
    true
}
