//! Machine code that is made ahead, by an assembler of the version that `ptxas` answers with.

use crate::{lines, process, stub};
use rtc_runtime::internal::assemble_ahead;
use rtc_runtime::jit::cache::{Cache, CacheConfig};
use rtc_runtime::jit::compiler::{Program, Silent};
use rtc_runtime::jit::{CompileError, Source, Spec, compile_cached};
use rtc_runtime::{Device, Result};
use rtc_test_needs::stubs::ptxas;

const TEXT: &str = "@triton.jit\ndef one(x):\n    tl.store(x + tl.arange(0, 128), 1.0)\n";
const SPEC: &str = r#"{"kernel": "one", "options": {"num_warps": 4}, "args": [{"name": "x", "type": "*fp32"}]}"#;

/// Loads a kernel that was compiled, and once more after it was assembled, as processes do one after the other.
pub(crate) fn case() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheConfig::new(folder.path())).unwrap();
    let (program, spec) = (Program::parse(&[Source::new("one.rt", TEXT)]), Spec::parse(SPEC).unwrap());
    let specialization = spec.specialize(&program).unwrap();
    let device = Device::cuda(0)?;
    let load = || {
        let program =
            device.jit_program(Program::parse(&[Source::new("one.rt", TEXT)]))?.with_cache(Some(cache.clone()));
        program.kernel("one")?.specialize_for(&spec).map(drop)
    };
    let failed = |error: CompileError| panic!("{error}");
    load().unwrap_or_else(failed);
    let made = compile_cached(&cache, &program, &specialization, "sm_90a", &mut Silent).unwrap().compiled;
    assemble_ahead(&cache, &made.artifact.ptx, &made.artifact.metadata).unwrap();
    println!("says: assembled");
    load().unwrap_or_else(failed);
    Ok(())
}

fn said(version: &str) -> String {
    let (stub, folder) = (stub(), tempfile::tempdir().unwrap());
    let mut process = process("ahead");
    process.env("LD_LIBRARY_PATH", stub.path()).env("RTC_STUB", "loads:146");
    let said = lines(process.env("RTC_PTXAS", ptxas(folder.path(), version)));
    said.lines().filter(|line| !line.starts_with("driver: ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn machine_code_that_was_made_ahead_takes_the_place_of_the_drivers() {
    // With 128 registers one more block of four warps fits: both assemblers are asked for that, too.
    let driver = "PTX of 146 registers\nPTX of 128 registers";
    let ahead = driver.replace("PTX", "machine code");
    assert_eq!(said("12.9"), format!("{driver}\nassembled\n{ahead}"));
    // Code of a later CUDA than the driver's is not for it, nor is that of an assembler with a defect.
    for version in ["13.0", "12.8"] {
        assert_eq!(said(version), format!("{driver}\nassembled\n{driver}"), "{version}");
    }
}
