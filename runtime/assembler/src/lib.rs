//! Machine code of PTX, by NVIDIA's assembler: where a `ptxas` is, what it makes, and which versions are known to make wrong
//! code.

mod defects;
mod places;

pub use defects::{Defect, Version};
pub use places::look_in;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The remedy for a missing assembler.
const REMEDY: &str = "it comes with the CUDA toolkit and with the Python package nvidia-cuda-nvcc; put it on PATH, set \
                      RTC_PTXAS to it, or build without cubins";

/// The variable that names the assembler to call.
const NAMED: &str = "RTC_PTXAS";

/// Why there is no machine code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

fn error(message: impl Into<String>) -> Error {
    Error(message.into())
}

/// NVIDIA's assembler, `ptxas`, which makes the machine code of one target (a cubin) of PTX.
///
/// ```
/// use rtc_assembler::Assembler;
/// let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
/// match Assembler::find() {
///     Some(assembler) => assert_eq!(&assembler.assemble(ptx, "nothing", "sm_80")?[..4], b"\x7fELF"),
///     None => println!("there is no CUDA toolkit here"),
/// }
/// # Ok::<(), rtc_assembler::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembler {
    path: PathBuf,
}

impl Assembler {
    /// That executable; whether it is there is seen when it is called.
    ///
    /// ```
    /// let assembler = rtc_assembler::Assembler::new("/nowhere/ptxas");
    /// let error = assembler.assemble(".version 8.0", "k", "sm_80").unwrap_err();
    /// assert!(error.to_string().starts_with("cannot run the assembler `/nowhere/ptxas`"));
    /// ```
    pub fn new(path: impl Into<PathBuf>) -> Assembler {
        Assembler { path: path.into() }
    }

    /// `$RTC_PTXAS` where that is set, or else the first of these that runs: the one on `$PATH`, in the toolkit that `$CUDA_HOME`
    /// or `$CUDA_PATH` names, in `/usr/local/cuda`. Nothing where none runs.
    ///
    /// ```
    /// if let Some(assembler) = rtc_assembler::Assembler::find() {
    ///     println!("found {}", assembler.path().display());
    /// }
    /// ```
    pub fn find() -> Option<Assembler> {
        let runs = |assembler: &Assembler| assembler.check().is_ok();
        match places::variable(NAMED) {
            Some(named) => Some(Assembler::new(named)).filter(runs),
            None => places::usual().map(Assembler::new).find(runs),
        }
    }

    /// Like [`find`](Assembler::find); but where that one is known to make wrong code for a target, and `$RTC_PTXAS` does not
    /// name it, another without that defect, if there is one: in `/usr/local/cuda-*`, or of the Python packages nvidia-cuda-nvcc
    /// and triton in the active environment and in the folders of [`look_in`].
    ///
    /// ```
    /// use rtc_assembler::{Assembler, Defect};
    /// if let Some((assembler, version)) = Assembler::find_for("sm_90a").and_then(|a| a.version().map(|v| (a, v))) {
    ///     let is_known = Defect::of_target(version, "sm_90a").is_some();
    ///     println!("{} {}", assembler.path().display(), if is_known { "has a defect" } else { "is good" });
    /// }
    /// ```
    pub fn find_for(arch: &str) -> Option<Assembler> {
        let first = Assembler::find();
        let named = places::variable(NAMED).is_some();
        if named || first.as_ref().is_some_and(|found| found.is_good_for(arch)) {
            return first;
        }
        Assembler::find_good(arch).or(first)
    }

    /// The first of all places, but for `$RTC_PTXAS`, that says its version and has no defect that is known for a target.
    fn find_good(arch: &str) -> Option<Assembler> {
        places::usual().chain(places::others()).map(Assembler::new).find(|found| found.is_good_for(arch))
    }

    /// Whether it says its version and has no defect that is known for a target.
    ///
    /// ```
    /// assert!(!rtc_assembler::Assembler::new("/nowhere/ptxas").is_good_for("sm_90a"));
    /// ```
    pub fn is_good_for(&self, arch: &str) -> bool {
        self.version().is_some_and(|version| Defect::of_target(version, arch).is_none())
    }

    /// Whether it can be called.
    ///
    /// ```
    /// assert!(rtc_assembler::Assembler::new("/nowhere/ptxas").check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        let output = Command::new(&self.path).arg("--version").output();
        let shown = self.path.display();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(error(format!("the assembler `{shown}` ends with {}; {REMEDY}", output.status))),
            Err(e) => Err(error(format!("cannot run the assembler `{shown}`: {e}; {REMEDY}"))),
        }
    }

    /// Its version, as major and minor; nothing where it cannot be called or does not say.
    ///
    /// ```
    /// assert_eq!(rtc_assembler::Assembler::new("/nowhere/ptxas").version(), None);
    /// ```
    pub fn version(&self) -> Option<(u32, u32)> {
        let output = Command::new(&self.path).arg("--version").output().ok()?;
        version_in(&String::from_utf8_lossy(&output.stdout))
    }

    /// The text of a warning, if this assembler is known to make wrong code of such kernels.
    ///
    /// ```
    /// assert_eq!(rtc_assembler::Assembler::new("/nowhere/ptxas").defect("k", "sm_90a", "wgmma.mma_async"), None);
    /// ```
    pub fn defect(&self, kernel: &str, arch: &str, ptx: &str) -> Option<String> {
        // No version is asked for where no version has a defect.
        Defect::of_kernel((0, 0), arch, ptx)?;
        let version = self.version()?;
        let defect = Defect::of_kernel(version, arch, ptx)?;
        Some(defect.warning(kernel, &format!("`{}`", self.path.display()), version))
    }

    /// The executable.
    ///
    /// ```
    /// assert_eq!(rtc_assembler::Assembler::new("ptxas").path().to_str(), Some("ptxas"));
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The resources of a kernel's thread on a target.
    ///
    /// ```
    /// use rtc_assembler::Assembler;
    /// let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
    /// if let Some(assembler) = Assembler::find() {
    ///     let usage: rtc_assembler::Usage = assembler.usage(ptx, "nothing", "sm_80")?;
    ///     assert!(usage.registers > 0 && usage.spilled == 0);
    /// }
    /// # Ok::<(), rtc_assembler::Error>(())
    /// ```
    pub fn usage(&self, ptx: &str, kernel: &str, arch: &str) -> Result<Usage, Error> {
        self.assemble_with_usage(ptx, kernel, arch).map(|assembled| assembled.usage)
    }

    /// Assembles the PTX of a kernel for a target, and keeps what the assembler says of it.
    ///
    /// ```
    /// use rtc_assembler::{Assembled, Assembler};
    /// let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
    /// if let Some(assembler) = Assembler::find() {
    ///     let Assembled { cubin, usage, remarks, .. } = assembler.assemble_with_usage(ptx, "nothing", "sm_80")?;
    ///     assert!(cubin.starts_with(b"\x7fELF") && usage.spilled == 0 && remarks.contains("registers"));
    /// }
    /// # Ok::<(), rtc_assembler::Error>(())
    /// ```
    pub fn assemble_with_usage(&self, ptx: &str, kernel: &str, arch: &str) -> Result<Assembled, Error> {
        let (cubin, remarks) = self.call(ptx, kernel, arch, &["-v"])?;
        let usage = usage_in(&remarks);
        let usage = usage.ok_or_else(|| error(format!("`{}` says nothing of registers", self.path.display())))?;
        Ok(Assembled { cubin, usage, remarks })
    }

    /// Assembles the PTX of a kernel for a target; gives the content of the cubin. An example stands at [`Assembler`].
    pub fn assemble(&self, ptx: &str, kernel: &str, arch: &str) -> Result<Vec<u8>, Error> {
        self.call(ptx, kernel, arch, &[]).map(|(cubin, _)| cubin)
    }

    /// The machine code of a kernel as text, with the lines of the source: assembled with line information, and shown by
    /// NVIDIA's `nvdisasm`, which lies beside the assembler or on `$PATH`. Nothing where it is missing.
    ///
    /// ```
    /// let assembler = rtc_assembler::Assembler::new("/nowhere/ptxas");
    /// assert_eq!(assembler.disassembled(".version 8.0", "k", "sm_80"), None);
    /// ```
    pub fn disassembled(&self, ptx: &str, kernel: &str, arch: &str) -> Option<String> {
        let (cubin, _) = self.call(ptx, kernel, arch, &["-lineinfo"]).ok()?;
        let mut file = tempfile::Builder::new().prefix("rtc-").suffix(".cubin").tempfile().ok()?;
        std::io::Write::write_all(&mut file, &cubin).ok()?;
        let beside = self.path.with_file_name("nvdisasm");
        [beside, "nvdisasm".into()].iter().find_map(|path| {
            let output = Command::new(path).args(["-g", "-c"]).arg(file.path()).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        })
    }

    /// The content of the cubin, and what the assembler says of it if it is given these options.
    fn call(&self, ptx: &str, kernel: &str, arch: &str, options: &[&str]) -> Result<(Vec<u8>, String), Error> {
        let shown = self.path.display();
        // The name is unpredictable before it exists, or write to it.
        let folder = tempfile::Builder::new().prefix("rtc-cubin-").tempdir();
        let folder = folder.map_err(|e| error(format!("cannot make a temporary folder for `{shown}`: {e}")))?;
        let (source, target) = (folder.path().join("kernel.ptx"), folder.path().join("kernel.cubin"));
        std::fs::write(&source, ptx).map_err(|e| error(format!("cannot write {}: {e}", source.display())))?;
        let mut command = Command::new(&self.path);
        command.arg(format!("-arch={arch}")).arg(&source).arg("-o").arg(&target).args(options);
        let output = command.output();
        let output = output.map_err(|e| error(format!("cannot run the assembler `{shown}`: {e}; {REMEDY}")))?;
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            return Err(error(format!("`{shown}` refuses kernel `{kernel}` for {arch}:\n{}", said.trim_end())));
        }
        let cubin = std::fs::read(&target);
        let cubin = cubin.map_err(|e| error(format!("`{shown}` wrote no {}: {e}", target.display())))?;
        Ok((cubin, said))
    }
}

/// The machine code of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assembled {
    /// The content of the cubin.
    pub cubin: Vec<u8>,
    /// The resources of a thread.
    pub usage: Usage,
    /// All that the assembler printed.
    pub remarks: String,
}

/// The resources of a kernel's thread, as the assembler reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Registers.
    pub registers: u32,
    /// Bytes that are stored because there are no more registers.
    pub spilled: u32,
}

/// The usage in what `ptxas -v` prints.
fn usage_in(said: &str) -> Option<Usage> {
    let before = |words: &str| {
        let (text, _) = said.split_once(words)?;
        text.split_whitespace().next_back()?.parse().ok()
    };
    Some(Usage { registers: before(" registers")?, spilled: before(" bytes spill stores").unwrap_or(0) })
}

/// The version in what `ptxas --version` prints: `Cuda compilation tools, release 12.8, V12.8.93`.
fn version_in(text: &str) -> Option<(u32, u32)> {
    let (_, rest) = text.split_once("release ")?;
    let (major, rest) = rest.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.trim().parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Usage, usage_in, version_in};

    #[test]
    fn the_usage_is_read_from_what_the_assembler_prints() {
        let said = "ptxas info    : Compiling entry function 'k' for 'sm_90a'\nptxas info    : Function properties for k\n    \
                    16 bytes stack frame, 12 bytes spill stores, 12 bytes spill loads\nptxas info    : Used 168 registers, \
                    used 1 barriers\n";
        assert_eq!(usage_in(said), Some(Usage { registers: 168, spilled: 12 }));
        assert_eq!(usage_in("ptxas info    : 0 bytes gmem\n"), None);
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(version_in("Cuda compilation tools, release 12.8, V12.8.93\nBuild cuda_12.8.r12.8"), Some((12, 8)));
        assert_eq!(version_in("release 13.1"), Some((13, 1)));
        assert_eq!(version_in("GNU assembler 2.40"), None);
    }
}
