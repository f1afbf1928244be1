//! The interpreter of the tile IR as a device.

use super::host::{Executor, HostCode, HostDevice, HostKernel, HostMemory, Sanitize};
use super::{Backend, Code, DeviceKind, Image, Scratch, wrong_device};
use crate::error::RAISE;
use crate::interrupt::{Interrupt, step_limit};
use crate::{Error, Finding, Result};
use rtc_abi::{Metadata, ParamType};
use rtc_emulator::sanitize::{Check, Place, Report, SourceLocation};
use rtc_emulator::tensor_map::{ElementType, Fill, TensorMap, TensorMapError};
use rtc_ir::interp::{
    self, ArgValue, DescArg, FaultKind, FindingKind, GlobalMemory, LaunchConfig, MemoryError, Nearest, Reached,
    ReadState, RunOptions,
};
use rtc_source::{SourceMap, Span};
use std::sync::{Arc, Mutex, PoisonError};

/// An interpreting device with empty memory.
pub(crate) fn create() -> Arc<dyn Backend> {
    HostDevice::<Interpreter>::create(Sanitize::default())
}

/// Executes tile IR.
#[derive(Debug)]
enum Interpreter {}

impl Executor for Interpreter {
    const KIND: DeviceKind = DeviceKind::Interpreter;
    const NAME: &'static str = "interpreter";
    const KNOWS_SHAPES: bool = false;

    fn load(image: &Image<'_>) -> Result<Arc<dyn Code>> {
        let message = "the interpreter executes tile IR, not PTX".into();
        Err(wrong_device(Interpreter::NAME.into(), image.metadata, message))
    }
}

/// A kernel as the interpreter executes it.
#[derive(Debug)]
pub(crate) struct InterpretedKernel {
    kernel: rtc_ir::Kernel,
    sources: SourceMap,
    findings: Mutex<Vec<Finding>>,
}

impl InterpretedKernel {
    /// The kernel, ready to launch.
    pub(crate) fn create(kernel: rtc_ir::Kernel, sources: SourceMap) -> Arc<dyn Code> {
        HostKernel::create(InterpretedKernel { kernel, sources, findings: Mutex::default() })
    }

    /// A finding as the sanitizer reports it.
    fn report(&self, finding: &interp::Finding, memory: &rtc_emulator::Memory, kernel: &str) -> Report {
        let place = self.place(finding.span.iter().chain(&finding.callers), finding.program);
        let [x, y, z] = finding.program;
        let (check, text) = match finding.kind {
            FindingKind::Open { what, reached } => {
                let depends = match reached {
                    // The memory that the kernel was given has a name.
                    Reached::Memory(address) => match memory.near(address).filter(|near| address >= near.base) {
                        Some(near) => format!("`{}` depends on it, {} bytes in", near.name, address - near.base),
                        None => reached.to_string(),
                    },
                    _ => reached.to_string(),
                };
                let element = finding.element.as_ref().map_or(String::new(), |at| format!(", element {at:?}"));
                let first = format!("first in `{}`, program ({x}, {y}, {z}){element}", finding.op);
                ((Check::Open, "open-result"), format!("{what}, and {depends} ({first})"))
            }
            _ => ((Check::Promise, "false-promise"), finding.to_string()),
        };
        report(kernel, check, text, place)
    }

    /// Where something is in the source.
    fn place<'s>(&self, spans: impl Iterator<Item = &'s Span>, program: [u32; 3]) -> Place {
        let mut places = spans.map(|span| {
            let position = self.sources.position(*span);
            (self.sources.file(span.file).name.clone(), position.line, position.column)
        });
        let location = places.next().map(|(file, line, column)| SourceLocation {
            file,
            line,
            column,
            inlined_at: places.collect(),
        });
        Place { block: program, location, ..Place::default() }
    }

    /// `k.rt:5:4, inlined at k.rt:9:3`; empty without a span.
    fn location<'s>(&self, spans: impl Iterator<Item = &'s Span>) -> String {
        let place = |span: &Span| {
            let position = self.sources.position(*span);
            format!("{}:{}:{}", self.sources.file(span.file).name, position.line, position.column)
        };
        spans.map(place).collect::<Vec<_>>().join(", inlined at ")
    }
}

impl HostCode for InterpretedKernel {
    fn run(
        &self,
        memory: &HostMemory,
        metadata: &Metadata,
        [x, y, z]: [u32; 3],
        params: &mut [u8],
        _scratch: Option<Scratch>,
    ) -> Result<String> {
        let checks = memory.sanitize.checks;
        let memory = &mut *memory.lock();
        // Programs, not blocks: the interpreter knows no clusters.
        let grid = [x / metadata.cluster[0], y, z];
        let fault = |message: String, location: String| Error::Interpreter { message, location };
        let kernel = rtc_ir::verify(&self.kernel)
            .map_err(|errors| fault(rtc_ir::print_errors(&self.kernel, &errors), String::new()))?;
        let value = |param: &rtc_abi::Param| {
            let bytes = &params[param.offset as usize..][..param.size as usize];
            match param.ty {
                ParamType::Descriptor { .. } | ParamType::TensorMap => described(bytes).map(ArgValue::Desc),
                ParamType::Value(_) => {
                    Ok(ArgValue::Bits(bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))))
                }
            }
        };
        let args = metadata.params.iter().map(value).collect::<std::result::Result<_, _>>();
        let args = args.map_err(|e: TensorMapError| fault(e.to_string(), String::new()))?;
        let launch = LaunchConfig { grid, args };
        let interrupt = Interrupt::current();
        let options = RunOptions {
            max_operations: step_limit()?,
            interrupt: interrupt.as_ref().map(Interrupt::flag),
            ..RunOptions::default()
        };
        let mut reports = Vec::new();
        if checks.has(Check::Open)
            // A fault comes again below.
            && let Ok(found) = interp::leaning(kernel, &mut DeviceMemory(memory), &launch, &options)
        {
            reports.extend(found.iter().map(|finding| self.report(finding, memory, &metadata.kernel)));
        }
        let result = interp::run(kernel, &mut DeviceMemory(memory), &launch, &options);
        let findings = match &result {
            Ok(report) => &report.findings,
            Err(fault) => &fault.findings,
        };
        if checks.has(Check::Promise) {
            let is_promise = |finding: &&interp::Finding| matches!(finding.kind, FindingKind::FalsePromise { .. });
            let broken = findings.iter().filter(is_promise);
            reports.extend(broken.map(|finding| self.report(finding, memory, &metadata.kernel)));
            if let Err(fault) = &result
                && let FaultKind::BrokenPromise = fault.kind
            {
                let spans = fault.span.iter().chain(&fault.callers);
                let place = self.place(spans, fault.program);
                reports.push(report(&metadata.kernel, (Check::Promise, "false-promise"), fault.to_string(), place));
            }
        }
        let findings = findings.iter().map(|finding| {
            let (location, message) = (self.location(finding.span.iter()), finding.to_string());
            let place = self.place(finding.span.iter(), finding.program).location;
            Finding {
                code: code(&finding.kind),
                text: if location.is_empty() { message.clone() } else { format!("{location}: {message}") },
                message,
                place: place.map(|at| (at.file, at.line, at.column)),
            }
        });
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).extend(findings);
        if !reports.is_empty() {
            return Err(Error::Sanitizer(reports.into()));
        }
        let report = result.map_err(|f| match f.kind {
            FaultKind::Interrupted => Error::Interrupted,
            FaultKind::OperationLimit(_) => {
                fault(format!("{f}{RAISE}"), self.location(f.span.iter().chain(&f.callers)))
            }
            _ => fault(f.to_string(), self.location(f.span.iter().chain(&f.callers))),
        })?;
        Ok(report.printed)
    }

    fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut *self.findings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The code of what the interpreter finds.
fn code(kind: &FindingKind) -> &'static str {
    match kind {
        FindingKind::UninitializedRead { .. } => "uninitialized-global",
        FindingKind::UnwrittenShared => "uninitialized-shared",
        FindingKind::AddressOverflow => "address-overflow",
        FindingKind::IndexOutOfRange { .. } => "out-of-range",
        FindingKind::FalsePromise { .. } => "false-promise",
        FindingKind::Open { .. } => "open-result",
    }
}

fn report(kernel: &str, (check, code): (Check, &'static str), message: String, place: Place) -> Report {
    Report { check, code, message, kernel: kernel.to_owned(), place, related: None, count: 1, is_fatal: false }
}

/// A tensor map of the emulator, as the interpreter takes it.
fn described(map: &[u8]) -> std::result::Result<DescArg, TensorMapError> {
    let map = TensorMap::decode(map)?;
    let rank = map.rank();
    let mut desc = DescArg { base: map.address, pads_nan: map.fill == Fill::Nan, ..DescArg::default() };
    desc.rounds_tf32 = map.ty == ElementType::Tf32;
    desc.rows = map.box_dims.get(1).copied();
    for axis in 0..rank {
        let inner = rank - 1 - axis;
        desc.shape[axis] = map.dims[inner];
        desc.strides[axis] = if inner == 0 { map.ty.bytes().into() } else { map.strides[inner - 1] };
    }
    Ok(desc)
}

/// The device's memory as the interpreter sees it.
struct DeviceMemory<'m>(&'m mut rtc_emulator::Memory);

impl GlobalMemory for DeviceMemory<'_> {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> std::result::Result<ReadState, MemoryError> {
        let data = self.0.read(address, bytes.len()).map_err(refused)?;
        bytes.copy_from_slice(data);
        Ok(ReadState::Defined)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> std::result::Result<(), MemoryError> {
        self.0.write(address, bytes).map_err(refused)
    }
}

fn refused(error: rtc_emulator::AccessError) -> MemoryError {
    MemoryError::OutOfBounds(error.near.map(|near| Nearest { name: near.name, base: near.base, size: near.bytes }))
}
