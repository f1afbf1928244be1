//! Sources whose kernels are compiled when they are launched.
#![allow(unsafe_code)]

use super::{CompiledKernel, JitKernel, KERNELS, assembled};
use crate::jit::{self, CompileError};
use crate::{Device, Kernel};
use rtc_cache::{Cache, CacheConfig, Error, Key, Origin};
use rtc_compiler::{Failure, Observer, Silent, Source, Specialization};
use rtc_source::{Code, Severity};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Sources whose kernels are compiled for a device when they are launched, for the arguments of the launch.
///
/// What was compiled is kept in memory, and on disk for the next process ([`CacheConfig::from_env`] says where).
///
/// ```
/// use rtc_runtime::{Device, jit::{JitEvent, JitProgram}};
/// let device = Device::emulator();
/// let program: JitProgram = device.jit(&[("one.rt", "@triton.jit\ndef one(x):\n    tl.store(x, 1.0)\n")])?;
/// let program = program.with_cache(None).with_observer(|event| {
///     if let JitEvent::Warning(text) = event {
///         eprintln!("{text}");
///     }
/// });
/// assert!(program.device().is_same(&device));
/// assert_eq!(program.source().kernel(Some("one"))?.name, "one");
/// # Ok::<(), rtc_runtime::jit::CompileError>(())
/// ```
#[derive(Clone)]
pub struct JitProgram {
    device: Device,
    arch: String,
    program: Arc<rtc_compiler::Program>,
    /// Opened when the first kernel is compiled, as the environment says; or what was given.
    cache: Arc<OnceLock<Option<Cache>>>,
    observer: Arc<dyn Fn(&JitEvent<'_>) + Send + Sync>,
}

/// What happens while kernels are made ready; see [`JitProgram::with_observer`].
#[derive(Debug)]
#[non_exhaustive]
pub enum JitEvent<'e> {
    /// The compiler warns; the text shows where.
    Warning(&'e str),
    /// The kernel's `static_print` gives a line.
    StaticPrint(&'e str),
    /// The cache could not do something; the kernel is right without it.
    CacheProblem(&'e Error),
    /// A kernel was made ready.
    Ready {
        /// Its name.
        kernel: &'e str,
        /// What it is compiled for, as its signature.
        signature: &'e str,
        /// What it is called in the cache.
        key: Key,
        /// Where it came from.
        origin: Origin,
    },
}

impl fmt::Debug for JitProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JitProgram").field("device", &self.device).field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Device {
    /// Reads sources whose kernels are to be compiled at their launches, for this device. The first holds the kernels, the
    /// others are there to be imported.
    ///
    /// ```
    /// use rtc_runtime::{Device, args, jit::Options};
    /// let source = "
    /// @triton.jit
    /// def scale(x, y, n, factor, BLOCK: tl.constexpr):
    ///     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ///     tl.store(y + i, factor * tl.load(x + i, mask=i < n), mask=i < n)
    /// ";
    /// let device = Device::emulator();
    /// let scale = device.jit(&[("scale.rt", source)])?.kernel("scale")?;
    /// let (x, mut y) = (device.upload(&[3.0f32; 100])?, device.zeros::<f32>(100)?);
    /// let options = Options::new().constexpr("BLOCK", 128).num_warps(2);
    /// scale.launch(device.default_stream(), 1, &args![&x, &mut y, 100, 2.0], &options)?;
    /// assert_eq!(y.to_vec()?, [6.0; 100]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompileError::Compiler`] for mistakes that are seen without types, such as those of syntax.
    pub fn jit(&self, sources: &[(&str, &str)]) -> Result<JitProgram, CompileError> {
        let files: Vec<Source> = sources.iter().map(|(name, text)| Source::new(*name, *text)).collect();
        self.jit_program(rtc_compiler::Program::parse(&files))
    }

    /// The same for a program that was read before, say with [levels](rtc_compiler::Program::with_levels) of its warnings.
    ///
    /// # Errors
    ///
    /// As for [`Device::jit`].
    pub fn jit_program(&self, program: rtc_compiler::Program) -> Result<JitProgram, CompileError> {
        if program.has_errors() {
            return Err(CompileError::new(Failure::Diagnostics(program.diagnostics().to_vec()), program.sources()));
        }
        Ok(JitProgram {
            device: self.clone(),
            arch: self.arch().to_string(),
            program: Arc::new(program),
            cache: Arc::default(),
            observer: Arc::new(print),
        })
    }
}

impl JitProgram {
    /// Keeps what is compiled in this cache, or nowhere on disk.
    pub fn with_cache(mut self, cache: Option<Cache>) -> JitProgram {
        self.cache = Arc::new(OnceLock::from(cache));
        self
    }

    /// The cache on disk. Without a setting, a directory that was named but cannot be used is reported.
    fn cache(&self) -> Option<&Cache> {
        let open = || match CacheConfig::from_env().and_then(Cache::open) {
            Ok(cache) => Some(cache),
            Err(problem) => {
                if CacheConfig::is_named_by_env() {
                    (self.observer)(&JitEvent::CacheProblem(&problem));
                }
                None
            }
        };
        self.cache.get_or_init(open).as_ref()
    }

    /// Tells `observer` what happens. Without one, warnings and what is wrong with the cache go to stderr.
    pub fn with_observer(mut self, observer: impl Fn(&JitEvent<'_>) + Send + Sync + 'static) -> JitProgram {
        self.observer = Arc::new(observer);
        self
    }

    /// The kernel of that name.
    ///
    /// # Errors
    ///
    /// [`CompileError::Compiler`] if there is no such kernel, or its `do_not_specialize` is no list that can be read.
    pub fn kernel(&self, name: &str) -> Result<JitKernel, CompileError> {
        let info = self.program.kernel(Some(name))?;
        if let Some(keyword) = &info.unread {
            let message = format!("kernel `{name}`: write out the list of `{keyword}`, as in `{keyword}=[\"n\"]`");
            return Err(Failure::request(Code::DO_NOT_SPECIALIZE, message).into());
        }
        Ok(JitKernel::new(self.clone(), info))
    }

    /// The files that it was read from.
    pub fn source(&self) -> &rtc_compiler::Program {
        &self.program
    }

    /// The device that it is for.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What a specialization is called in caches.
    pub(crate) fn key(&self, specialization: &Specialization) -> Key {
        jit::key(&self.program, specialization, &self.arch)
    }

    /// Compiles a kernel, or takes it from the cache on disk, and loads it.
    pub(crate) fn make(&self, specialization: &Specialization, key: Key) -> Result<Kernel, CompileError> {
        let cache = if self.device.is_interpreter() { None } else { self.cache() };
        let mut prints = Prints(&*self.observer);
        let (compiled, origin) = match cache {
            Some(cache) => {
                let cached = jit::compile_cached(cache, &self.program, specialization, &self.arch, &mut prints)
                    .map_err(|failure| CompileError::new(failure, self.program.sources()))?;
                cached.problems.iter().for_each(|problem| (self.observer)(&JitEvent::CacheProblem(problem)));
                (self.load(cache, &key, cached.compiled)?, cached.origin)
            }
            None => {
                let hash = rtc_compiler::source_hash(&self.program, specialization, &self.arch);
                let compiled =
                    jit::compile(&self.device, &self.program, specialization, &self.arch, hash, &mut prints)?;
                (compiled, Origin::Made)
            }
        };
        for warning in compiled.warnings.iter().filter(|found| found.severity != Severity::Note) {
            let text = rtc_source::render(self.program.sources(), warning, false);
            (self.observer)(&JitEvent::Warning(&text));
        }
        let kinds: Vec<String> = specialization.args.iter().map(|arg| format!("{}={}", arg.name, arg.kind)).collect();
        let (kernel, signature) = (&specialization.kernel, &kinds.join(", "));
        (self.observer)(&JitEvent::Ready { kernel, signature, key, origin });
        Ok(compiled.kernel)
    }

    /// Loads what the cache or the compiler gave. What cannot be loaded is not kept for the next process.
    fn load(&self, cache: &Cache, key: &Key, compiled: rtc_compiler::Compiled) -> Result<CompiledKernel, CompileError> {
        let kept = || assembled::kept(cache, &compiled.artifact.ptx, &compiled.artifact.metadata);
        let ahead = if self.device.is_cuda() { kept() } else { Ok(None) };
        let ahead = ahead.unwrap_or_else(|problem| {
            (self.observer)(&JitEvent::CacheProblem(&problem));
            None
        });
        // SAFETY: it comes from `jit::compile_cached`: from the compiler, or from an entry that it wrote; so does what was
        // assembled of it.
        let loaded = unsafe { jit::load_ahead(&self.device, compiled, ahead.as_ref(), &mut Silent) };
        loaded.inspect_err(|_| {
            if let Err(problem) = cache.remove(KERNELS, key) {
                (self.observer)(&JitEvent::CacheProblem(&problem));
            }
        })
    }
}

/// Tells what kernels print while they are compiled.
struct Prints<'o>(&'o (dyn Fn(&JitEvent<'_>) + Send + Sync));

impl Observer for Prints<'_> {
    fn static_print(&mut self, line: &str) {
        (self.0)(&JitEvent::StaticPrint(line));
    }
}

/// The output for events without an observer.
fn print(event: &JitEvent<'_>) {
    match event {
        JitEvent::Warning(text) => eprintln!("{}", text.trim_end()),
        JitEvent::StaticPrint(line) => println!("{line}"),
        // Of a cache that others fill.
        JitEvent::CacheProblem(problem) if problem.is_read_only() => {}
        JitEvent::CacheProblem(problem) => eprintln!("warning[cache]: {problem}"),
        JitEvent::Ready { .. } => {}
    }
}
