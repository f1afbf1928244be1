//! Compiling kernels at run time (feature `jit`).
#![allow(unsafe_code)]

pub(crate) mod assembled;
pub(crate) mod cached;
mod kernel;
pub(crate) mod passed;
pub(crate) mod prepared;
mod program;
pub(crate) mod remembered;
mod specialize;

pub use cached::{Cached, compile_cached, compile_tile_ir_cached};
use cached::{KERNELS, key};
pub use kernel::{JitKernel, Options, SpecializedKernel};
pub use program::{JitEvent, JitProgram};
use remembered::Remembered;
pub use rtc_cache as cache;
pub use rtc_compiler as compiler;
pub use rtc_compiler::{Failure, LaunchOptions, Signature, Source, Spec, Specialization};

use crate::backend::MachineCode;
#[cfg(feature = "emulator")]
use crate::backend::interpreter::InterpretedKernel;
use crate::{Device, Error, Kernel};
use rtc_compiler::{Artifact, Observer, Silent, TileKernel};
use rtc_source::{Diagnostic, SourceMap};
use std::sync::Arc;

/// A kernel that was compiled and loaded.
///
/// ```
/// use rtc_compiler::{Program, Signature, Source, Spec};
/// use rtc_runtime::{Device, args, jit::{CompileError, CompiledKernel}};
/// let text = "@triton.jit\ndef one(x):\n    tl.store(x, 1.0)\n";
/// let spec = Spec { args: Signature::parse("*fp32")?.bind(&["x"])?, ..Spec::default() };
/// let device = Device::emulator();
/// let CompiledKernel { kernel, warnings, .. } = device.compile_program(&Program::parse(&[Source::new("one.rt", text)]), &spec)?;
/// assert!(warnings.is_empty());
/// let mut x = device.zeros::<f32>(1)?;
/// kernel.launch(device.default_stream(), 1, &args![&mut x])?;
/// assert_eq!(x.to_vec()?, [1.0]);
/// let same = device.compile(&[Source::new("one.rt", text)], &spec)?; // without the warnings
/// assert_eq!(same.metadata().source_hash, kernel.metadata().source_hash);
/// let wrong = device.compile_program(&Program::parse(&[Source::new("one.rt", "def one(:")]), &spec);
/// assert!(matches!(wrong, Err(CompileError::Compiler { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CompiledKernel {
    /// Ready to launch.
    pub kernel: Kernel,
    /// PTX and metadata; none on the interpreter, which executes the tile IR.
    pub artifact: Option<Artifact>,
    /// What the compiler warns of.
    pub warnings: Vec<Diagnostic>,
}

/// Why there is no kernel. Its text shows the places in the source that it is about.
///
/// ```
/// let program = rtc_runtime::Device::emulator().jit(&[("k.rt", "@triton.jit\ndef k(x):\n    tl.store(x, y)\n")])?;
/// let mut x = program.device().zeros::<f32>(1)?;
/// let options = rtc_runtime::jit::Options::new();
/// let error = program.kernel("k")?.specialize(&rtc_runtime::args![&mut x], &options).unwrap_err();
/// assert!(error.to_string().contains("--> k.rt:3:17"));
/// # Ok::<(), rtc_runtime::jit::CompileError>(())
/// ```
#[derive(Clone)]
pub enum CompileError {
    /// The compiler refused or failed.
    Compiler {
        /// Why.
        failure: Failure,
        /// The source, where its diagnostics point into it.
        sources: Option<Arc<SourceMap>>,
    },
    /// The device refused.
    Runtime(Error),
}

impl CompileError {
    /// The failure of a compilation of these sources.
    ///
    /// ```
    /// use rtc_runtime::jit::{CompileError, Failure, Source, compiler::Program};
    /// let program = Program::parse(&[Source::new("k.rt", "@triton.jit\ndef k(:\n    pass\n")]);
    /// let error = CompileError::new(Failure::Diagnostics(program.diagnostics().to_vec()), program.sources());
    /// assert!(error.to_string().contains("--> k.rt:2:6"), "{error}");
    /// ```
    pub fn new(failure: Failure, sources: &SourceMap) -> CompileError {
        let sources = matches!(failure, Failure::Diagnostics(_)).then(|| Arc::new(sources.clone()));
        CompileError::Compiler { failure, sources }
    }
}

impl PartialEq for CompileError {
    fn eq(&self, other: &CompileError) -> bool {
        match (self, other) {
            (CompileError::Compiler { failure: one, .. }, CompileError::Compiler { failure: other, .. }) => {
                one == other
            }
            (CompileError::Runtime(one), CompileError::Runtime(other)) => one == other,
            _ => false,
        }
    }
}

impl From<Failure> for CompileError {
    fn from(failure: Failure) -> CompileError {
        CompileError::Compiler { failure, sources: None }
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
            CompileError::Compiler { failure: Failure::Diagnostics(list), sources: Some(sources) } => {
                let pictures = list.iter().map(|found| rtc_source::render(sources, found, false));
                f.write_str(pictures.collect::<Vec<_>>().join("\n").trim_end())
            }
            CompileError::Compiler { failure, .. } => failure.fmt(f),
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
///
/// # Errors
///
/// [`CompileError::Compiler`] for what the compiler refuses, [`CompileError::Runtime`] for what the device refuses, as in
/// [`Device::load`].
pub fn compile(
    device: &Device,
    program: &rtc_compiler::Program,
    specialization: &Specialization,
    arch: &str,
    source_hash: String,
    observer: &mut dyn Observer,
) -> std::result::Result<CompiledKernel, CompileError> {
    let failed = |failure| CompileError::new(failure, program.sources());
    #[cfg(feature = "emulator")]
    if device.is_interpreter() {
        let analysed = rtc_compiler::analyse(program, specialization, arch, source_hash, observer).map_err(failed)?;
        let interpreted = InterpretedKernel::create(analysed.kernel, program.sources().clone());
        let kernel = device.interpreted(interpreted, analysed.metadata)?;
        return Ok(CompiledKernel { kernel, artifact: None, warnings: analysed.warnings });
    }
    let compiled = rtc_compiler::compile(program, specialization, arch, source_hash, observer).map_err(failed)?;
    // SAFETY: the compiler made PTX and metadata together.
    unsafe { load(device, compiled, observer) }
}

/// Loads what the compiler gave, or a cache of it.
///
/// # Errors
///
/// [`CompileError::Runtime`] for what the device refuses, as in [`Device::load`].
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
) -> std::result::Result<CompiledKernel, CompileError> {
    // SAFETY: the caller guarantees what was compiled.
    unsafe { load_ahead(device, compiled, None, observer) }
}

/// The same with machine code that was made ahead.
///
/// # Safety
///
/// As for [`load`].
unsafe fn load_ahead(
    device: &Device,
    compiled: rtc_compiler::Compiled,
    ahead: Option<&MachineCode>,
    observer: &mut dyn Observer,
) -> std::result::Result<CompiledKernel, CompileError> {
    observer.enter("load");
    // SAFETY: the caller guarantees what was compiled.
    let kernel = unsafe { device.load_ahead(&compiled.artifact.ptx, ahead, &compiled.artifact.metadata)? };
    Ok(CompiledKernel { kernel, artifact: Some(compiled.artifact), warnings: compiled.warnings })
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
///
/// # Errors
///
/// [`CompileError::Compiler`] for what the compiler refuses, [`CompileError::Runtime`] for what the device refuses, as in
/// [`Device::load`].
pub fn compile_tile_ir(
    device: &Device,
    kernel: &TileKernel,
    options: &LaunchOptions,
    arch: &str,
    observer: &mut dyn Observer,
) -> std::result::Result<CompiledKernel, CompileError> {
    let failed = |failure| CompileError::new(failure, kernel.sources());
    #[cfg(feature = "emulator")]
    if device.is_interpreter() {
        let analysed = kernel.analyse(options, arch).map_err(failed)?;
        let interpreted = InterpretedKernel::create(analysed.kernel, kernel.sources().clone());
        let kernel = device.interpreted(interpreted, analysed.metadata)?;
        return Ok(CompiledKernel { kernel, artifact: None, warnings: analysed.warnings });
    }
    let compiled = kernel.compile(options, arch, observer).map_err(failed)?;
    // SAFETY: the compiler made PTX and metadata together.
    unsafe { load(device, compiled, observer) }
}

impl Device {
    /// Compiles the kernel that `spec` describes from source text for this device, and loads it.
    ///
    /// The first source holds the kernel, the others are there to be imported. The result is not kept: a program that
    /// launches a kernel often keeps the [`Kernel`].
    ///
    /// # Errors
    ///
    /// [`CompileError::Compiler`] for what the compiler refuses, [`CompileError::Runtime`] for what the device refuses, as in
    /// [`Device::load`].
    pub fn compile(&self, sources: &[Source], spec: &Spec) -> std::result::Result<Kernel, CompileError> {
        Ok(self.compile_program(&rtc_compiler::Program::parse(sources), spec)?.kernel)
    }

    /// The same for a program that was read before, say with [levels](rtc_compiler::Program::with_levels) of its warnings; the warnings
    /// come with the kernel.
    ///
    /// # Errors
    ///
    /// [`CompileError::Compiler`] for mistakes in the program, for a `spec` that does not fit it, and for what cannot be
    /// compiled; [`CompileError::Runtime`] for what the device refuses, as in [`Device::load`].
    pub fn compile_program(
        &self,
        program: &rtc_compiler::Program,
        spec: &Spec,
    ) -> std::result::Result<CompiledKernel, CompileError> {
        if program.has_errors() {
            return Err(CompileError::new(Failure::Diagnostics(program.diagnostics().to_vec()), program.sources()));
        }
        let specialization =
            spec.specialize(program).map_err(|failure| CompileError::new(failure, program.sources()))?;
        let arch = self.arch().to_string();
        let hash = rtc_compiler::source_hash(program, &specialization, &arch);
        compile(self, program, &specialization, &arch, hash, &mut Silent)
    }
}
