//! The traversal of a kernel.
//!
//! A loop is traversed three times: the third time represents all later ones, so the rest is a multiplication. Counts
//! are taken in the first traversal, multiplied by the trip count.

use cranelift_entity::SecondaryMap;
use rtc_ir::{
    Block, DotKind, Elem, Hidden, Kernel, KnownBits, Op, OpKind, Scalar, Shape, Traits, Type, Value, regions, view,
};

use super::clock::{ARITHMETIC, BARRIER, Clock, GLOBAL, SHARED};
use super::instructions::{BRANCH, LOOP, instructions};
use super::programs::of_program;
use super::{Launch, Scope, Unit, Work, estimate};
use crate::matrix_unit;

/// How often a loop is taken to run whose bounds are not known.
const TRIPS: f64 = 8.0;

/// The work of a program in the middle of the grid. The kernel is the output of the passes.
pub fn work(kernel: &Kernel, launch: &Launch, capability: u32) -> Work {
    let mut known = KnownBits::default();
    for param in &kernel.params {
        let grid = match param.hidden {
            Some(Hidden::Grid(axis)) => launch.grid.get(axis as usize).map(|n| i64::from(*n)),
            _ => None,
        };
        let given = launch.integers.iter().find(|(name, _)| *name == param.name).map(|(_, value)| *value);
        if let Some(value) = grid.or(given) {
            known.give(param.value, bits(kernel, param.value, value));
        }
    }
    let mut count = Count {
        kernel,
        launch,
        capability,
        known,
        work: Work { registers: estimate(kernel, Scope::Kernel), is_certain: true, ..Work::default() },
        weight: 1.0,
        depth: 0,
        loops: 0,
        read: Vec::new(),
        of_program: of_program(kernel),
    };
    let mut clock = Clock::default();
    count.block(kernel.body(), &mut clock);
    count.work.cycles = clock.now;
    count.read_again();
    count.work.dots.sort_by_key(|(unit, _)| *unit);
    count.work
}

/// An integer in as many bits as the value has.
fn bits(kernel: &Kernel, value: Value, number: i64) -> u64 {
    let width = kernel.value_type(value).elem().map_or(64, Elem::bits);
    if width >= 64 { number as u64 } else { number as u64 & ((1 << width) - 1) }
}

struct Count<'k> {
    kernel: &'k Kernel,
    launch: &'k Launch,
    capability: u32,
    known: KnownBits,
    work: Work,
    /// The weight of what is counted now; 0 in the second and third traversal of a loop.
    weight: f64,
    /// The loop depth.
    depth: u32,
    /// How many of the outermost loops have begun.
    loops: u32,
    /// Bytes that loads read behind a pointer parameter in one outermost loop.
    read: Vec<(Value, u32, f64)>,
    /// Values that differ between programs.
    of_program: SecondaryMap<Value, bool>,
}

impl Count<'_> {
    fn block(&mut self, block: Block, clock: &mut Clock) {
        for op in self.kernel.ops(block) {
            self.op(op, clock);
        }
    }

    fn op(&mut self, op: Op, clock: &mut Clock) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        match &data.kind {
            OpKind::ProgramId { axis } => {
                let programs = self.launch.grid.get(*axis as usize).copied().unwrap_or(1);
                self.known.give(data.results[0], u64::from(programs / 2));
            }
            OpKind::NumPrograms { axis } => {
                let programs = self.launch.grid.get(*axis as usize).copied().unwrap_or(1);
                self.known.give(data.results[0], programs.into());
            }
            OpKind::ForRange { unsigned, .. } => return self.for_range(op, *unsigned, clock),
            OpKind::WhileLoop {} => {
                self.work.is_certain = false;
                return self.trips(op, &data.blocks, TRIPS, clock);
            }
            OpKind::IfElse {} => return self.if_else(op, clock),
            OpKind::WarpSpecialize { .. } => {
                let start = clock.clone();
                for block in &data.blocks {
                    let mut partition = start.clone();
                    self.block(*block, &mut partition);
                    clock.now = clock.now.max(partition.now);
                }
                return;
            }
            _ => {}
        }
        self.plain(op, clock);
    }

    /// An operation without control flow.
    fn plain(&mut self, op: Op, clock: &mut Clock) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let (results, operands) = (&data.results[..], &data.operands[..]);
        let warps = f64::from(kernel.group_of(op).warps);
        let issued = if matrix_unit::is_dot(&data.kind) { 0.0 } else { issue(kernel, op) };
        self.work.instructions += self.weight * issued * warps;
        // Four schedulers share the warps of a block.
        let share = (warps / 4.0).max(1.0);
        match &data.kind {
            OpKind::MmaWait { pending } => {
                clock.wait_dots(*pending as usize);
                clock.give(results, 0.0);
                return;
            }
            OpKind::CopyWait { pending } => return clock.wait_copies(*pending as usize),
            OpKind::CopyCommit {} => return clock.commit(),
            _ => clock.begin(operands, issued * share),
        }
        match &data.kind {
            OpKind::Load { .. } => self.load(op, clock),
            OpKind::Store { .. } => {
                self.work.written += self.weight * bytes(kernel, view::Store::at(kernel, op).value());
            }
            OpKind::AtomicStore { .. } => {
                self.work.written += self.weight * bytes(kernel, view::AtomicStore::at(kernel, op).value());
            }
            OpKind::AtomicLoad { .. } | OpKind::AtomicPoll { .. } => {
                self.work.read += self.weight * bytes(kernel, results[0]);
                clock.give(results, GLOBAL);
            }
            OpKind::AtomicRmw { .. } | OpKind::AtomicCas { .. } => {
                let moved = self.weight * bytes(kernel, results[0]);
                self.work.read += moved;
                self.work.written += moved;
                clock.give(results, GLOBAL);
            }
            OpKind::CopyAsync { .. } => {
                let moved = self.weight * buffer_bytes(kernel, op);
                self.work.read += moved;
                self.work.shared += moved;
                clock.copy();
            }
            OpKind::CopyDesc {} | OpKind::CopyBulk {} => {
                let moved = self.weight * buffer_bytes(kernel, op);
                self.work.read += moved;
                self.work.shared += moved;
            }
            OpKind::CopyDescStore {} | OpKind::CopyDescReduce { .. } => {
                self.work.written += self.weight * buffer_bytes(kernel, op);
            }
            OpKind::LocalStore {} => {
                self.work.shared += self.weight * bytes(kernel, view::LocalStore::at(kernel, op).value());
                clock.give(results, SHARED);
            }
            OpKind::LocalLoad {} => {
                self.work.shared += self.weight * bytes(kernel, results[0]);
                clock.give(results, SHARED);
            }
            OpKind::Barrier {} => clock.now += BARRIER,
            OpKind::Dot { kind, .. } | OpKind::DotBuffers { kind } => self.dot(op, unit(kernel, op, *kind), clock),
            OpKind::Mma {} | OpKind::MmaAsync {} => self.dot(op, unit(kernel, op, DotKind::Wgmma), clock),
            OpKind::Reduce { .. } | OpKind::Scan { .. } | OpKind::Sort { .. } | OpKind::Gather { .. } => {
                let crosses = kernel.scratch(op).is_some();
                clock.give(results, if crosses { 5.0 * SHARED + 2.0 * BARRIER } else { 5.0 * SHARED });
            }
            _ => clock.give(results, ARITHMETIC),
        }
    }

    /// A load. `note` counts repeated reads of a loop.
    fn load(&mut self, op: Op, clock: &mut Clock) {
        let kernel = self.kernel;
        let results = &kernel.op(op).results[..];
        let moved = self.weight * bytes(kernel, results[0]);
        self.work.read += moved;
        let load = view::Load::at(kernel, op);
        if !self.of_program[load.pointer()] && !load.mask().is_some_and(|mask| self.of_program[mask]) {
            self.work.common += moved;
        } else {
            self.note(load.pointer(), moved);
        }
        clock.give(results, GLOBAL);
    }

    /// Notes what a load in a loop reads.
    fn note(&mut self, pointers: Value, moved: f64) {
        let Some(root) = root(self.kernel, pointers).filter(|_| self.depth > 0) else { return };
        match self.read.iter_mut().find(|(known, number, _)| (*known, *number) == (root, self.loops)) {
            Some((_, _, bytes)) => *bytes += moved,
            None => self.read.push((root, self.loops, moved)),
        }
    }

    /// If several loops read the memory behind one parameter, the longest counts as reading it, the others as reading
    /// it again.
    fn read_again(&mut self) {
        for (at, (root, _, _)) in self.read.iter().enumerate() {
            let all = || self.read.iter().filter(|(other, _, _)| other == root).map(|(_, _, bytes)| *bytes);
            let is_first = self.read[..at].iter().all(|(other, _, _)| other != root);
            let longest = all().fold(0.0, f64::max);
            let again = all().sum::<f64>() - longest;
            if is_first && again > 0.0 {
                self.work.reread += again;
                self.work.kept += longest;
            }
        }
    }

    fn dot(&mut self, op: Op, unit: Unit, clock: &mut Clock) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let lhs = kernel.dot_operands(op).and_then(|[lhs, ..]| shape(kernel, lhs));
        let sums = shape(kernel, data.results[0]);
        let (Some(lhs), Some(sums)) = (lhs, sums) else { return };
        let operations = 2.0 * sums.numel() as f64 * f64::from(lhs[lhs.rank() - 1]);
        if self.weight > 0.0 {
            match self.work.dots.iter_mut().find(|(u, _)| *u == unit) {
                Some((_, count)) => *count += self.weight * operations,
                None => self.work.dots.push((unit, self.weight * operations)),
            }
        }
        // A warp group of one keeps a fourth of the tensor cores busy.
        let warps = f64::from(kernel.group_of(op).warps);
        let share = (warps / 4.0).min(1.0);
        // With 64 rows and fewer than 128 columns the tensor cores are not filled: operand A is read again.
        let columns = f64::from(sums[sums.rank() - 1]);
        let full = if matches!(unit, Unit::WarpGroup(_)) { (columns / 128.0).clamp(0.25, 1.0) } else { 1.0 };
        let cycles = operations / (unit.per_cycle(self.capability) * share * full);
        let end = clock.dot(cycles);
        clock.give(&data.results, end);
        if !matches!(data.kind, OpKind::MmaAsync {}) {
            clock.wait_dots(0);
        }
    }

    fn for_range(&mut self, op: Op, unsigned: bool, clock: &mut Clock) {
        let data = self.kernel.op(op);
        let range = view::ForRange::at(self.kernel, op);
        let bounds = [range.lower(), range.upper(), range.step()].map(|value| self.number(value, unsigned));
        let block = data.blocks[0];
        let trips = match bounds {
            [Some(lower), Some(upper), Some(step)] if step > 0 => {
                let trips = (upper - lower).max(0).div_euclid(step) + i128::from((upper - lower).max(0) % step != 0);
                // Nested loops may use the index: a value in the middle.
                if let Some(counter) = self.kernel.block(block).args.first() {
                    let middle = lower + step * (trips / 2);
                    self.known.give(*counter, bits(self.kernel, *counter, middle as i64));
                }
                trips as f64
            }
            _ => {
                self.work.is_certain = false;
                TRIPS
            }
        };
        self.trips(op, &[block], trips, clock);
    }

    fn number(&mut self, value: Value, unsigned: bool) -> Option<i128> {
        let bits = self.known.get(self.kernel, value)?;
        let unused = 64 - self.kernel.value_type(value).elem()?.bits().min(64);
        Some(if unsigned { bits.into() } else { (((bits << unused) as i64) >> unused).into() })
    }

    fn trips(&mut self, op: Op, blocks: &[Block], trips: f64, clock: &mut Clock) {
        let kernel = self.kernel;
        let slots = regions::slots(kernel, op);
        let hand = |clock: &mut Clock, from: usize| {
            for slot in &slots {
                let sources: Vec<Value> = slot.values(kernel).collect();
                if let Some(source) = sources.get(from).or(sources.last()) {
                    slot.targets.iter().for_each(|target| clock.hand(*source, *target));
                }
            }
        };
        hand(clock, 0);
        if trips < 1.0 {
            return;
        }
        let weight = self.weight;
        self.loops += u32::from(self.depth == 0);
        self.depth += 1;
        let mut before = clock.now;
        let mut last = 0.0;
        let looked_at = trips.min(3.0) as usize;
        for round in 0..looked_at {
            self.weight = if round == 0 { weight * trips } else { 0.0 };
            blocks.iter().for_each(|block| self.block(*block, clock));
            hand(clock, 1);
            last = clock.now - before;
            before = clock.now;
        }
        self.weight = weight;
        self.depth -= 1;
        clock.skip(last * (trips - looked_at as f64));
    }

    fn if_else(&mut self, op: Op, clock: &mut Clock) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        clock.begin(&data.operands, ARITHMETIC);
        let known = self.known.get(kernel, view::IfElse::at(kernel, op).condition()).map(|bits| bits != 0);
        let weight = self.weight;
        let start = clock.clone();
        for (i, block) in data.blocks.iter().enumerate() {
            let taken = match known {
                Some(condition) => f64::from(u8::from(condition == (i == 0))),
                None => 0.5,
            };
            if taken == 0.0 {
                continue;
            }
            let mut branch = start.clone();
            self.weight = weight * taken;
            self.block(*block, &mut branch);
            if branch.now >= clock.now {
                *clock = branch;
            }
        }
        self.weight = weight;
        clock.give(&data.results, 0.0);
    }
}

/// The parameter that pointers are computed from; nothing where that is not plain.
fn root(kernel: &Kernel, pointers: Value) -> Option<Value> {
    let mut value = pointers;
    while let Some(op) = kernel.def_op(value) {
        let is_pointer = |v: &&Value| kernel.value_type(**v).elem().is_some_and(Elem::is_ptr);
        let mut operands = kernel.op(op).operands.iter().filter(is_pointer);
        value = *operands.next()?;
        if operands.next().is_some() {
            return None;
        }
    }
    kernel.params.iter().any(|param| param.value == value).then_some(value)
}

/// Instructions of one warp.
fn issue(kernel: &Kernel, op: Op) -> f64 {
    let data = kernel.op(op);
    let estimate = instructions(kernel, op) as f64;
    let per_number = match &data.kind {
        // Their cost at run time differs from their cost to compile.
        kind if regions::is_loop(kind) => return (estimate - LOOP as f64).clamp(0.0, 4.0),
        kind if !regions::flow(kind).is_empty() => return (estimate - BRANCH as f64).clamp(0.0, 4.0),
        OpKind::Assume {} | OpKind::Hint { .. } | OpKind::Arange { .. } => 0.0,
        // A fourth to a sixteenth of the rate.
        OpKind::Exp2 { .. } | OpKind::DivF { .. } => 4.0,
        OpKind::Load { .. } | OpKind::Store { .. } => 0.5,
        kind if kind.spec().traits.has(Traits::TERMINATOR) => 0.0,
        _ => 1.0,
    };
    // Scalars are the same in all threads; most of them are computed once.
    let is_scalar = data.results.iter().all(|v| matches!(kernel.value_type(*v), Type::Scalar(_)));
    if is_scalar && data.kind.spec().traits.has(Traits::ELEMENTWISE) { 1.0 } else { estimate * per_number }
}

fn bytes(kernel: &Kernel, value: Value) -> f64 {
    let ty = kernel.value_type(value);
    let elements = ty.shape().map_or(1, |shape| shape.numel());
    elements as f64 * f64::from(ty.elem().map_or(0, |elem| elem.bits().div_ceil(8)))
}

/// Bytes of one slot of the buffer that an operation fills or reads.
fn buffer_bytes(kernel: &Kernel, op: Op) -> f64 {
    let ty = kernel.buffer(op).and_then(|buffer| kernel.value_type(buffer).as_shared());
    ty.map_or(0.0, |shared| shared.slot_bytes() as f64)
}

/// The shape of a tile, or of a slot of a buffer.
fn shape(kernel: &Kernel, value: Value) -> Option<Shape> {
    let ty = kernel.value_type(value);
    ty.as_shared().map(|shared| shared.shape).or(ty.shape())
}

fn operand_bits(kernel: &Kernel, value: Value) -> u32 {
    let ty = kernel.value_type(value);
    let elem = ty.as_shared().map(|shared| shared.elem).or(ty.elem());
    elem.and_then(Elem::num).map_or(16, Scalar::bits)
}

fn unit(kernel: &Kernel, op: Op, kind: DotKind) -> Unit {
    let bits = kernel.dot_operands(op).map_or(16, |[lhs, ..]| operand_bits(kernel, lhs));
    match kind {
        DotKind::Wgmma => Unit::WarpGroup(bits),
        DotKind::MmaV2 => Unit::Warp(bits),
        _ if bits == 64 => Unit::Warp(64),
        _ => Unit::Thread(bits),
    }
}
