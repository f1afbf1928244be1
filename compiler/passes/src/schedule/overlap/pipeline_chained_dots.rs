//! Software-pipelines two chained dots of a loop, as in attention: issues the first dot of the next iteration together
//! with the second dot of this one, which depends on the first. The operations between the two run under both.
//! ```text
//! for_range 0, n {                 if_else 0 < n {
//!   %s = mma %q, k[i]                first(0)
//!   %p = .. %s ..            →       for_range 1, n {           i is that of the first dot
//!   %acc = mma %p, v[i], %acc          mma_await (%acc)            of the iteration before
//! }                                    %s = mma_async %q, k[i]
//!                                      %acc = mma_async %p, v[i - 1], %acc
//!                                      mma_await (%s)
//!                                      %p = .. %s ..
//!                                    }
//!                                    mma_await (%acc);  second(n - 1)
//!                                  }
//! ```
//!
//! The loop is in a partition (`specialize_warps`), so that other warps load the operands. The operand of the second
//! dot, and the values of its iteration that it needs, are carried to the next iteration. Casts of the operand stay
//! with the second dot: before the previous dot is complete, their results would occupy registers that it may still
//! read.

use std::collections::HashSet;

use rtc_abi::REGISTERS_PER_THREAD;
use rtc_ir::{
    Block, Builder, Kernel, Op, OpKind, Phase, Position, Predicate, Traits, Type, Value, ValueMap, regions, view,
};

use crate::pass::missing;
use crate::plan::Plan;
use crate::schedule::pipeline::expand_loop::moved;
use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "pipeline-chained-dots", needs: Phase::Laid, leaves: Phase::Laid, run };

/// The registers of a thread in addition to the accumulators of both dots and the operand of the second one.
const OTHER_REGISTERS: u32 = 40;

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    let pairs = pairs(kernel, cx.plan);
    let changed = !pairs.is_empty();
    for pair in pairs {
        pair.overlap(kernel)?;
    }
    if changed { crate::tile::dce::run(kernel, cx) } else { Ok(()) }
}

/// Whether the pass would do something for this kernel.
pub(crate) fn is_applicable(kernel: &Kernel, cx: &PassContext) -> bool {
    !pairs(kernel, cx.plan).is_empty()
}

/// The loops of partitions whose dots can overlap within their registers, or regardless of them if the plan asks for it.
fn pairs(kernel: &Kernel, plan: Plan) -> Vec<ChainedDots> {
    if plan.chained == Some(false) {
        return Vec::new();
    }
    let Some(division) = kernel.specialization() else { return Vec::new() };
    // The assembler reserves registers for dots in flight within the number at the start; otherwise it serializes dots.
    let at_start = kernel.registers_at_start().unwrap_or(REGISTERS_PER_THREAD);
    let mut pairs = Vec::new();
    for (number, partition) in kernel.op(division).blocks.iter().enumerate() {
        let registers = match kernel.kind(division) {
            OpKind::WarpSpecialize { registers: Some(registers), .. } => registers[number],
            _ => REGISTERS_PER_THREAD,
        };
        let fits = |pair: &ChainedDots| {
            let held = pair.registers(kernel);
            plan.chained == Some(true) || held <= at_start && held + OTHER_REGISTERS <= registers
        };
        let loops = rtc_ir::walk_block(kernel, *partition).into_iter();
        pairs.extend(loops.filter_map(|op| ChainedDots::of(kernel, op)).filter(fits));
    }
    pairs
}

/// A dot, with the wait for what it reads before it and the arrival that frees it after.
#[derive(Clone, Copy)]
struct GuardedMma {
    wait: Op,
    mma: Op,
    arrive: Op,
}

impl GuardedMma {
    fn of(kernel: &Kernel, mma: Op) -> Option<GuardedMma> {
        let (wait, arrive) = (kernel.previous_op(mma)?, kernel.next_op(mma)?);
        let guarded = matches!(kernel.kind(wait), OpKind::BarrierWait {})
            && matches!(kernel.kind(arrive), OpKind::BarrierArrive { .. });
        guarded.then_some(GuardedMma { wait, mma, arrive })
    }

    fn all(&self) -> [Op; 3] {
        [self.wait, self.mma, self.arrive]
    }

    /// The slots of the ring that the operands come through.
    fn slots(&self, kernel: &Kernel) -> u32 {
        let barrier = view::BarrierWait::at(kernel, self.wait).barrier();
        match kernel.allocation(barrier).map(|made| kernel.value_type(kernel.result(made, 0))) {
            Some(Type::Barrier { slots }) => slots,
            _ => 0,
        }
    }
}

/// A loop with two dots, the second of which depends on the first.
struct ChainedDots {
    of: Op,
    body: Block,
    end: Op,
    first: GuardedMma,
    second: GuardedMma,
    /// The number of the carried value that the second dot adds to.
    acc: usize,
    /// The operations that go with the second dot, in program order; those that guard it are not among them.
    late: Vec<Op>,
    /// The values that they use from the rest of their iteration.
    crossing: Vec<Value>,
}

impl ChainedDots {
    fn of(kernel: &Kernel, of: Op) -> Option<ChainedDots> {
        let OpKind::ForRange { .. } = kernel.kind(of) else { return None };
        let body = kernel.op(of).blocks[0];
        let ops: Vec<Op> = kernel.ops(body).collect();
        let end = *ops.last()?;
        let mmas: Vec<Op> = ops.iter().copied().filter(|op| matches!(kernel.kind(*op), OpKind::Mma {})).collect();
        let [first, second] = mmas[..] else { return None };
        let (first, second) = (GuardedMma::of(kernel, first)?, GuardedMma::of(kernel, second)?);
        // The operands of the first dot of the next iteration come while those of the second one are still read.
        (first.slots(kernel) > 1 && second.slots(kernel) > 1).then_some(())?;
        let wide = |product: &GuardedMma| {
            kernel.value_type(kernel.result(product.mma, 0)).elem().is_some_and(|elem| elem.bits() == 32)
        };
        if !wide(&first) || !wide(&second) || kernel.value_type(kernel.operand(second.mma, 0)).shape().is_none() {
            return None;
        }
        // The accumulator goes from iteration to iteration through the second dot alone.
        let total = kernel.result(second.mma, 0);
        let acc = kernel.variadic(end).iter().position(|value| *value == total)?;
        let carried = *kernel.block(body).args.get(acc + 1)?;
        if kernel.users(total) != [end] || kernel.variadic(end).iter().filter(|value| **value == total).count() != 1 {
            return None;
        }
        let mut late: HashSet<Op> = HashSet::from([second.mma]);
        for op in &ops {
            let takes = kernel.op(*op).operands.iter().any(|value| {
                *value == carried
                    || kernel.def_op(*value).is_some_and(|made| late.contains(&made) && made != second.mma)
            });
            if takes && *op != end && *op != second.mma {
                is_movable(kernel, *op).then_some(())?;
                late.insert(*op);
            }
        }
        let is_late = |late: &HashSet<Op>, op: &Op| late.contains(op) || second.all().contains(op);
        let leaks = |op: &Op| {
            let results = &kernel.op(*op).results;
            results.iter().flat_map(|value| kernel.users(*value)).any(|user| !is_late(&late, &user))
        };
        if late.iter().any(|op| *op != second.mma && leaks(op)) {
            return None;
        }
        // Cheap operations for the second dot alone move with it; views of slots have to.
        for op in ops.iter().rev() {
            let users: Vec<Op> = kernel.op(*op).results.iter().flat_map(|value| kernel.users(*value)).collect();
            let alone = !users.is_empty() && users.iter().all(|user| is_late(&late, user));
            if alone && (is_cheap(kernel, *op) || is_view(kernel, *op)) {
                late.insert(*op);
            }
        }
        late.remove(&second.mma);
        // The dot's operand must be computed after the wait for the previous dot, which may read the same registers.
        let operand = kernel.def_op(kernel.operand(second.mma, 0))?;
        late.contains(&operand).then_some(())?;
        for op in &ops {
            let stays = late.contains(op) || second.all().contains(op) || first.all().contains(op) || *op == end;
            (stays || is_movable(kernel, *op) || is_view(kernel, *op) || reads_row(kernel, *op)).then_some(())?;
        }
        let mut pair = ChainedDots { of, body, end, first, second, acc, late: Vec::new(), crossing: Vec::new() };
        pair.late = ops.into_iter().filter(|op| late.contains(op)).collect();
        pair.find_crossing(kernel, carried)?;
        Some(pair)
    }

    /// The values of the iteration that the late part uses; `None` if they cannot be carried.
    fn find_crossing(&mut self, kernel: &Kernel, acc: Value) -> Option<()> {
        let own: HashSet<Op> = self.late.iter().copied().chain(self.second.all()).collect();
        for op in &own {
            for value in rtc_ir::walk_op(kernel, *op).into_iter().flat_map(|op| kernel.op(op).operands.clone()) {
                let inside = match kernel.value(value).def {
                    rtc_ir::ValueDef::Result(made, _) => {
                        kernel.op(made).parent == Some(self.body) && !own.contains(&made)
                    }
                    rtc_ir::ValueDef::Arg(block, _) => block == self.body && value != acc,
                };
                if inside && !self.crossing.contains(&value) {
                    self.crossing.push(value);
                }
            }
        }
        let handed = |value: &Value| !matches!(kernel.value_type(*value), Type::Shared(_) | Type::Barrier { .. });
        self.crossing.sort_unstable();
        self.crossing.iter().all(handed).then_some(())
    }

    /// The registers that both dots hold while they are in flight.
    fn registers(&self, kernel: &Kernel) -> u32 {
        let words = |value: Value| {
            let bits = kernel.value_type(value).elem().map_or(32, |elem| elem.bits());
            kernel.layout_of(value).map_or(0, |layout| layout.registers() * bits / 32)
        };
        let [first, second] = [self.first.mma, self.second.mma];
        words(kernel.result(first, 0)) + words(kernel.result(second, 0)) + words(kernel.operand(second, 0))
    }

    fn overlap(&self, kernel: &mut Kernel) -> Result<(), PassError> {
        let ChainedDots { of, body, end, .. } = *self;
        let args = kernel.block(body).args.clone();
        let (index, ty) = (args[0], kernel.value_type(args[0]));
        let OpKind::ForRange { unsigned, hints } = kernel.kind(of).clone() else { return Err(missing("a loop")) };
        let [lower, upper, step] = [0, 1, 2].map(|number| kernel.operand(of, number));
        let inits = kernel.variadic(of).to_vec();
        let results: Vec<Value> = (0..inits.len()).map(|number| kernel.result(of, number)).collect();
        let types: Vec<Type> = results.iter().map(|value| kernel.value_type(*value)).collect();
        let less = if unsigned { Predicate::Ult } else { Predicate::Lt };

        let runs = Builder::before(kernel, of).cmpi(lower, upper, less)?;
        let [some, none] = [kernel.new_block(), kernel.new_block()];
        Builder::at_end(kernel, none).yield_values(&inits)?;
        let branch = Builder::before(kernel, of).build(OpKind::IfElse {}, &[runs], &[], &[], &[some, none], &types)?;
        for (number, result) in results.iter().enumerate() {
            kernel.replace_value(*result, kernel.result(branch, number));
        }

        // The first part of the first iteration.
        let mut map: ValueMap = args.iter().copied().zip([lower].into_iter().chain(inits.iter().copied())).collect();
        self.early(kernel, &mut map, some, None)?;
        let yields = kernel.variadic(end).to_vec();
        let mut starts: Vec<Value> = yields.iter().map(|value| moved(&map, *value)).collect();
        starts[self.acc] = inits[self.acc];
        starts.extend(self.crossing.iter().map(|value| moved(&map, *value)));
        let freed = self.freed(kernel)?;
        starts.push(moved(&map, freed));

        // The loop.
        let around = kernel.new_block();
        let mut builder = Builder::at_end(kernel, some);
        let second = builder.addi(lower, step)?;
        let left = builder.subi(upper, lower)?;
        let goes_on = builder.cmpi(left, step, Predicate::Ugt)?;
        // Where there is no second iteration, the accumulator above may have overflowed.
        let second = builder.select(goes_on, second, upper)?;
        let start_types: Vec<Type> = starts.iter().map(|value| kernel.value_type(*value)).collect();
        let name = |kernel: &Kernel, value: Value| kernel.value(value).name.clone();
        let at = kernel.add_arg(around, ty, name(kernel, index));
        let mut now = Vec::new();
        for (number, ty) in start_types.iter().copied().enumerate() {
            let like =
                args.get(number + 1).copied().or_else(|| self.crossing.get(number.wrapping_sub(inits.len())).copied());
            let name = like.and_then(|like| name(kernel, like));
            now.push(kernel.add_arg(around, ty, name));
        }
        let (carried, crossed) = now.split_at(inits.len());
        let mut map: ValueMap =
            [(index, at)].into_iter().chain(args[1..].iter().copied().zip(carried.iter().copied())).collect();
        let waited = wait(kernel, around, carried[self.acc])?;
        let not_first = Builder::at_end(kernel, around).cmpi(at, second, Predicate::Ne)?;
        self.free(kernel, around, not_first, crossed[self.crossing.len()])?;
        let mut late: ValueMap = self.crossing.iter().copied().zip(crossed.iter().copied()).collect();
        late.insert(args[self.acc + 1], waited);
        self.prepare(kernel, &mut late, around);
        self.early(kernel, &mut map, around, Some(&mut late))?;
        let mut ends: Vec<Value> = yields.iter().map(|value| moved(&map, *value)).collect();
        ends[self.acc] = moved(&late, kernel.result(self.second.mma, 0));
        ends.extend(self.crossing.iter().map(|value| moved(&map, *value)));
        ends.push(moved(&late, freed));
        Builder::at_end(kernel, around).yield_values(&ends)?;
        let kind = OpKind::ForRange { unsigned, hints };
        let new =
            Builder::at_end(kernel, some).build(kind, &[second, upper, step], &[], &starts, &[around], &start_types)?;

        // The second part of the last iteration.
        let after: Vec<Value> = (0..ends.len()).map(|number| kernel.result(new, number)).collect();
        let (done, crossed) = after.split_at(inits.len());
        let waited = wait(kernel, some, done[self.acc])?;
        self.free(kernel, some, goes_on, crossed[self.crossing.len()])?;
        let mut late: ValueMap = self.crossing.iter().copied().zip(crossed.iter().copied()).collect();
        late.insert(args[self.acc + 1], waited);
        self.prepare(kernel, &mut late, some);
        for op in self.second.all() {
            put(kernel, op, &mut late, some);
        }
        let mut all = done.to_vec();
        all[self.acc] = moved(&late, kernel.result(self.second.mma, 0));
        Builder::at_end(kernel, some).yield_values(&all)?;
        kernel.erase(of);
        Ok(())
    }

    /// The first dot with all that is not late. With `late` the second dot is begun right after it, of the iteration
    /// before, and only the first one is waited for.
    fn early(
        &self,
        kernel: &mut Kernel,
        map: &mut ValueMap,
        at: Block,
        mut late: Option<&mut ValueMap>,
    ) -> Result<(), PassError> {
        for op in kernel.ops(self.body).collect::<Vec<_>>() {
            if op == self.end || self.late.contains(&op) || self.second.all().contains(&op) {
                continue;
            }
            let copy = put(kernel, op, map, at);
            if op != self.first.mma {
                continue;
            }
            let Some(late) = &mut late else { continue };
            *kernel.kind_mut(copy) = OpKind::MmaAsync {};
            put(kernel, self.second.wait, late, at);
            let second = put(kernel, self.second.mma, late, at);
            *kernel.kind_mut(second) = OpKind::MmaAsync {};
            let waited = wait(kernel, at, kernel.result(copy, 0))?;
            map.insert(kernel.result(op, 0), waited);
        }
        Ok(())
    }

    /// The late operations except the second dot itself.
    fn prepare(&self, kernel: &mut Kernel, late: &mut ValueMap, at: Block) {
        for op in &self.late {
            put(kernel, *op, late, at);
        }
    }

    /// The number of the slot that the second dot reads.
    fn freed(&self, kernel: &Kernel) -> Result<Value, PassError> {
        let barrier = kernel.def_op(kernel.operand(self.second.arrive, 0)).ok_or_else(|| missing("a barrier"))?;
        match kernel.kind(barrier) {
            OpKind::Slot {} => Ok(kernel.operand(barrier, 1)),
            _ => Err(missing("a slot")),
        }
    }

    /// Says, if `condition` holds, that the second dot is through with a slot.
    fn free(&self, kernel: &mut Kernel, at: Block, condition: Value, slot: Value) -> Result<(), PassError> {
        let blocks = [kernel.new_block(), kernel.new_block()];
        let barrier = kernel.def_op(kernel.operand(self.second.arrive, 0)).ok_or_else(|| missing("a barrier"))?;
        let mut map = ValueMap::from([(kernel.operand(barrier, 1), slot)]);
        put(kernel, barrier, &mut map, blocks[0]);
        put(kernel, self.second.arrive, &mut map, blocks[0]);
        for block in blocks {
            Builder::at_end(kernel, block).yield_values(&[])?;
        }
        Builder::at_end(kernel, at).build(OpKind::IfElse {}, &[condition], &[], &[], &blocks, &[])?;
        Ok(())
    }
}

/// A copy of an operation at the end of a block.
fn put(kernel: &mut Kernel, op: Op, map: &mut ValueMap, at: Block) -> Op {
    let copy = kernel.clone_whole(op, map);
    kernel.insert_op(copy, Position::End(at));
    copy
}

/// Waits for a dot, and hands its accumulators on.
fn wait(kernel: &mut Kernel, at: Block, acc: Value) -> Result<Value, PassError> {
    let made = Builder::at_end(kernel, at).await_dots(&[acc])?;
    Ok(kernel.result(made, 0))
}

/// Whether an operation can be done in another order with the dots.
fn is_movable(kernel: &Kernel, op: Op) -> bool {
    let pure = |op: Op| {
        let traits = kernel.kind(op).spec().traits;
        traits.has(Traits::PURE)
            || matches!(kernel.kind(op), OpKind::ConvertLayout {})
            || traits.has(Traits::TERMINATOR)
            || matches!(kernel.kind(op), OpKind::Load { volatile: false, .. })
    };
    let loops = regions::is_loop(kernel.kind(op));
    let combines = kernel.kind(op).spec().traits.has(Traits::NESTED) && !loops;
    (combines || pure(op)) && rtc_ir::walk_nested(kernel, op).into_iter().all(pure)
}

/// Whether it is better to execute an operation late than to carry its result: conversions of the operand to the form
/// that the dot needs, and operations as cheap as reading their results.
fn is_cheap(kernel: &Kernel, op: Op) -> bool {
    matches!(
        kernel.kind(op),
        OpKind::CastF { .. }
            | OpKind::ConvertLayout {}
            | OpKind::Broadcast {}
            | OpKind::ExpandDims { .. }
            | OpKind::Splat {}
            | OpKind::Constant { .. }
    )
}

/// Whether an operation reads row vectors that the producer has copied, waits for them or frees them; these stay in
/// order.
fn reads_row(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.kind(op), OpKind::LocalLoad {} | OpKind::BarrierWait {} | OpKind::BarrierArrive {})
}

/// Whether an operation is a view of a ring.
pub(crate) fn is_view(kernel: &Kernel, op: Op) -> bool {
    let kind = kernel.kind(op);
    matches!(kind, OpKind::Slot {} | OpKind::SharedTrans { .. } | OpKind::SharedSlice { .. } | OpKind::SharedView {})
}
