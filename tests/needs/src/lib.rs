//! The requirements of tests in addition to the workspace: an assembler, a server, a GPU.
//!
//! A test without its requirement calls [`missing`] and returns. That is a failure if `RTC_REQUIRE` names the
//! requirement, as in continuous integration; otherwise the test passes, and `make test` lists it at its end as
//! skipped.

#[cfg(unix)]
pub mod stubs;

use std::env;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;

/// Something that a test needs and a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A Python with numpy.
    Python,
    /// A Python with numpy and Ray.
    Ray,
    /// NVIDIA's assembler, of a release that supports the PTX version and the target.
    Ptxas,
    /// NVIDIA's library of functions, `libdevice.10.bc`.
    Libdevice,
    /// The program `redis-server`.
    Redis,
    /// The editor Neovim, 0.7 or later.
    Neovim,
    /// Servers of object stores that speak HTTP: `wsgidav` and `moto_server`.
    HttpStores,
    /// The right to mount a file system of a few pages.
    Mount,
    /// A GPU with its driver.
    Gpu,
    /// Chromium or Chrome.
    Browser,
}

impl Need {
    /// All of them.
    pub const ALL: [Need; 10] = [
        Need::Python,
        Need::Ray,
        Need::Ptxas,
        Need::Libdevice,
        Need::Redis,
        Need::Neovim,
        Need::HttpStores,
        Need::Mount,
        Need::Gpu,
        Need::Browser,
    ];

    /// The name in `RTC_REQUIRE`.
    pub fn name(self) -> &'static str {
        match self {
            Need::Python => "python",
            Need::Ray => "ray",
            Need::Ptxas => "ptxas",
            Need::Libdevice => "libdevice",
            Need::Redis => "redis",
            Need::Neovim => "neovim",
            Need::HttpStores => "http-stores",
            Need::Mount => "mount",
            Need::Gpu => "gpu",
            Need::Browser => "browser",
        }
    }

    /// How a machine comes by it.
    fn remedy(self) -> &'static str {
        match self {
            Need::Python => "`make setup` installs a Python with numpy where PyPI can be reached",
            Need::Ray => {
                "`make setup` installs the Python package ray where PyPI can be reached; without a network none can"
            }
            Need::Ptxas => {
                "`make setup` installs NVIDIA's assembler where PyPI can be reached; `RTC_PTXAS` names another"
            }
            Need::Libdevice => "it is part of the CUDA toolkit; `RTC_LIBDEVICE` names it",
            Need::Redis => "`make setup` installs redis-server where it runs as root",
            Need::Neovim => "`make setup` installs neovim where it runs as root",
            Need::HttpStores => "pip install wsgidav cheroot 'moto[server,s3]'",
            Need::Mount => "only root may mount a file system",
            Need::Gpu => "the test needs an NVIDIA GPU",
            Need::Browser => "Debian's package is chromium",
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reports that the running test lacks what it needs and checks nothing, or not all that it could.
///
/// # Panics
/// Where `RTC_REQUIRE`, a list of names with commas between them, names the need.
pub fn missing(need: Need) {
    let required = env::var("RTC_REQUIRE").unwrap_or_default();
    assert!(!is_listed(&required, need), "RTC_REQUIRE names {need}, which is missing: {}", need.remedy());
    eprintln!("SKIPPED: no {need}: {}", need.remedy());
    // Runners hide what passing tests print; `make test` shows this file instead.
    let Some(path) = env::var_os("RTC_SKIPPED") else { return };
    // Threads of `libtest-mimic` have no name; then the name of the executable is used for all of its tests.
    let thread = std::thread::current().name().filter(|name| *name != "main").map(str::to_owned);
    let executable = || Some(env::current_exe().ok()?.file_stem()?.to_string_lossy().into_owned());
    let test = env::var("NEXTEST_TEST_NAME").ok().or(thread).or_else(executable).unwrap_or_default();
    // One write of a short line: lines of tests that run at the same time stay whole.
    let line = format!("{need}\t{test}\t{}\n", need.remedy());
    let written =
        OpenOptions::new().create(true).append(true).open(&path).and_then(|mut f| f.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("{}: {error}", path.display());
    }
}

fn is_listed(required: &str, need: Need) -> bool {
    required.split(',').any(|name| name.trim() == need.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_whole_needs() {
        assert!(is_listed("redis, ptxas", Need::Ptxas));
        assert!(!is_listed("redis, ptxas-13", Need::Ptxas));
        assert!(!is_listed("", Need::Redis));
    }

    /// Only what a machine without a GPU cannot have, or what none of the gates runs, may be missing there.
    #[test]
    fn continuous_integration_requires_what_can_be_installed() {
        let scripts = [
            include_str!("../../../.ci/run"),
            include_str!("../../../.github/workflows/ci.yml"),
            include_str!("../../../.gitlab-ci.yml"),
        ];
        let lists = scripts.map(|script| {
            let (_, list) = script.split_once("RTC_REQUIRE").expect("the script sets the variable");
            list.lines().next().unwrap_or_default().trim_start_matches(['=', ':', ' '])
        });
        for list in lists {
            assert_eq!(list, lists[0], "the forges require the same");
            for need in Need::ALL {
                let optional =
                    matches!(need, Need::Browser | Need::Gpu | Need::HttpStores | Need::Libdevice | Need::Mount);
                assert_eq!(is_listed(list, need), !optional, "{need}");
            }
        }
    }
}
