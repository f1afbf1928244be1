//! Compiling kernels at run time (feature `jit`).
#![allow(unsafe_code)]

mod cached;
mod kernel;
mod passed;
mod prepared;
mod program;
mod remembered;
mod specialize;

pub use cached::{Cached, KERNELS, compile_cached, compile_tile_ir_cached, key};
pub use kernel::{JitKernel, Options, Ready};
pub use passed::Passed;
pub use prepared::{Again, Prepared};
pub use program::{Event, Program};
pub use remembered::Remembered;
pub use rtc_cache as cache;

use crate::interrupt::{Interrupt, RAISE, step_limit};
use crate::{Device, Error, Finding, Kernel, Result};
use rtc_abi::ParamType;
use rtc_compiler::{Artifact, Failure, LaunchOptions, Observer, Silent, Source, Spec, Specialization, TileKernel};
use rtc_emulator::sanitize::{Check, Checks, Place, Report, SourceLocation};
use rtc_emulator::tensor_map::{ElementType, Fill, TensorMap, TensorMapError};
use rtc_ir::interp::{
    self, ArgValue, DescArg, FaultKind, FindingKind, GlobalMemory, LaunchConfig, MemoryError, Nearest, Reached,
    ReadState, RunOptions,
};
use rtc_source::{Diagnostic, SourceMap, Span};
use std::sync::{Mutex, PoisonError};

/// A kernel that was compiled and loaded.
///
/// ```
/// use rtc_compiler::{Program, Signature, Source, Spec};
/// use rtc_runtime::{Device, args, jit::{CompileError, Compiled}};
/// let text = "@triton.jit\ndef one(x):\n    tl.store(x, 1.0)\n";
/// let spec = Spec { args: Signature::parse("*fp32")?.bind(&["x"])?, ..Spec::default() };
/// let device = Device::emulator();
/// let Compiled { kernel, warnings, .. } = device.compile_program(&Program::parse(&[Source::new("one.rt", text)]), &spec)?;
/// assert!(warnings.is_empty());
/// let mut x = device.zeros::<f32>(1)?;
/// kernel.launch(&device.default_stream(), 1, &args![&mut x])?;
/// assert_eq!(x.to_vec()?, [1.0]);
/// let same = device.compile(&[Source::new("one.rt", text)], &spec)?; // without the warnings
/// assert_eq!(same.metadata().source_hash, kernel.metadata().source_hash);
/// let wrong = device.compile_program(&Program::parse(&[Source::new("one.rt", "def one(:")]), &spec);
/// assert!(matches!(wrong, Err(CompileError::Compiler(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Compiled {
    /// Ready to launch.
    pub kernel: Kernel,
    /// PTX and metadata; none on the interpreter, which executes the tile IR.
    pub artifact: Option<Artifact>,
    /// What the compiler warns of.
    pub warnings: Vec<Diagnostic>,
}

/// Why there is no kernel.
#[derive(Clone, PartialEq)]
pub enum CompileError {
    /// The compiler refused or failed.
    Compiler(Failure),
    /// The device refused.
    Runtime(Error),
}

impl From<Failure> for CompileError {
    fn from(failure: Failure) -> CompileError {
        CompileError::Compiler(failure)
    }
}

impl From<Error> for CompileError {
    fn from(error: Error) -> CompileError {
        CompileError::Runtime(error)
    }
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompileError::Compiler(failure) => failure.fmt(f),
            CompileError::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::fmt::Debug for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CompileError {}

/// Compiles a kernel for a device and loads it there.
///
/// ```
/// use rtc_compiler::{Program, Signature, Silent, Source, Spec, source_hash};
/// use rtc_runtime::{Device, jit};
/// let program = Program::parse(&[Source::new("one.rt", "@triton.jit\ndef one(x):\n    tl.store(x, 1.0)\n")]);
/// let spec = Spec { args: Signature::parse("*fp32")?.bind(&["x"])?, ..Spec::default() }.specialize(&program)?;
/// let hash = source_hash(&program, &spec, "sm_80");
/// let compiled = jit::compile(&Device::emulator(), &program, &spec, "sm_80", hash, &mut Silent)?;
/// assert_eq!(compiled.kernel.metadata().kernel, "one");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compile(
    device: &Device,
    program: &rtc_compiler::Program,
    specialization: &Specialization,
    arch: &str,
    source_hash: String,
    observer: &mut dyn Observer,
) -> std::result::Result<Compiled, CompileError> {
    if device.is_interpreter() {
        let analysed = rtc_compiler::analyse(program, specialization, arch, source_hash, observer)?;
        let interpreted = InterpretedKernel::new(analysed.kernel, program.sources().clone());
        let kernel = device.interpreted(interpreted, analysed.metadata)?;
        return Ok(Compiled { kernel, artifact: None, warnings: analysed.warnings });
    }
    let compiled = rtc_compiler::compile(program, specialization, arch, source_hash, observer)?;
    // SAFETY: the compiler made PTX and metadata together.
    unsafe { load(device, compiled, observer) }
}

/// Loads what the compiler gave, or a cache of it.
///
/// # Safety
///
/// As for [`Device::load`]. What the compiler returns meets it, and so does an entry of a [cache](rtc_cache::Cache),
/// whose content is compared with its checksum.
///
/// ```
/// use rtc_compiler::{LaunchOptions, Silent, TileKernel};
/// let kernel = TileKernel::parse("nothing.tir", "kernel @nothing() warps 1 phase tile {\n  ret\n}\n").unwrap();
/// let compiled = kernel.compile(&LaunchOptions::default(), "sm_80", &mut Silent)?;
/// // SAFETY: the compiler made it.
/// let loaded = unsafe { rtc_runtime::jit::load(&rtc_runtime::Device::emulator(), compiled, &mut Silent)? };
/// assert_eq!(loaded.kernel.metadata().kernel, "nothing");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub unsafe fn load(
    device: &Device,
    compiled: rtc_compiler::Compiled,
    observer: &mut dyn Observer,
) -> std::result::Result<Compiled, CompileError> {
    observer.enter("load");
    // SAFETY: the caller vouches for what was compiled.
    let kernel = unsafe { device.load(&compiled.artifact.ptx, &compiled.artifact.metadata)? };
    Ok(Compiled { kernel, artifact: Some(compiled.artifact), warnings: compiled.warnings })
}

/// Compiles a kernel that is given as tile IR for a device and loads it there. What the text says of the launch counts; of
/// `options`, see [`TileKernel::compile`].
///
/// ```
/// use rtc_cache::{Cache, CacheConfig, Origin};
/// use rtc_compiler::{LaunchOptions, Silent, TileKernel};
/// use rtc_runtime::{Device, jit::{compile_tile_ir, compile_tile_ir_cached}};
/// # let directory = std::env::temp_dir().join(format!("rtc-tile-{}", std::process::id()));
/// let kernel = TileKernel::parse("nothing.tir", "kernel @nothing() warps 1 phase tile {\n  ret\n}\n").unwrap();
/// let options = LaunchOptions::default();
/// let compiled = compile_tile_ir(&Device::emulator(), &kernel, &options, "sm_80", &mut Silent)?;
/// assert_eq!(compiled.kernel.metadata().kernel, "nothing");
/// let cache = Cache::open(CacheConfig::new(&directory))?;
/// let cached = compile_tile_ir_cached(&cache, &kernel, &options, "sm_80", &mut Silent)?;
/// assert_eq!(cached.origin, Origin::Made);
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compile_tile_ir(
    device: &Device,
    kernel: &TileKernel,
    options: &LaunchOptions,
    arch: &str,
    observer: &mut dyn Observer,
) -> std::result::Result<Compiled, CompileError> {
    if device.is_interpreter() {
        let analysed = kernel.analyse(options, arch)?;
        let interpreted = InterpretedKernel::new(analysed.kernel, kernel.sources().clone());
        let kernel = device.interpreted(interpreted, analysed.metadata)?;
        return Ok(Compiled { kernel, artifact: None, warnings: analysed.warnings });
    }
    let compiled = kernel.compile(options, arch, observer)?;
    // SAFETY: the compiler made PTX and metadata together.
    unsafe { load(device, compiled, observer) }
}

impl Device {
    /// Compiles the kernel that `spec` describes from source text for this device, and loads it.
    ///
    /// The first source holds the kernel, the others are there to be imported. The result is not kept: whoever
    /// launches a kernel often keeps the [`Kernel`].
    pub fn compile(&self, sources: &[Source], spec: &Spec) -> std::result::Result<Kernel, CompileError> {
        Ok(self.compile_program(&rtc_compiler::Program::parse(sources), spec)?.kernel)
    }

    /// The same for a program that was read before, say with [levels](rtc_compiler::Program::with_levels) of its warnings; the warnings
    /// come with the kernel.
    pub fn compile_program(
        &self,
        program: &rtc_compiler::Program,
        spec: &Spec,
    ) -> std::result::Result<Compiled, CompileError> {
        if program.has_errors() {
            return Err(Failure::Diagnostics(program.diagnostics().to_vec()).into());
        }
        let specialization = spec.specialize(program)?;
        let arch = self.arch();
        let hash = rtc_compiler::source_hash(program, &specialization, &arch);
        compile(self, program, &specialization, &arch, hash, &mut Silent)
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
    fn new(kernel: rtc_ir::Kernel, sources: SourceMap) -> InterpretedKernel {
        InterpretedKernel { kernel, sources, findings: Mutex::default() }
    }

    /// Runs all programs of the grid; gives what the kernel printed. What `checks` find is an error.
    pub(crate) fn launch(
        &self,
        memory: &mut rtc_emulator::Memory,
        checks: Checks,
        grid: [u32; 3],
        params: &[u8],
        metadata: &rtc_abi::Metadata,
    ) -> Result<String> {
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

    /// What looked wrong in the launches since the last call.
    pub(crate) fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut *self.findings.lock().unwrap_or_else(PoisonError::into_inner))
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
