//! Element-wise operations: the evaluation of the operation's row on each slot, with short cuts for common ones.

use std::rc::Rc;

use smallvec::SmallVec;

use super::FindingKind;
use super::machine::{Machine, Stop};
use super::value::Data;
use crate::ops::eval::sign_extend;
use crate::{Elem, EvalContext, Op, OpKind, Type};

type Eval = fn(&EvalContext<'_>, &[u64]) -> u64;

impl Machine<'_> {
    /// Evaluates an element-wise operation.
    pub(crate) fn elementwise(&mut self, op: Op, eval: Eval) -> Result<(), Stop> {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let elems: SmallVec<[Elem; 4]> =
            data.operands.iter().map(|v| kernel.value_type(*v).elem().unwrap_or(Elem::I64)).collect();
        let result = self.result_type(op).elem().unwrap_or(Elem::I64);
        let operands: SmallVec<[Data; 4]> = data.operands.iter().map(|v| self.get(*v)).collect();
        let count = operands.iter().find_map(|d| match d {
            Data::Many(slots) => Some(slots.len()),
            _ => None,
        });
        self.tick(count.unwrap_or(1))?;
        self.check_overflow(op, &operands, count);
        let cx = EvalContext { kind: &data.kind, operands: &elems, result };
        let Some(count) = count else {
            let bits: SmallVec<[u64; 4]> = operands.iter().map(|d| d.slot(0)).collect();
            self.set_result(op, Data::Scalar(eval(&cx, &bits)));
            return Ok(());
        };
        let slots = match (&operands[..], shortcut(&data.kind, elems[0])) {
            ([a, b], Some(short)) => binary(a, b, count, short),
            ([a], _) => (0..count).map(|i| eval(&cx, &[a.slot(i)])).collect(),
            ([a, b], _) => binary(a, b, count, |a, b| eval(&cx, &[a, b])),
            ([a, b, c], _) => (0..count).map(|i| eval(&cx, &[a.slot(i), b.slot(i), c.slot(i)])).collect(),
            (all, _) => (0..count).map(|i| eval(&cx, &all.iter().map(|d| d.slot(i)).collect::<Vec<u64>>())).collect(),
        };
        self.set_result(op, Data::many(slots));
        Ok(())
    }

    /// Notes 32-bit sums, differences and products that wrap on the way to an address.
    fn check_overflow(&mut self, op: Op, operands: &[Data], count: Option<usize>) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let exact: fn(i64, i64) -> i64 = match data.kind {
            OpKind::AddI {} => |a, b| a + b,
            OpKind::SubI {} => |a, b| a - b,
            OpKind::MulI {} => |a, b| a * b,
            _ => return,
        };
        let result = data.results[0];
        let ty = kernel.value_type(result);
        if ty.elem() != Some(Elem::I32) || !self.addresses[result] {
            return;
        }
        let wraps = |i: usize| {
            let [a, b] = [0, 1].map(|k| sign_extend(operands[k].slot(i), Elem::I32));
            i32::try_from(exact(a, b)).is_err()
        };
        if let Some(slot) = (0..count.unwrap_or(1)).find(|i| wraps(*i)) {
            self.find(op, FindingKind::AddressOverflow, ty, slot);
        }
    }
}

fn binary(a: &Data, b: &Data, count: usize, f: impl Fn(u64, u64) -> u64) -> Vec<u64> {
    let both = |a: &Rc<Vec<u64>>, b: &Rc<Vec<u64>>| a.iter().zip(b.iter()).map(|(a, b)| f(*a, *b)).collect();
    match (a, b) {
        (Data::Many(a), Data::Many(b)) => both(a, b),
        _ => (0..count).map(|i| f(a.slot(i), b.slot(i))).collect(),
    }
}

/// The same as the row's evaluation, without looking at types for each element.
fn shortcut(kind: &OpKind, elem: Elem) -> Option<fn(u64, u64) -> u64> {
    fn float(a: u64, b: u64, f: fn(f32, f32) -> f32) -> u64 {
        let x = f(f32::from_bits(a as u32), f32::from_bits(b as u32));
        if x.is_nan() { 0x7fff_ffff } else { u64::from(x.to_bits()) }
    }
    Some(match (kind, elem) {
        (OpKind::AddI {}, Elem::Num(crate::Scalar::I32)) => |a, b| u64::from((a as u32).wrapping_add(b as u32)),
        (OpKind::MulI {}, Elem::Num(crate::Scalar::I32)) => |a, b| u64::from((a as u32).wrapping_mul(b as u32)),
        (OpKind::AndI {}, _) => |a, b| a & b,
        (OpKind::AddF {}, Elem::Num(crate::Scalar::F32)) => |a, b| float(a, b, |a, b| a + b),
        (OpKind::SubF {}, Elem::Num(crate::Scalar::F32)) => |a, b| float(a, b, |a, b| a - b),
        (OpKind::MulF {} | OpKind::Rescale {}, Elem::Num(crate::Scalar::F32)) => |a, b| float(a, b, |a, b| a * b),
        _ => return None,
    })
}

/// Whether all operations of a combine block can be evaluated on many scalars at once.
pub(crate) fn is_flat(kernel: &crate::Kernel, block: crate::Block) -> bool {
    kernel.ops(block).all(|op| {
        let data = kernel.op(op);
        let each = matches!(data.kind.spec().eval, crate::Evaluate::Each(_));
        (each && !matches!(kernel.value_type(data.results[0]), Type::Tile(_)))
            || matches!(data.kind, OpKind::Constant { .. } | OpKind::Yields {})
    })
}
