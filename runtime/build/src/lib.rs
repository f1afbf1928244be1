//! For a build script: compiles kernels at build time and makes a typed Rust module per source file.
//!
//! The program then ships PTX and needs only the driver: neither the compiler nor LLVM is linked into it.
//!
//! The build script needs no LLVM either: it calls an `rtc` executable of the same version, which is `$RTC`, or else the
//! `rtc` on `$PATH` (`cargo install --path runtime/cli` in the repository of rtc makes one). With the feature `linked` the
//! compiler is linked into the build script instead, which needs LLVM and MLIR 22 where the script is built; outside of
//! rtc's repository, `MLIR_SYS_220_PREFIX`, `LLVM_SYS_221_PREFIX` and `TABLEGEN_220_PREFIX` must then name where they
//! are, such as `/usr/lib/llvm-22`.
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
//! kernel.launch(stream, rows, &x, &mut y, stride, stride, columns)?; // launch often
//! ```
//!
//! Kernels carry no types, so each instance says them by a signature (`rtc build --help` says its form); parameters with a value
//! there are constexprs and are not arguments of the Rust function. Pointers take `&buffer`, `&mut buffer` or a slice of one,
//! numbers take the Rust type of their name, fp16 and bf16 take an `f32`.
//!
//! `launch_args` takes the same arguments by name, which is the safer call where several strides or sizes stand in a row:
//!
//! ```ignore
//! let args = softmax::SoftmaxKernelArgs { x_ptr: &x, y_ptr: &mut y, x_stride, y_stride, columns };
//! kernel.launch_args(stream, rows, args)?;
//! ```
//!
//! Where the compiler proved how far the kernel gets from each pointer, as [`Metadata`](rtc_abi::Metadata) states, there is a
//! safe `launch`, which checks the lengths of the slices. Where it did not, there is an unsafe `launch_unchecked` (and
//! `launch_args_unchecked`), whose
//! documentation names the pointer and the reason. The module contains `unsafe` blocks and allows them; a crate with
//! `#![forbid(unsafe_code)]` includes it by a crate of its own.
//!
//! One kernel can be compiled for several element types and values, which become generics of its function, and for arguments of
//! which more is known, among which each launch chooses: see [`Instance`]. All of them are declared here; nothing is
//! compiled while the program runs. What `rtc tune -o tuned.json` found is taken by [`Instance::tuned`]; [`Config::cubins`] adds
//! machine code to the PTX.
#![warn(clippy::missing_errors_doc)]

#[cfg(feature = "linked")]
mod c_launch;
#[cfg(feature = "linked")]
mod c_source;
#[cfg(feature = "linked")]
mod cubins;
mod executable;
#[cfg(feature = "linked")]
mod expand;
#[cfg(feature = "linked")]
mod generate;
mod instance;
#[cfg(feature = "linked")]
mod launch;
#[cfg(feature = "linked")]
mod linked;
#[cfg(feature = "linked")]
mod named;
#[cfg(feature = "linked")]
mod names;
#[cfg(feature = "linked")]
mod tuned;

/// Parts for the command `rtc`: kernels that it has compiled, and requests of build scripts. They change without notice;
/// semantic versioning does not cover them.
#[cfg(feature = "linked")]
#[doc(hidden)]
pub mod internal {
    pub use crate::linked::{KernelArtifacts, serve, write_c, write_rust};
}

pub use instance::Instance;
pub use rtc_abi::spec::LaunchOptions;
pub use rtc_assembler::{Assembler, Usage};

use rtc_source::Level;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// What is compiled, for which targets.
///
/// ```no_run
/// // build.rs
/// rtc_build::Config::new()
///     .arch(["sm_80", "sm_90a"])
///     .kernel("softmax_kernel", "*fp32:16, *fp32:16, i32, i32, i32, BLOCK=1024")
///     .include("kernels/parts")
///     .allow("deprecated")
///     .warn("index-may-overflow")
///     .deny("warnings")
///     .deny_jit()
///     .cubins()
///     .ptxas("/usr/local/cuda/bin/ptxas")
///     .libdevice("/usr/local/cuda/nvvm/libdevice/libdevice.10.bc")
///     .executable("/opt/rtc/bin/rtc")
///     .compile(&["kernels/softmax.rt"])
///     .unwrap();
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Config {
    /// The `rtc` to call, if it was named.
    #[serde(skip)]
    executable: Option<PathBuf>,
    archs: Vec<String>,
    instances: Vec<Instance>,
    include: Vec<PathBuf>,
    out_dir: Option<PathBuf>,
    levels: Vec<(String, Level)>,
    libdevice: Option<PathBuf>,
    #[serde(default)]
    deny_jit: bool,
    #[serde(default)]
    cubins: bool,
    #[serde(default)]
    c_source: bool,
    #[serde(default)]
    ptxas: Option<PathBuf>,
}

/// What `rtc embed` reads from its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Request {
    config: Config,
    files: Vec<PathBuf>,
    /// Where the modules go.
    out_dir: PathBuf,
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

    /// The module does not compile in a program whose `rtc-runtime` has the feature `jit`: such a program could compile
    /// kernels while it runs.
    pub fn deny_jit(mut self) -> Config {
        self.deny_jit = true;
        self
    }

    /// Also assembles each kernel, by NVIDIA's `ptxas`: `$RTC_PTXAS`, or the one on `$PATH`, or, where that is known to make wrong
    /// code for a target, [another one](Assembler::find_for); where there is no other, the warning `assembler-defect` says so. GPUs of just the targets that are
    /// built for then load machine code, without the driver's compilation; all others take the PTX, which is there as well.
    pub fn cubins(mut self) -> Config {
        self.cubins = true;
        self
    }

    /// Also writes a header and a source in C beside each module, over the CUDA driver alone: for a program in C or C++ that
    /// launches the same kernels. What is chosen by type or value has a function for each choice, such as
    /// `add_kernel_fp16_1024_launch`.
    ///
    /// ```no_run
    /// rtc_build::Config::new()
    ///     .instance(rtc_build::Instance::new("add_kernel", "*fp32, *fp32, i32").specialize("x:16, y:16, n:16"))
    ///     .c_sources()
    ///     .out_dir("include")
    ///     .compile(&["kernels/add.rt"])
    ///     .unwrap(); // include/add.h, include/add.c
    /// ```
    pub fn c_sources(mut self) -> Config {
        self.c_source = true;
        self
    }

    /// The `ptxas` to call.
    pub fn ptxas(mut self, path: impl Into<PathBuf>) -> Config {
        self.ptxas = Some(path.into());
        self
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

    /// The `rtc` to call; with the feature `linked` it is called only if it is named here.
    pub fn executable(mut self, path: impl Into<PathBuf>) -> Config {
        self.executable = Some(path.into());
        self
    }

    /// Where the modules go; `$OUT_DIR/rtc`, where `include_kernels!` looks for them, by default.
    pub fn out_dir(mut self, directory: impl Into<PathBuf>) -> Config {
        self.out_dir = Some(directory.into());
        self
    }

    /// Compiles every instance whose kernel is in one of the files, and writes one Rust module per file.
    ///
    /// # Errors
    ///
    /// The message of the compiler for what is wrong in the files or the instances, else that the compiler was not found or
    /// has another version, or that a file cannot be read or written.
    pub fn compile(&self, files: &[impl AsRef<Path>]) -> Result<(), Error> {
        let out_dir = match (&self.out_dir, std::env::var_os("OUT_DIR")) {
            (Some(directory), _) => directory.clone(),
            (None, Some(directory)) => Path::new(&directory).join("rtc"),
            (None, None) => return Err(error("OUT_DIR is not set; call this from a build script or set `out_dir`")),
        };
        let files = files.iter().map(|file| file.as_ref().to_owned()).collect();
        let request = Request { config: self.clone(), files, out_dir };
        #[cfg(feature = "linked")]
        if self.executable.is_none() {
            return linked::compile(&request);
        }
        executable::compile(&request)
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
