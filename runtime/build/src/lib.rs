//! For a build script: compiles kernels at build time and makes a typed Rust module per source file.
//!
//! The program then ships PTX and needs only the driver: neither the compiler nor LLVM is linked into it.
//!
//! ```no_run
//! // build.rs
//! rtc_build::Config::new()
//!     .arch(["sm_80", "sm_90a"])
//!     .kernel("softmax_kernel", "*fp32:16, *fp32:16, i32, i32, i32, BLOCK=1024")
//!     .instance(rtc_build::Instance::new("scale_kernel", "*fp32:16, fp32, i32").num_warps(8).named("scale_wide"))
//!     .deny("warnings")
//!     .compile(&["kernels/softmax.rt"])
//!     .unwrap();
//! ```
//!
//! ```ignore
//! // main.rs
//! rtc_runtime::include_kernels!("softmax"); // the module `softmax`
//! let device = rtc_runtime::Device::cuda(0)?;
//! let stream = device.default_stream();
//! let kernel = softmax::softmax_kernel(&device)?; // load once
//! kernel.launch(&stream, rows, &output, &input, stride, stride, columns)?; // launch often
//! ```
//!
//! Kernels carry no types, so each instance says them by a signature (its form: [`Signature`]); parameters with a value
//! there are constexprs and are not arguments of the Rust function. Pointers take a `&Buffer` or `(&Buffer, offset)`,
//! numbers take the Rust type of their name, fp16 and bf16 take an `f32`.

mod generate;

use generate::Embedded;
use rtc_compiler::source::Severity;
use rtc_compiler::{Failure, LaunchOptions, Level, Levels, Program, Signature, Silent, Source, Spec};
use std::fmt;
use std::path::{Path, PathBuf};

/// What is compiled, for which targets.
#[derive(Clone, Debug, Default)]
pub struct Config {
    archs: Vec<String>,
    instances: Vec<Instance>,
    include: Vec<PathBuf>,
    out_dir: Option<PathBuf>,
    levels: Vec<(String, Level)>,
    libdevice: Option<PathBuf>,
}

/// One kernel for one signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    kernel: String,
    signature: String,
    name: Option<String>,
    options: LaunchOptions,
}

impl Instance {
    /// The kernel of that name with arguments as the signature says.
    pub fn new(kernel: impl Into<String>, signature: impl Into<String>) -> Instance {
        Instance { kernel: kernel.into(), signature: signature.into(), name: None, options: LaunchOptions::default() }
    }

    /// The name of the Rust function; that of the kernel by default. Two instances of one kernel need it.
    pub fn named(mut self, name: impl Into<String>) -> Instance {
        self.name = Some(name.into());
        self
    }

    /// Warps per program.
    pub fn num_warps(mut self, num_warps: u32) -> Instance {
        self.options.num_warps = num_warps;
        self
    }

    /// Depth of software pipelines.
    pub fn num_stages(mut self, num_stages: u32) -> Instance {
        self.options.num_stages = num_stages;
        self
    }

    /// All launch options.
    pub fn options(mut self, options: LaunchOptions) -> Instance {
        self.options = options;
        self
    }
}

/// Why the kernels were not compiled. Both its forms are text for people, so `unwrap()` in a build script reads well.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Config {
    /// Nothing yet: no kernels, the default target.
    pub fn new() -> Config {
        Config::default()
    }

    /// The targets; at load the newest that the device can run is taken. `sm_80` if none is given.
    pub fn arch<T: Into<String>>(mut self, archs: impl IntoIterator<Item = T>) -> Config {
        self.archs.extend(archs.into_iter().map(Into::into));
        self
    }

    /// A kernel with default options.
    pub fn kernel(self, kernel: impl Into<String>, signature: impl Into<String>) -> Config {
        self.instance(Instance::new(kernel, signature))
    }

    /// A kernel with options of its own.
    pub fn instance(mut self, instance: Instance) -> Config {
        self.instances.push(instance);
        self
    }

    /// A further directory to look for imported files in, after that of the file that imports.
    pub fn include(mut self, directory: impl Into<PathBuf>) -> Config {
        self.include.push(directory.into());
        self
    }

    /// Does not show a warning: its code, `warnings` for all that are on, or `all`. The last word on a code counts.
    pub fn allow(self, code: impl Into<String>) -> Config {
        self.level(code, Level::Allow)
    }

    /// Shows a warning, also where it is off by default, such as `index-may-overflow`.
    pub fn warn(self, code: impl Into<String>) -> Config {
        self.level(code, Level::Warn)
    }

    /// Makes a warning an error.
    pub fn deny(self, code: impl Into<String>) -> Config {
        self.level(code, Level::Deny)
    }

    fn level(mut self, code: impl Into<String>, level: Level) -> Config {
        self.levels.push((code.into(), level));
        self
    }

    /// Takes the functions of `libdevice` from NVIDIA's library (`libdevice.10.bc` of the CUDA toolkit), bit for bit,
    /// instead of the standard library.
    pub fn libdevice(mut self, file: impl Into<PathBuf>) -> Config {
        self.libdevice = Some(file.into());
        self
    }

    /// Where the modules go; `$OUT_DIR/rtc`, where `include_kernels!` looks for them, by default.
    pub fn out_dir(mut self, directory: impl Into<PathBuf>) -> Config {
        self.out_dir = Some(directory.into());
        self
    }

    /// Compiles every instance whose kernel is in one of the files, and writes one Rust module per file.
    pub fn compile(&self, files: &[impl AsRef<Path>]) -> Result<(), Error> {
        let out_dir = match (&self.out_dir, std::env::var_os("OUT_DIR")) {
            (Some(directory), _) => directory.clone(),
            (None, Some(directory)) => Path::new(&directory).join("rtc"),
            (None, None) => return Err(error("OUT_DIR is not set; call this from a build script or set `out_dir`")),
        };
        let mut levels = Levels::default();
        for (code, level) in &self.levels {
            levels.set(code, *level).map_err(|unknown| error(unknown.to_string()))?;
        }
        let read = |file| Ok(self.read(file)?.with_levels(levels.clone()));
        let programs = files.iter().map(|file| read(file.as_ref())).collect::<Result<Vec<_>, Error>>()?;
        for instance in &self.instances {
            let is_here = |program: &Program| program.kernels().iter().any(|k| k.name == instance.kernel);
            if !programs.iter().any(is_here) {
                return Err(error(format!("there is no `@triton.jit` function `{}` in these files", instance.kernel)));
            }
        }
        for (file, program) in files.iter().zip(&programs) {
            self.compile_file(file.as_ref(), program, &out_dir)?;
        }
        Ok(())
    }

    fn read(&self, file: &Path) -> Result<Program, Error> {
        let read = |path: &Path| {
            println!("cargo::rerun-if-changed={}", path.display());
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|e| error(format!("cannot read {}: {e}", path.display())))?;
            Ok(Source::new(path.display().to_string(), text))
        };
        let directory = file.parent().unwrap_or(Path::new(""));
        let directories: Vec<&Path> =
            std::iter::once(directory).chain(self.include.iter().map(PathBuf::as_path)).collect();
        let program = Program::parse_importing(read(file)?, &mut |module| {
            // A dotted name is a path; a package is its `__init__`.
            let path = module.replace('.', "/");
            let ends = [".rt", ".py", "/__init__.rt", "/__init__.py"];
            let candidates = directories.iter().flat_map(|d| ends.map(|end| d.join(format!("{path}{end}"))));
            candidates.into_iter().find(|path| path.is_file()).map(|path| read(&path)).transpose()
        })?;
        if program.has_errors() {
            return Err(explain(&program, Failure::Diagnostics(program.diagnostics().to_vec())));
        }
        let Some(library) = &self.libdevice else { return Ok(program) };
        println!("cargo::rerun-if-changed={}", library.display());
        let bitcode = std::fs::read(library).map_err(|e| error(format!("cannot read {}: {e}", library.display())))?;
        program.with_libdevice(bitcode).map_err(|e| error(format!("{}: {e}", library.display())))
    }

    fn compile_file(&self, file: &Path, program: &Program, out_dir: &Path) -> Result<(), Error> {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut embedded: Vec<Embedded> = Vec::new();
        for instance in &self.instances {
            if !program.kernels().iter().any(|k| k.name == instance.kernel) {
                continue;
            }
            let name = instance.name.clone().unwrap_or_else(|| instance.kernel.clone());
            if embedded.iter().any(|e| e.name == name) {
                return Err(error(format!(
                    "two instances are called `{name}`; give them names with `Instance::named`"
                )));
            }
            embedded.push(self.compile_instance(program, instance, name)?);
        }
        let write = |path: PathBuf, text: &str| {
            std::fs::write(&path, text).map_err(|e| error(format!("cannot write {}: {e}", path.display())))
        };
        std::fs::create_dir_all(out_dir).map_err(|e| error(format!("cannot make {}: {e}", out_dir.display())))?;
        for kernel in &embedded {
            for artifact in &kernel.variants {
                let (name, arch) = (&kernel.name, &artifact.metadata.arch);
                write(out_dir.join(format!("{stem}.{name}.{arch}.ptx")), &artifact.ptx)?;
                write(out_dir.join(format!("{stem}.{name}.{arch}.json")), &artifact.metadata.to_json())?;
            }
        }
        write(out_dir.join(format!("{stem}.rs")), &generate::module(&stem, &embedded))
    }

    fn compile_instance(&self, program: &Program, instance: &Instance, name: String) -> Result<Embedded, Error> {
        let of = |message: String| error(format!("kernel `{}`: {message}", instance.kernel));
        let info = program.kernel(Some(&instance.kernel)).map_err(|f| explain(program, f))?;
        let params: Vec<&str> = info.params.iter().map(|p| p.name.as_str()).collect();
        let args =
            Signature::parse(&instance.signature).and_then(|s| s.bind(&params)).map_err(|e| of(e.to_string()))?;
        let spec = Spec { kernel: Some(instance.kernel.clone()), args, options: instance.options.clone(), arch: None };
        let specialization = spec.specialize(program).map_err(|f| explain(program, f))?;
        let default = [rtc_compiler::DEFAULT_ARCH.to_owned()];
        let archs = if self.archs.is_empty() { &default[..] } else { &self.archs };
        let mut variants = Vec::new();
        for arch in archs {
            let hash = rtc_compiler::source_hash(program, &spec, arch);
            let compiled = rtc_compiler::compile(program, &specialization, arch, hash, &mut Silent)
                .map_err(|failure| explain(program, failure))?;
            // What is only for information is left out.
            for warning in compiled.warnings.iter().filter(|d| d.severity != Severity::Note) {
                let text = rtc_compiler::source::render(program.sources(), warning, false);
                text.lines().for_each(|line| println!("cargo::warning={line}"));
            }
            variants.push(compiled.artifact);
        }
        Ok(Embedded { name, signature: instance.signature.clone(), variants })
    }
}

/// A failure with its pictures of the source.
fn explain(program: &Program, failure: Failure) -> Error {
    match &failure {
        Failure::Diagnostics(list) => {
            let pictures: Vec<String> =
                list.iter().map(|d| rtc_compiler::source::render(program.sources(), d, false)).collect();
            error(pictures.join("\n"))
        }
        other => error(other.to_string()),
    }
}

fn error(message: impl Into<String>) -> Error {
    Error { message: message.into() }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", self.message)
    }
}

impl std::error::Error for Error {}
