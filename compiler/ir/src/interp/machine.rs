//! The state of a launch, and the dispatch over all operations.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use cranelift_entity::SecondaryMap;

use super::fault::spans;
use super::frame::WarpGroup;
use super::open::Opening;
use super::scheduler::Turns;
use super::shared::SharedMemory;
use super::value::{Data, Placement};
use super::{Fault, FaultKind, Finding, FindingKind, GlobalMemory, Report, Storage};
use crate::ops::eval::mask;
use crate::{Elem, Evaluate, Kernel, LayoutId, Loc, Op, OpKind, Scalar, SharedLayoutId, Type, Value, view};

/// A fault without its place; the operation being run adds it.
pub(crate) struct Stop {
    pub(crate) kind: FaultKind,
    pub(crate) element: Option<Vec<u32>>,
}

/// For each slot of a result of a shape operation, the operand and its slot.
pub(crate) type Sources = Rc<Vec<(u32, u32)>>;

/// One launch.
pub(crate) struct Machine<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) memory: &'a mut dyn GlobalMemory,
    pub(crate) storage: Storage,
    pub(crate) grid: [u32; 3],
    pub(crate) program: [u32; 3],
    pub(crate) report: Report,
    pub(crate) placements: HashMap<LayoutId, Rc<Placement>>,
    /// For each layout of a buffer, where the elements of a tile lie.
    pub(crate) offsets: HashMap<SharedLayoutId, Rc<Vec<u32>>>,
    /// Per shape operation and result, where each slot comes from.
    pub(crate) sources: HashMap<(Op, usize), Sources>,
    /// Values that end up in an address.
    pub(crate) addresses: SecondaryMap<Value, bool>,
    /// The current warp group.
    pub(crate) group: WarpGroup,
    /// Shared memory of the program.
    pub(crate) shared: SharedMemory,
    /// The other warp groups of the program.
    pub(crate) turns: Turns,
    pub(crate) max_steps: u64,
    pub(crate) max_operations: Option<u64>,
    pub(crate) interrupt: Option<&'a AtomicBool>,
    /// Operations of the current program, as [`RunOptions::max_operations`](super::RunOptions::max_operations) counts them.
    pub(crate) operations: u64,
    pub(crate) found: HashSet<(Op, std::mem::Discriminant<FindingKind>)>,
    /// How results that the language leaves open are treated, if not as always.
    pub(crate) open: Option<Opening>,
}

impl Machine<'_> {
    /// The content of a value.
    pub(crate) fn get(&self, value: Value) -> Data {
        self.group.values[value.as_u32() as usize].clone()
    }

    /// The bits of a scalar.
    pub(crate) fn scalar(&self, value: Value) -> u64 {
        self.group.values[value.as_u32() as usize].slot(0)
    }

    /// Gives a value its content.
    pub(crate) fn set(&mut self, value: Value, data: Data) {
        self.group.values[value.as_u32() as usize] = data;
    }

    /// Gives the first result of an operation its content.
    pub(crate) fn set_result(&mut self, op: Op, data: Data) {
        let result = self.kernel.op(op).results[0];
        self.set(result, data);
    }

    /// The type of the first result.
    pub(crate) fn result_type(&self, op: Op) -> Type {
        self.kernel.value_type(self.kernel.op(op).results[0])
    }

    /// Counts steps.
    pub(crate) fn tick(&mut self, steps: usize) -> Result<(), Stop> {
        let steps = steps.max(1) as u64;
        self.report.steps += steps;
        self.operations += steps.div_ceil(32);
        if self.report.steps > self.max_steps {
            return Err(self.stop(FaultKind::StepLimit(self.max_steps)));
        }
        if let Some(limit) = self.max_operations.filter(|limit| self.operations > *limit) {
            return Err(self.stop(FaultKind::OperationLimit(limit)));
        }
        if self.interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed)) {
            return Err(self.stop(FaultKind::Interrupted));
        }
        Ok(())
    }

    /// A stop that concerns no single element.
    pub(crate) fn stop(&self, kind: FaultKind) -> Stop {
        Stop { kind, element: None }
    }

    /// Notes a finding, once per operation and kind.
    pub(crate) fn find(&mut self, op: Op, kind: FindingKind, ty: Type, slot: usize) {
        if self.found.insert((op, std::mem::discriminant(&kind))) {
            let element = self.coordinate(ty, slot);
            let data = self.kernel.op(op);
            let mut spans = self.spans(data.loc).into_iter();
            let (span, callers) = (spans.next(), spans.collect());
            let op = data.kind.spec().mnemonic;
            let finding = Finding { kind, op, span, callers, program: self.program, element };
            self.report.findings.push(finding);
        }
    }

    /// Where an operation comes from, then the calls on the way there.
    pub(crate) fn spans(&self, loc: Loc) -> Vec<rtc_source::Span> {
        spans(self.kernel, loc)
    }

    /// The fault that ends the launch.
    pub(crate) fn fault(&mut self, stop: Stop) -> Fault {
        let data = self.group.current.map(|op| self.kernel.op(op));
        let mut spans = data.map(|d| self.spans(d.loc)).unwrap_or_default().into_iter();
        Fault {
            kind: stop.kind,
            op: data.map(|d| d.kind.spec().mnemonic),
            span: spans.next(),
            callers: spans.collect(),
            program: self.program,
            element: stop.element,
            printed: std::mem::take(&mut self.report.printed),
            findings: std::mem::take(&mut self.report.findings),
        }
    }

    /// Runs an operation; one with nested blocks goes into the first of them.
    pub(crate) fn op(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let data = kernel.op(op);
        if self.group.pending.has_dots() {
            self.check_sums(op)?;
        }
        if let OpKind::Hint { kind, values } = &data.kind {
            self.check_hint(op, *kind, values)?;
        }
        let choice = view::Select::of(kernel, op);
        if let Some(choice) = choice.filter(|choice| matches!(kernel.value_type(choice.lhs()), Type::Desc(_))) {
            let chosen = if self.scalar(choice.condition()) & 1 != 0 { choice.lhs() } else { choice.rhs() };
            let map = self.get(chosen).clone();
            self.set_result(op, map);
            return self.tick(1);
        }
        if let Evaluate::Each(eval) = data.kind.spec().eval {
            return self.elementwise(op, eval);
        }
        match &data.kind {
            OpKind::Constant { value } => {
                let ty = self.result_type(op);
                let bits = value.bits(ty.elem().and_then(Elem::num).unwrap_or(Scalar::I64));
                let filled = self.fill(ty, bits);
                self.set_result(op, filled);
                self.tick(1)
            }
            OpKind::ProgramId { axis } => self.index(op, self.program, *axis),
            OpKind::NumPrograms { axis } => self.index(op, self.grid, *axis),
            OpKind::Arange { start, end } => {
                let ty = self.result_type(op);
                let numbers = (*start..*end).map(|i| mask(i as u64, Elem::I32)).collect();
                let data = self.place(ty, numbers);
                self.set_result(op, data);
                self.tick((end - start) as usize)
            }
            OpKind::Splat {} => {
                let bits = self.scalar(view::Splat::at(kernel, op).scalar());
                let filled = self.fill(self.result_type(op), bits);
                self.set_result(op, filled);
                self.tick(1)
            }
            OpKind::ExpandDims { .. }
            | OpKind::Broadcast {}
            | OpKind::Reshape { .. }
            | OpKind::Trans { .. }
            | OpKind::Join {}
            | OpKind::Split {}
            | OpKind::Cat {} => self.shape(op),
            OpKind::Unsplat {} => {
                let elements = self.elements(view::Unsplat::at(kernel, op).source())?;
                self.set_result(op, Data::Scalar(elements[0]));
                self.tick(1)
            }
            OpKind::ConvertLayout {} => {
                let elements = self.elements(view::ConvertLayout::at(kernel, op).source())?;
                let placed = self.place(self.result_type(op), elements.to_vec());
                self.tick(elements.len())?;
                self.set_result(op, placed);
                Ok(())
            }
            OpKind::Load { .. } => self.load(op),
            OpKind::Store { .. } => self.store(op),
            OpKind::AtomicRmw { op: rmw, .. } => self.atomic_rmw(op, *rmw),
            OpKind::AtomicCas { .. } => self.atomic_cas(op),
            OpKind::AtomicLoad { .. } => self.atomic_load(op),
            OpKind::AtomicPoll { .. } => self.atomic_poll(op),
            // Blocks run one after the other, so no store can be seen in part or too late.
            OpKind::AtomicStore { .. } => self.store(op),
            OpKind::MakeDesc {} => self.make_desc(op),
            OpKind::DescSize { axis } => self.desc_size(op, *axis as usize),
            OpKind::DescStride { axis } => self.desc_stride(op, *axis as usize),
            OpKind::DescLoad {} | OpKind::DescGather {} => self.desc_load(op),
            OpKind::DescStore {} => self.desc_store(op, view::DescStore::at(kernel, op).value(), None),
            OpKind::DescScatter {} => self.desc_store(op, view::DescScatter::at(kernel, op).value(), None),
            OpKind::DescReduce { op: rmw } => self.desc_store(op, view::DescReduce::at(kernel, op).value(), Some(*rmw)),
            OpKind::MakeBlockPtr { .. } => self.make_block_ptr(op),
            OpKind::Advance {} => self.advance(op),
            OpKind::BlockLoad { check, padding, .. } => self.block_load(op, check, *padding),
            OpKind::BlockStore { check, .. } => self.block_store(op, check),
            OpKind::Dot { precision, .. } => self.dot(op, *precision),
            OpKind::DotBuffers { .. } => self.dot_buffers(op),
            OpKind::Mma {} => self.mma(op),
            OpKind::MmaAsync {} => self.mma_async(op),
            OpKind::MmaWait { pending } => self.mma_wait(op, *pending),
            OpKind::MmaAwait {} => self.mma_await(op),
            OpKind::Reduce { axis } => self.reduce(op, *axis as usize),
            OpKind::Scan { axis, reverse } => self.scan(op, *axis as usize, *reverse),
            OpKind::MapElements {} => self.map_elements(op),
            OpKind::Gather { axis } => self.gather(op, *axis as usize),
            OpKind::Histogram { bins } => self.histogram(op, *bins),
            OpKind::Sort { descending, signed, .. } => self.sort(op, *descending, *signed),
            OpKind::ForRange { unsigned, .. } => self.for_range(op, *unsigned),
            OpKind::WhileLoop {} => self.repeat(op, self.all(kernel.variadic(op))),
            OpKind::IfElse {} => self.if_else(op),
            OpKind::WarpSpecialize { .. } => self.run_partitions(op),
            OpKind::Assume {} => {
                if self.scalar(view::Assume::at(kernel, op).condition()) & 1 == 0 {
                    return Err(self.stop(FaultKind::BrokenPromise));
                }
                self.tick(1)
            }
            OpKind::Print { prefix, hex, signed } => self.print(op, &prefix.0, *hex, signed),
            OpKind::Assertion { message, file, line } => self.assertion(op, &message.0, &file.0, *line),
            OpKind::InlineAsm { text, .. } => {
                Err(self.stop(FaultKind::Unsupported(format!("inline assembly is not interpreted: {}", text.0))))
            }
            OpKind::ExternCall { symbol, .. } => {
                Err(self
                    .stop(FaultKind::Unsupported(format!("functions of bitcode are not interpreted: {}", symbol.0))))
            }
            OpKind::SpecialRegister { name } => self.special_register(op, &name.0),
            // One program runs at a time, and its operations one after the other: nothing to wait for, and no time to record.
            OpKind::Barrier {} | OpKind::GridDependency { .. } | OpKind::Record { .. } => self.tick(1),
            OpKind::AllocShared { .. } => self.alloc_shared(op),
            OpKind::AllocBarriers { count, .. } => self.alloc_barriers(op, *count),
            OpKind::Slot {} => self.slot(op),
            OpKind::SharedTrans { .. } | OpKind::SharedView {} => self.shared_again(op),
            OpKind::SharedSlice { offsets, shape } => self.shared_slice(op, offsets, shape),
            OpKind::LocalStore {} => self.local_store(op),
            OpKind::LocalLoad {} => self.local_load(op),
            // The block that they end looks at them.
            OpKind::Yields {} | OpKind::Condition {} | OpKind::Ret {} => Ok(()),
            _ => self.asynchronous(op),
        }
    }

    fn index(&mut self, op: Op, of: [u32; 3], axis: u32) -> Result<(), Stop> {
        let bits = of.get(axis as usize).copied().unwrap_or(0);
        self.set_result(op, Data::Scalar(u64::from(bits)));
        self.tick(1)
    }

    /// Registers for position and time; here there is one SM, and time is the step count.
    fn special_register(&mut self, op: Op, name: &str) -> Result<(), Stop> {
        let elem = self.result_type(op).elem().unwrap_or(Elem::I64);
        let bits = match name.trim_start_matches('%') {
            "globaltimer" | "clock" | "clock64" => self.report.steps,
            "smid" | "warpid" | "laneid" => 0,
            "nsmid" => 1,
            _ => return Err(self.stop(FaultKind::Unsupported(format!("the register `{name}` is not known")))),
        };
        let filled = self.fill(self.result_type(op), mask(bits, elem));
        self.set_result(op, filled);
        self.tick(1)
    }
}
