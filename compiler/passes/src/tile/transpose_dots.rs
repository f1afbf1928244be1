//! Swaps and transposes the operands of dots whose operand B `wgmma` could not read from shared memory: elements of 32
//! bits must have K innermost there, and an operand B that is loaded with N innermost has not; one that is cast after
//! the load has another type in shared memory. As operand A of the transposed dot it comes from registers.
//!
//! ```text
//! for_range .. (%acc) {                      for_range .. (%acc_t) {
//!   %s = dot %a, %b, %acc           →          %s = dot trans(%b), trans(%a), %acc_t
//!   yield %s                                   yield %s
//! }                                          }
//! .. %accumulator ..                                 .. trans(%accumulator) ..
//! ```
//!
//! Only if the warps will likely be specialized (`specialize_warps`), so that copies load both operands.

use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{Builder, Elem, Kernel, Literal, Op, OpKind, Phase, Precision, Type, Value, constant_bits, regions, view};

use crate::access::addresses::loads_of_dots;
use crate::access::specializable::may_specialize;
use crate::laid::accelerate_dot::{cast_from, runs_along};
use crate::{Pass, PassContext, PassError, matrix_unit};

/// The pass.
pub const PASS: Pass = Pass { name: "transpose-dots", needs: Phase::Tile, leaves: Phase::Tile, run };

/// Rows that a `wgmma` dot has at least.
const LEAST_ROWS: u32 = 64;
/// Columns of the result, which are rows of the transposed one: with more, each warp has too few fragments in flight.
const LEAST_COLUMNS: u32 = 8;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let of_kind = |op: &Op| {
        let OpKind::Dot { precision, .. } = kernel.kind(*op) else { return false };
        let dot = view::Dot::at(kernel, *op);
        match kernel.value_type(dot.lhs()).elem() {
            Some(Elem::F32) => *precision == Precision::Tf32,
            Some(Elem::F16 | Elem::BF16) => cast_from(kernel, dot.rhs()).is_some(),
            _ => false,
        }
    };
    let all: Vec<Op> = rtc_ir::walk(kernel).into_iter().filter(of_kind).collect();
    if all.is_empty() || !matrix_unit::has_async(cx.target) || !cx.structure.stages() {
        return Ok(());
    }
    let infos = axis_info(kernel);
    let transposed: Vec<Transposition> =
        all.into_iter().filter_map(|op| Transposition::of(kernel, &infos, op)).collect();
    drop(infos);
    for turn in transposed {
        if may_specialize(kernel, cx, &loads_of_dots(kernel, turn.of))? {
            turn.apply(kernel)?;
        }
    }
    Ok(())
}

/// Whether a value is loaded where it is used; copies bring matrices as they are or transposed.
fn is_loaded(kernel: &Kernel, value: Value) -> bool {
    let source = kernel.source_through(value, |kind| matches!(kind, OpKind::Hint { .. } | OpKind::Trans { .. }));
    kernel.def_op(source).is_some_and(|op| matches!(kernel.kind(op), OpKind::Load { .. }))
}

/// The transpose of a value, taken before its cast if there is one.
fn transposed(builder: &mut Builder<'_>, value: Value) -> Result<Value, PassError> {
    let kernel = builder.kernel();
    let cast = kernel.def_op(value).filter(|op| kernel.kind(*op).is_unary());
    let Some(cast) = cast else { return Ok(builder.trans(value, vec![1, 0])?) };
    let (kind, source, elem) = (kernel.kind(cast).clone(), kernel.operand(cast, 0), kernel.value_type(value).elem());
    let source = transposed(builder, source)?;
    let missing = || PassError::Internal("transposing a dot: a cast".into());
    let shape = builder.kernel().value_type(source).shape().ok_or_else(missing)?;
    let ty = Type::tile(elem.ok_or_else(missing)?, shape);
    let made = builder.build(kind, &[source], &[], &[], &[], &[ty])?;
    Ok(builder.kernel().result(made, 0))
}

/// A dot in a loop that only adds to one accumulator.
struct Transposition {
    dot: Op,
    of: Op,
    /// The number of the accumulator among what the loop carries.
    number: usize,
}

impl Transposition {
    fn of(kernel: &Kernel, infos: &AxisInfos, dot: Op) -> Option<Transposition> {
        let [lhs, rhs, acc] = kernel.dot_operands(dot)?;
        let shape = kernel.value_type(acc).shape().filter(|shape| shape.rank() == 2)?;
        let suits = shape[1] >= LEAST_ROWS && shape[0] >= LEAST_COLUMNS && kernel.options.num_warps.is_multiple_of(4);
        let suits = suits
            && match cast_from(kernel, rhs) {
                Some(source) => is_loaded(kernel, lhs) && is_loaded(kernel, source),
                None => {
                    runs_along(kernel, infos, lhs, 1)
                        && !runs_along(kernel, infos, rhs, 0)
                        && runs_along(kernel, infos, rhs, 1)
                }
            };
        suits.then_some(())?;
        let of = regions::slot_of(kernel, acc)?.op;
        let OpKind::ForRange { .. } = kernel.kind(of) else { return None };
        let body = kernel.op(of).blocks[0];
        let number = kernel.block(body).args.iter().skip(1).position(|arg| *arg == acc)?;
        let end = kernel.terminator(body)?;
        let result = kernel.result(dot, 0);
        let alone =
            kernel.users(acc) == [dot] && kernel.users(result) == [end] && kernel.variadic(end)[number] == result;
        (alone && kernel.op(dot).parent == Some(body)).then_some(Transposition { dot, of, number })
    }

    fn apply(&self, kernel: &mut Kernel) -> Result<(), PassError> {
        let Transposition { dot, of, number } = *self;
        let missing = || PassError::Internal("transposing a dot: a loop".into());
        let [lhs, rhs, acc] = kernel.dot_operands(dot).ok_or_else(missing)?;
        let start = kernel.variadic(of)[number];
        let mut builder = Builder::before(kernel, of);
        let start = match constant_bits(builder.kernel(), start) {
            Some(0) => {
                let ty = builder.kernel().value_type(start);
                let shape =
                    ty.shape().and_then(|shape| rtc_ir::Shape::new(&[shape[1], shape[0]])).ok_or_else(missing)?;
                builder.constant_of(Literal::Int(0), Type::tile(ty.elem().ok_or_else(missing)?, shape))?
            }
            _ => builder.trans(start, vec![1, 0])?,
        };
        let (carried, result) = kernel.carry(of, start).ok_or_else(missing)?;
        let kind = kernel.kind(dot).clone();
        let mut builder = Builder::before(kernel, dot);
        let (left, right) = (transposed(&mut builder, rhs)?, builder.trans(lhs, vec![1, 0])?);
        let made = builder.build(kind, &[left, right, carried], &[], &[], &[], &[])?;
        let sum: Value = kernel.result(made, 0);
        let end = kernel.terminator(kernel.op(of).blocks[0]).ok_or_else(missing)?;
        kernel.set_operand(end, kernel.op(end).operands.len() - 1, sum);
        let old = kernel.result(of, number);
        let back = Builder::after(kernel, of).trans(result, vec![1, 0])?;
        if let Some(name) = kernel.value(old).name.clone() {
            kernel.name_value(sum, &name);
        }
        kernel.replace_uses(old, back);
        // The old loop-carried value is passed on unchanged, and DCE removes it.
        kernel.replace_uses(kernel.result(dot, 0), acc);
        kernel.erase(dot);
        Ok(())
    }
}
