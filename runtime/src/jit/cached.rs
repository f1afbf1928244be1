//! Compiling through a cache on disk.

use rtc_cache::{Cache, Error, Key, Origin};
use rtc_compiler::{Compiled, Failure, LaunchOptions, Observer, Packed, Program, Specialization, Stage, TileKernel};
use rtc_source::SourceMap;
use std::time::Duration;

/// The kind of entries that are compiled kernels.
pub const KERNELS: &str = "kernel";

/// How long another process's compilation of the same kernel is waited for; after that both compile.
const WAIT: Duration = Duration::from_secs(120);

/// A result, and how it was come by.
///
/// ```
/// use rtc_cache::{Cache, CacheConfig, Origin};
/// use rtc_compiler::{Program, Signature, Silent, Source, Spec};
/// use rtc_runtime::jit::{Cached, compile_cached};
/// use rtc_runtime::internal::{KERNELS, key};
/// # let directory = std::env::temp_dir().join(format!("rtc-cached-{}", std::process::id()));
/// let text = "@triton.jit\ndef one(x):\n    tl.store(x, 1.0)\n";
/// let program = Program::parse(&[Source::new("one.rt", text)]);
/// let spec = Spec { args: Signature::parse("*fp32")?.bind(&["x"])?, ..Spec::default() };
/// let specialization = spec.specialize(&program)?;
/// let cache = Cache::open(CacheConfig::new(&directory))?;
/// let first: Cached = compile_cached(&cache, &program, &specialization, "sm_80", &mut Silent)?;
/// assert_eq!((first.origin, first.key), (Origin::Made, key(&program, &specialization, "sm_80")));
/// let second = compile_cached(&cache, &program, &specialization, "sm_80", &mut Silent)?;
/// assert_eq!((second.origin, cache.list()?[0].kind.as_str()), (Origin::Cache, KERNELS));
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Cached {
    /// Kernel and warnings, as the compiler gives them.
    pub compiled: Compiled,
    /// Whether it was in the cache.
    pub origin: Origin,
    /// What it is called in the cache.
    pub key: Key,
    /// What the cache could not do. To be shown; the result does not depend on it.
    pub problems: Vec<Error>,
}

/// What a compilation is called in the cache: a hash of all that its result depends on.
pub fn key(program: &Program, specialization: &Specialization, arch: &str) -> Key {
    let names = rtc_compiler::names_matter(program, specialization);
    Key::from_bytes(rtc_compiler::fingerprint(program, specialization, arch, names))
}

/// Gives what [`rtc_compiler::compile`] gives, from the cache if it is there, and otherwise puts it there.
///
/// Of several processes and threads that want the same at the same time, one compiles. What the kernel's `static_print`
/// said is said again. A failure is not kept.
///
/// # Errors
///
/// As for [`rtc_compiler::compile`]. What is wrong with the cache is no error; it is listed in [`Cached::problems`].
pub fn compile_cached(
    cache: &Cache,
    program: &Program,
    specialization: &Specialization,
    arch: &str,
    observer: &mut dyn Observer,
) -> Result<Cached, Failure> {
    let key = key(program, specialization, arch);
    fetch(cache, key, program.sources(), observer, |observer| {
        let hash = rtc_compiler::source_hash(program, specialization, arch);
        rtc_compiler::compile(program, specialization, arch, hash, observer)
    })
}

/// The same for a kernel that is given as tile IR.
///
/// # Errors
///
/// As for [`compile_cached`].
pub fn compile_tile_ir_cached(
    cache: &Cache,
    kernel: &TileKernel,
    options: &LaunchOptions,
    arch: &str,
    observer: &mut dyn Observer,
) -> Result<Cached, Failure> {
    let key = Key::from_bytes(rtc_compiler::tile_fingerprint(kernel.sources(), options, arch));
    fetch(cache, key, kernel.sources(), observer, |observer| kernel.compile(options, arch, observer))
}

fn fetch(
    cache: &Cache,
    key: Key,
    sources: &SourceMap,
    observer: &mut dyn Observer,
    compile: impl FnOnce(&mut dyn Observer) -> Result<Compiled, Failure>,
) -> Result<Cached, Failure> {
    observer.enter("cache");
    let mut said = false;
    let fetched = cache.get_or_make(
        KERNELS,
        &key,
        WAIT,
        |bytes| rtc_compiler::unpack(sources, bytes),
        || {
            said = true;
            let mut recorder = Recorder { observer: &mut *observer, prints: Vec::new() };
            let compiled = compile(&mut recorder)?;
            let packed = Packed { compiled, prints: recorder.prints };
            let bytes = rtc_compiler::pack(sources, &packed);
            Ok((packed, bytes))
        },
    )?;
    if !said {
        fetched.value.prints.iter().for_each(|line| observer.static_print(line));
    }
    Ok(Cached { compiled: fetched.value.compiled, origin: fetched.origin, key, problems: fetched.problems })
}

/// Notes what the kernel prints while it is compiled.
struct Recorder<'o> {
    observer: &'o mut dyn Observer,
    prints: Vec<String>,
}

impl Observer for Recorder<'_> {
    fn enter(&mut self, stage: &'static str) {
        self.observer.enter(stage);
    }

    fn static_print(&mut self, line: &str) {
        self.prints.push(line.to_owned());
        self.observer.static_print(line);
    }

    fn long(&mut self, instructions: u64) {
        self.observer.long(instructions);
    }

    fn wants_locations(&self) -> bool {
        self.observer.wants_locations()
    }

    fn after_pass(&mut self, pass: &'static str, text: &dyn Fn() -> String) {
        self.observer.after_pass(pass, text);
    }

    fn wants(&self, stage: Stage) -> bool {
        self.observer.wants(stage)
    }

    fn text(&mut self, stage: Stage, text: &str) {
        self.observer.text(stage, text);
    }
}
