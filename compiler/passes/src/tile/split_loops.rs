//! Splits a loop in two: iterations whose masks are all true, unrolled, and the rest as it was.
//!
//! ```text
//! for_range 0, %n, 1024 ^(%i) {            for_range 0, %full, 2048 ^(%i) {
//!   %m = cmpi %i + arange, %n lt             load ..                          masks are gone
//!   load .., mask = %m               →       load .. of the iteration at %i + 1024
//! }                                        }
//!                                          for_range %full, %n, 1024 ^(%i) { .. as before }
//! ```
//!
//! Without masks a load has no registers to clear, and the loads of several iterations are in flight together: of up to
//! eight where nothing keeps them in order, such as a store or a reduction, else of two. After four or eight iterations at a
//! time, two at a time follow, so that a short rest does not wait for each iteration alone. A loop with few short iterations
//! is fully unrolled in a branch next to the loop: there the bounds imply that their addresses do not overlap, so that all
//! loads can be done before the first store. Loops with dots are left to the passes that pipeline them, but where masks choose
//! between elements of tiles, as for causal attention: then the first loop has no masks, or the masks are under a branch. Where
//! loads take their addresses from other loads, four iterations are taken at a time with their masks. `loop_unroll_factor` is
//! obeyed anywhere; if the body has a branch for the iteration that is cut off by the end, the first loop goes without it.

mod body;
mod branches;
mod guards;

use rtc_ir::{Block, Builder, Elem, Kernel, Literal, Op, OpKind, Phase, Position, Predicate, Type, Value, view};

use crate::{Pass, PassContext, PassError};
use body::Body;
use guards::Guard;

/// The pass.
pub const PASS: Pass = Pass { name: "split-loops", needs: Phase::Tile, leaves: Phase::Tile, run };

/// The most operations of a thread, estimated, that the copies of a body may have together.
const MAX_COPIES: u64 = 1500;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let mut changed = false;
    // Inner loops first: a copy of an outer loop then has them as they are to be.
    for op in rtc_ir::walk(kernel).into_iter().rev() {
        if let Some(plan) = SplitPlan::of(kernel, op) {
            changed |= match plan.most {
                _ if plan.of_selects && branches::suits(kernel, cx, op, &plan)? => branches::apply(kernel, op, &plan)?,
                Some(most) => take_all(kernel, op, &plan, most)?,
                None => {
                    let is_split = split(kernel, op, &plan)?;
                    if is_split && plan.splits_rest && kernel.op(op).parent.is_some() {
                        let lower = view::ForRange::at(kernel, op).lower();
                        split(kernel, op, &SplitPlan { lower, factor: 2, ..plan })?;
                    }
                    is_split
                }
            };
        }
    }
    if changed {
        super::simplify::run(kernel, cx)?;
    }
    Ok(())
}

/// How a loop is to be split.
struct SplitPlan {
    lower: Value,
    upper: Value,
    step: i64,
    /// Iterations of the source in one of the first loop.
    factor: i64,
    /// Where there are no more than so many: why.
    most: Option<Most>,
    /// Masks that hold everywhere up to a bound.
    guards: Vec<Guard>,
    /// Whether the rest is split again, into two iterations at a time.
    splits_rest: bool,
    /// Whether the masks only choose between elements, in a loop with dots.
    of_selects: bool,
}

impl SplitPlan {
    /// A loop that is left as it is, if it may be split.
    fn new(kernel: &Kernel, op: Op) -> Option<SplitPlan> {
        let OpKind::ForRange { unsigned: false, .. } = kernel.kind(op) else { return None };
        let range = view::ForRange::at(kernel, op);
        let (lower, upper, step) = (range.lower(), range.upper(), range.step());
        let step = i64::from(rtc_ir::constant_bits(kernel, step)? as u32 as i32);
        (kernel.value_type(lower) == Type::Scalar(Elem::I32) && step > 0).then_some(())?;
        let (most, guards, splits_rest, of_selects) = Default::default();
        Some(SplitPlan { lower, upper, step, factor: 1, most, guards, splits_rest, of_selects })
    }

    /// The plan for a loop that gains by it.
    fn of(kernel: &Kernel, op: Op) -> Option<SplitPlan> {
        let mut plan = SplitPlan::new(kernel, op)?;
        let OpKind::ForRange { hints, .. } = kernel.kind(op) else { return None };
        if let Some(factor) = hints.unroll {
            plan.factor = i64::from(factor.max(1));
            plan.guards = guards::of_branches(kernel, op);
            let few = u64::from(factor) * operations(kernel, op) <= MAX_COPIES;
            return (factor > 1 && few && plan.fits()).then_some(plan);
        }
        let Some(body) = Body::of(kernel, op) else {
            plan.guards = guards::of_selects(kernel, op);
            plan.of_selects = true;
            return (!plan.guards.is_empty() && body::of_dots(kernel, op)).then_some(plan);
        };
        if !body.keeps_masks() {
            plan.guards = guards::of_loop(kernel, op);
        }
        plan.factor = body.factor(hints.num_stages.is_some_and(|stages| stages > 1));
        if body.is_short() {
            plan.most = plan.most(kernel).filter(|most| {
                let iterations = most.iterations(plan.step);
                plan.guards.is_empty() && iterations > 2 && body.has_few(iterations)
            });
            plan.factor = plan.most.map_or(plan.factor, |most| most.iterations(plan.step));
        }
        if !plan.fits() {
            (plan.factor, plan.most) = (1, None);
        }
        plan.splits_rest = plan.most.is_none() && plan.factor > 2 && !body.keeps_masks();
        (plan.factor > 1 || !plan.guards.is_empty() && body.may_be_copied(1)).then_some(plan)
    }

    /// How far apart the bounds are at most: they are constant, or the upper one is no more than a constant above the lower
    /// one. (Where that sum wraps, there is no iteration.)
    fn most(&self, kernel: &Kernel) -> Option<Most> {
        let constant = |value| rtc_ir::constant_int(kernel, value);
        let above = |sum: Value| {
            let sum = view::AddI::defining(kernel, sum)?;
            let (a, b) = (sum.lhs(), sum.rhs());
            if a == self.lower { constant(b) } else { constant(a).filter(|_| b == self.lower) }
        };
        let ends = (constant(self.lower), constant(self.upper));
        let most = match view::MinSI::defining(kernel, self.upper) {
            _ if let (Some(lower), Some(upper)) = ends => Some(Most { length: upper - lower, cut: None }),
            Some(least) => {
                let (a, b) = (least.lhs(), least.rhs());
                [(a, b), (b, a)].into_iter().find_map(|cut| Some(Most { length: above(cut.0)?, cut: Some(cut) }))
            }
            None => above(self.upper).map(|length| Most { length, cut: None }),
        };
        most.filter(|most| most.length > 0)
    }

    /// Whether the step of the first loop is a number of 32 bits.
    fn fits(&self) -> bool {
        i32::try_from(self.step.saturating_mul(self.factor)).is_ok()
    }
}

/// How far apart the bounds of a loop are at most.
#[derive(Clone, Copy)]
struct Most {
    length: i64,
    /// The upper bound that is so far above the lower one, and what may cut it off.
    cut: Option<(Value, Value)>,
}

impl Most {
    fn iterations(&self, step: i64) -> i64 {
        (self.length - 1) / step + 1
    }
}

fn operations(kernel: &Kernel, op: Op) -> u64 {
    rtc_ir::walk_block(kernel, kernel.op(op).blocks[0]).len() as u64
}

/// Takes all iterations at once where nothing cuts them off; else there is the loop.
fn take_all(kernel: &mut Kernel, op: Op, plan: &SplitPlan, most: Most) -> Result<bool, PassError> {
    let body = kernel.op(op).blocks[0];
    let (carried, results) = (kernel.variadic(op).to_vec(), kernel.op(op).results.clone());
    let types: Vec<Type> = carried.iter().map(|value| kernel.value_type(*value)).collect();
    let [some, rest] = [(); 2].map(|()| kernel.new_block());
    let mut build = Builder::before(kernel, op);
    let runs = match most.cut {
        Some((upper, cut)) => {
            let is_whole = build.cmpi(upper, cut, Predicate::Le)?;
            let is_above = build.cmpi(plan.lower, upper, Predicate::Lt)?;
            build.andi(is_whole, is_above)?
        }
        None => build.cmpi(plan.lower, plan.upper, Predicate::Lt)?,
    };
    let branch = build.build(OpKind::IfElse {}, &[runs], &[], &[], &[some, rest], &types)?;
    fill(kernel, body, some, plan.lower, carried, plan)?;
    for (old, new) in results.iter().zip(kernel.op(branch).results.clone()) {
        kernel.replace_uses(*old, new);
    }
    kernel.move_op(op, Position::End(rest));
    Builder::at_end(kernel, rest).yield_values(&results)?;
    Ok(true)
}

/// Takes so many iterations of a loop at a time, and what is left one by one; false if its bounds or its step do not allow it.
pub(crate) fn unroll(kernel: &mut Kernel, op: Op, factor: i64) -> Result<bool, PassError> {
    match SplitPlan::new(kernel, op).map(|plan| SplitPlan { factor, ..plan }).filter(SplitPlan::fits) {
        Some(plan) => split(kernel, op, &plan),
        None => Ok(false),
    }
}

fn split(kernel: &mut Kernel, op: Op, plan: &SplitPlan) -> Result<bool, PassError> {
    let body = kernel.op(op).blocks[0];
    let lower = plan.lower;
    let mut build = Builder::before(kernel, op);
    let Some(middle) = middle(&mut build, plan)? else { return Ok(false) };
    let carried = build.kernel().variadic(op).to_vec();
    let wide = build.constant_of(Literal::Int(plan.step * plan.factor), Type::Scalar(Elem::I32))?;
    let block = copy_arguments(build.kernel_mut(), body);
    let kind = build.kernel().kind(op).clone();
    let first = build.build(kind, &[lower, middle, wide], &[], &carried, &[block], &[])?;
    if let OpKind::ForRange { hints, .. } = build.kernel_mut().kind_mut(first) {
        hints.unroll = None;
    }
    let args = kernel.block(block).args.clone();
    fill(kernel, body, block, args[0], args[1..].to_vec(), plan)?;

    if let OpKind::ForRange { hints, .. } = kernel.kind_mut(op) {
        hints.unroll = None;
    }
    let results = kernel.op(first).results.clone();
    let ends = [middle, plan.upper].map(|end| rtc_ir::known_bits(kernel, end).map(|bits| bits as u32 as i32));
    if let [Some(middle), Some(upper)] = ends
        && middle >= upper
    {
        for (old, new) in kernel.op(op).results.clone().into_iter().zip(results) {
            kernel.replace_uses(old, new);
        }
        kernel.erase(op);
        return Ok(true);
    }
    kernel.set_operand(op, 0, middle);
    for (index, result) in results.into_iter().enumerate() {
        kernel.set_operand(op, 3 + index, result);
    }
    Ok(true)
}

/// A block with the arguments of another one.
fn copy_arguments(kernel: &mut Kernel, body: Block) -> Block {
    let block = kernel.new_block();
    for arg in kernel.block(body).args.clone() {
        let name = kernel.value(arg).name.clone();
        kernel.add_arg(block, kernel.value_type(arg), name);
    }
    block
}

/// Fills the block of the first loop with copies of the body, one iteration after the other from the one at `first`, whose
/// masks hold.
fn fill(
    kernel: &mut Kernel,
    body: Block,
    block: Block,
    first: Value,
    mut carried: Vec<Value>,
    plan: &SplitPlan,
) -> Result<(), PassError> {
    let of_body = kernel.block(body).args.clone();
    for iteration in 0..plan.factor {
        let mut index = first;
        if iteration > 0 {
            let mut build = Builder::at_end(kernel, block);
            let distance = build.constant_of(Literal::Int(iteration * plan.step), Type::Scalar(Elem::I32))?;
            index = build.addi(index, distance)?;
        }
        let mut map: rtc_ir::ValueMap = of_body[1..].iter().copied().zip(carried).collect();
        map.insert(of_body[0], index);
        kernel.clone_ops(body, &mut map, Position::End(block));
        for guard in &plan.guards {
            if let Some(mask) = map.get(&guard.mask).and_then(|copy| kernel.def_op(*copy)) {
                kernel.make_constant(mask, Literal::Int(guard.holds.into()));
            }
        }
        let Some(end) = kernel.terminator(block) else {
            return Err(PassError::Internal("the body of a loop has no terminator".into()));
        };
        carried = kernel.variadic(end).to_vec();
        if iteration + 1 < plan.factor {
            kernel.erase(end);
        }
    }
    Ok(())
}

impl SplitPlan {
    /// Whether the loop starts at zero and the masks are all true in exactly the whole steps below its end, as in most
    /// loops over a row.
    fn is_plain(&self, kernel: &Kernel) -> bool {
        let below_end = |guard: &Guard| guard.is_below(self.upper) && guard.scale == 1 && guard.reach < self.step;
        rtc_ir::constant_bits(kernel, self.lower) == Some(0)
            && self.guards.iter().all(below_end)
            && self.guards.iter().any(|guard| guard.reach == self.step - 1)
    }
}

/// The index at which the second loop starts: after the last whole step of the first. `None` if there is no such step.
/// Computed in 64 bits where something could overflow. It is a multiple of what the lower bound and the step are multiples of:
/// with that the second loop accesses memory as wide as the first. A step that would end past 32 bits is left to that loop.
fn middle(build: &mut Builder<'_>, plan: &SplitPlan) -> Result<Option<Value>, PassError> {
    if plan.is_plain(build.kernel()) && plan.fits() {
        let short = Type::Scalar(Elem::I32);
        let zero = build.constant_of(Literal::Int(0), short)?;
        let size = build.constant_of(Literal::Int(plan.step * plan.factor), short)?;
        let length = build.maxsi(plan.upper, zero)?;
        let rounds = build.divui(length, size)?;
        let none = rtc_ir::known_bits(build.kernel(), rounds) == Some(0);
        return Ok(if none { None } else { Some(build.muli(rounds, size)?) });
    }
    let long = Elem::I64;
    let number = |build: &mut Builder<'_>, n: i64| build.constant_of(Literal::Int(n), Type::Scalar(long));
    let zero = number(build, 0)?;
    let lower = build.extsi(plan.lower, long)?;
    let upper = build.extsi(plan.upper, long)?;
    // The indices whose masks all hold are those below `end`.
    let mut end = upper;
    for guard in &plan.guards {
        // scale * index + reach < bound, that is index < ceil((bound - reach) / scale)
        let mut bound = zero;
        for value in &guard.bound {
            let value = build.extsi(*value, long)?;
            bound = build.addi(bound, value)?;
        }
        let reach = number(build, -guard.reach)?;
        let mut room = build.addi(bound, reach)?;
        if guard.may_wrap() {
            // A bound that is negative in 32 bits.
            let most = number(build, i64::from(i32::MAX) - guard.rise)?;
            let wraps = build.cmpi(bound, most, Predicate::Gt)?;
            room = build.select(wraps, lower, room)?;
        }
        // Only a loop from 0 on has a guard with a scale; with others the bound may be negative and the index below it.
        let mut limit = room;
        if guard.scale > 1 {
            limit = build.maxsi(room, zero)?;
            let (up, scale) = (number(build, guard.scale - 1)?, number(build, guard.scale)?);
            limit = build.addi(limit, up)?;
            limit = build.divui(limit, scale)?;
        }
        end = build.minsi(end, limit)?;
    }
    let round = plan.step * plan.factor;
    // A step at i needs i + (factor - 1) * step < end.
    let distance = build.subi(end, lower)?;
    let up = number(build, round - 1 - (plan.factor - 1) * plan.step)?;
    let distance = build.addi(distance, up)?;
    let distance = build.maxsi(distance, zero)?;
    let most = number(build, i64::from(i32::MAX))?;
    let most = build.subi(most, lower)?;
    let distance = build.minsi(distance, most)?;
    let size = number(build, round)?;
    let rounds = build.divui(distance, size)?;
    let length = build.muli(rounds, size)?;
    let middle = build.addi(lower, length)?;
    if rtc_ir::known_bits(build.kernel(), rounds) == Some(0) {
        return Ok(None);
    }
    // It is not less than the lower bound anyway, but analyses know by it, and take it as a number of 32 bits.
    let middle = build.trunci(middle, Elem::I32)?;
    Ok(Some(build.maxsi(middle, plan.lower)?))
}
