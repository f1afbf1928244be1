//! Records when each warp comes to the operations that take time: with the option `instrument`, for a timeline of a run
//! on a GPU.
//!
//! Loops, iterations, accesses to global memory, copies, dots, waits and barriers get a `record` before and after them.
//! [`rtc_abi::records`] describes the buffer, a parameter that this pass adds. It runs last, so that the schedule is
//! that of the kernel without records; only LLVM and the assembler see more instructions.
//!
//! ```text
//! barrier_wait %b, %i       →   record %rtc_records {event = "4 begin wait ring 0 of 3", blocks = 4}
//!                               barrier_wait %b, %i
//!                               record %rtc_records {event = "5 end wait ring 0 of 3", blocks = 4}
//! ```

use rtc_abi::DType;
use rtc_abi::ValueType;
use rtc_abi::records::{Event, Kind, Moment, PARAM};
use rtc_ir::{Builder, Elem, Kernel, Op, OpKind, Phase, Scalar, Text, Type, TypeError, Value, view};

use crate::{Pass, PassContext, PassError};

/// The pass.
pub const PASS: Pass = Pass { name: "instrument", needs: Phase::Scheduled, leaves: Phase::Scheduled, run };

fn run(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    if cx.instrument == 0 {
        return Ok(());
    }
    let ops = rtc_ir::walk(kernel);
    let rings: Vec<Op> =
        ops.iter().copied().filter(|op| matches!(kernel.kind(*op), OpKind::AllocBarriers { .. })).collect();
    let visible = kernel.params.iter().take_while(|param| param.hidden.is_none()).count();
    let ty = ValueType::Pointer { pointee: DType::Int64, is_const: false };
    let buffer = kernel.insert_param(visible, PARAM, Type::Scalar(Elem::Ptr(Scalar::I64)), ty, 16);
    let mut recorder = Recorder { buffer, blocks: cx.instrument, next: 0 };
    for op in ops {
        let Some(kind) = kind(kernel, op) else { continue };
        let (ring, pending) = (ring(kernel, &rings, op), pending(kernel.kind(op)));
        if matches!(kind, Kind::Commit | Kind::Expect) {
            let event = Event { ring, ..recorder.event(Moment::At, kind) };
            recorder.record(&mut Builder::after(kernel, op), &event)?;
            continue;
        }
        let begin = Event { ring, pending, ..recorder.event(Moment::Begin, kind) };
        recorder.record(&mut Builder::before(kernel, op), &begin)?;
        if kind == Kind::Loop
            && let Some(body) = kernel.op(op).blocks.first().copied()
        {
            let event = recorder.event(Moment::At, Kind::Iteration);
            recorder.record(&mut at_start(kernel, body), &event)?;
        }
        let end = Event { ring, pending, ..recorder.event(Moment::End, kind) };
        recorder.record(&mut Builder::after(kernel, op), &end)?;
    }
    // A launch may begin before the one ahead of it has ended, and its wait for that one stays its first effect.
    let first = kernel.first_access().filter(|op| matches!(kernel.kind(*op), OpKind::GridDependency { .. }));
    let start = recorder.event(Moment::At, Kind::Start);
    let body = kernel.body();
    match first {
        Some(wait) => recorder.record(&mut Builder::after(kernel, wait), &start)?,
        None => recorder.record(&mut at_start(kernel, body), &start)?,
    }
    if let Some(end) = kernel.ops(body).next_back() {
        let finish = recorder.event(Moment::At, Kind::Finish);
        recorder.record(&mut Builder::before(kernel, end), &finish)?;
    }
    Ok(())
}

/// Before the first operation of a block, at its location.
fn at_start(kernel: &mut Kernel, block: rtc_ir::Block) -> Builder<'_> {
    match kernel.ops(block).next() {
        Some(first) => Builder::before(kernel, first),
        None => Builder::at_end(kernel, block),
    }
}

struct Recorder {
    buffer: Value,
    blocks: u32,
    next: u32,
}

impl Recorder {
    /// An event with the next number.
    fn event(&mut self, moment: Moment, kind: Kind) -> Event {
        self.next += 1;
        Event::new(self.next - 1, moment, kind)
    }

    fn record(&self, at: &mut Builder<'_>, event: &Event) -> Result<(), TypeError> {
        at.record(self.buffer, Text(event.to_string().into()), self.blocks).map(drop)
    }
}

/// The kind of an operation that is recorded.
fn kind(kernel: &Kernel, op: Op) -> Option<Kind> {
    Some(match kernel.kind(op) {
        OpKind::ForRange { .. } | OpKind::WhileLoop {} => Kind::Loop,
        OpKind::Load { .. } => Kind::Load,
        OpKind::Store { .. } => Kind::Store,
        OpKind::AtomicRmw { .. }
        | OpKind::AtomicCas { .. }
        | OpKind::AtomicLoad { .. }
        | OpKind::AtomicStore { .. }
        | OpKind::AtomicPoll { .. } => Kind::Atomic,
        OpKind::CopyAsync { .. } | OpKind::CopyBulk {} | OpKind::CopyDesc {} => Kind::Copy,
        OpKind::BarrierExpect { .. } => Kind::Expect,
        OpKind::CopyCommit {} => Kind::Commit,
        OpKind::CopyDescStore {} | OpKind::CopyDescReduce { .. } => Kind::CopyOut,
        OpKind::Dot { .. } | OpKind::DotBuffers { .. } | OpKind::Mma {} => Kind::Dot,
        OpKind::MmaAsync {} => Kind::Mma,
        OpKind::BarrierWait {} => Kind::Wait,
        OpKind::CopyWait { .. } => Kind::WaitCopies,
        OpKind::CopyDescWait { .. } => Kind::WaitStores,
        OpKind::MmaWait { .. } => Kind::WaitMma,
        OpKind::Barrier {} => Kind::Barrier,
        _ => return None,
    })
}

/// How many groups a wait leaves pending.
fn pending(kind: &OpKind) -> u32 {
    match kind {
        OpKind::CopyWait { pending } | OpKind::CopyDescWait { pending, .. } | OpKind::MmaWait { pending } => *pending,
        _ => 0,
    }
}

/// The ring of the barrier that counts a copy, or that is waited for.
fn ring(kernel: &Kernel, rings: &[Op], op: Op) -> Option<(u32, u32)> {
    let mut barrier = match kernel.kind(op) {
        OpKind::BarrierWait {} => view::BarrierWait::at(kernel, op).barrier(),
        OpKind::BarrierExpect { .. } => view::BarrierExpect::at(kernel, op).barrier(),
        OpKind::CopyBulk {} => view::CopyBulk::at(kernel, op).barrier(),
        OpKind::CopyDesc {} => view::CopyDesc::at(kernel, op).barrier(),
        _ => return None,
    };
    loop {
        let made = kernel.def_op(barrier)?;
        if let OpKind::Slot {} = kernel.kind(made) {
            barrier = view::Slot::at(kernel, made).buffer();
            continue;
        }
        let number = rings.iter().position(|ring| *ring == made)?;
        let Type::Barrier { slots } = kernel.value_type(barrier) else { return None };
        return Some((u32::try_from(number).ok()?, slots));
    }
}
