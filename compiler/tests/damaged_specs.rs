//! Damaged SPEC.json texts give errors, never a panic, and end soon, also where what is left of them is compiled as far as
//! tile IR.

#[path = "../../runtime/testing/tests/damage/mod.rs"]
mod damage;

use rtc_compiler::{Program, Silent, Source, Spec};

const SOURCE: &str = "\
@triton.jit
def kernel(x, y, n, d, t, flag: tl.constexpr, scale: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if flag:
        v = v * scale + t[0]
    tl.static_assert(BLOCK >= 1)
    tl.store(y + i, v + tl.sum(d.load([0, 0])), mask=i < n)
";

const SPEC: &str = r#"{"kernel": "kernel", "arch": "sm_90a", "args": [
  {"name": "x", "type": "*fp32", "divisible_by": 16}, {"name": "y", "type": "*fp32", "divisible_by": 16},
  {"name": "n", "type": "i32", "divisible_by": 16}, {"name": "d", "type": "tensordesc<fp16[4,8]>"},
  {"name": "t", "tuple": [{"type": "fp32"}, {"constexpr": 3}]}, {"name": "flag", "constexpr": true},
  {"name": "scale", "constexpr": 0.5}, {"name": "BLOCK", "constexpr": 64}],
  "options": {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "enable_fp_fusion": false}}"#;

/// Reads, specializes and analyses; gives whether all went well.
fn analysed(program: &Program, text: &str) -> Result<(), String> {
    let spec = Spec::parse(text).map_err(|e| e.to_string())?;
    let specialization = spec.specialize(program).map_err(|e| e.to_string())?;
    let arch = spec.arch.as_deref().unwrap_or("sm_90a");
    rtc_compiler::analyse(program, &specialization, arch, String::new(), &mut Silent).map_err(|e| e.to_string())?;
    Ok(())
}

#[test]
fn specs() {
    let program = Program::parse(&[Source::new("k.rt", SOURCE)]);
    assert_eq!(analysed(&program, SPEC), Ok(()));
    let (mut random, mut read) = (damage::random(), 0);
    for _ in 0..damage::rounds(20_000) {
        let text = random.damage(SPEC.as_bytes());
        let text = String::from_utf8_lossy(&text);
        read += u32::from(Spec::parse(&text).is_ok());
        // The error is a message, and not a bug of the compiler.
        if let Err(message) = analysed(&program, &text) {
            assert!(!message.is_empty() && !message.contains("internal"), "{message}");
        }
    }
    assert!(read > 50, "only {read} could be read");
}

#[test]
fn deep_nesting_ends_with_an_error() {
    for depth in [100, 1_000, 100_000] {
        let tuple = r#"{"tuple": ["#.repeat(depth);
        let text = format!(r#"{{"args": [{{"name": "x", "tuple": [{tuple}1{}]}}]}}"#, "]}".repeat(depth));
        assert!(Spec::parse(&text).is_err());
    }
}
