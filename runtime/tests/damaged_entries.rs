//! Damaged entries of the cache: what is not whole is refused, removed and made again; what is whole by its checksum, but no
//! compiled kernel, is made again, too.
#![cfg(feature = "jit")]
#![allow(clippy::unwrap_used)]

#[path = "../testing/tests/damage/mod.rs"]
mod damage;

use rtc_compiler::{Program, Signature, Silent, Source, Spec};
use rtc_runtime::internal::KERNELS;
use rtc_runtime::jit::cache::{Cache, CacheConfig, Origin};
use rtc_runtime::jit::compile_cached;
use std::fs;

/// With a warning, which is kept beside the kernel.
const SOURCE: &str = "\
@triton.jit
def one(x, n):
    tl.static_print('said')
    flag = None
    if n > 0:
        flag = 1
    tl.store(x, 1.0)
";

#[test]
fn entries() {
    let directory = tempfile::tempdir().unwrap();
    let program = Program::parse(&[Source::new("one.rt", SOURCE)]);
    let args = Signature::parse("*fp32, i32").unwrap().bind(&["x", "n"]).unwrap();
    let specialization = Spec { args, ..Spec::default() }.specialize(&program).unwrap();
    let cache = Cache::open(CacheConfig::new(directory.path())).unwrap();
    let compile = || compile_cached(&cache, &program, &specialization, "sm_80", &mut Silent).unwrap();
    let first = compile();
    assert!(!first.compiled.warnings.is_empty());
    let path = cache.path(KERNELS, &first.key);
    let (file, content) = (fs::read(&path).unwrap(), cache.get(KERNELS, &first.key).unwrap().unwrap());
    let mut random = damage::random();

    // The file is damaged.
    let mut whole = 0;
    for _ in 0..damage::rounds(500) {
        fs::write(&path, random.damage(&file)).unwrap();
        match cache.get(KERNELS, &first.key) {
            Ok(Some(found)) => {
                assert!(found == content, "a damaged entry was taken for whole");
                whole += 1;
            }
            Ok(None) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(whole < 50, "{whole}");

    // The content is, and its checksum is right.
    let mut read = 0;
    for _ in 0..damage::rounds(5_000) {
        let damaged = random.damage(&content);
        if let Some(packed) = rtc_compiler::unpack(program.sources(), &damaged) {
            read += 1;
            for warning in &packed.compiled.warnings {
                let _ = rtc_source::render(program.sources(), warning, false);
            }
        }
    }
    assert!(read > 10, "{read}");

    // A compilation still returns the kernel.
    for damaged in [&b""[..], b"x", &[0xff; 64], &content[..content.len() - 1]] {
        cache.put(KERNELS, &first.key, damaged).unwrap();
        let again = compile();
        assert_eq!((again.origin, &again.compiled), (Origin::Made, &first.compiled));
        assert_eq!(compile().origin, Origin::Cache);
    }
}
