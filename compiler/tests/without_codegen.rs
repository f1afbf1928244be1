//! Without the feature `codegen`, and so without LLVM, a kernel is compiled as far as tile IR.
#![cfg(not(feature = "codegen"))]
#![allow(clippy::unwrap_used)]

use rtc_compiler::{Failure, Program, Signature, Silent, Source, Spec, Stage, compile, emit, llvm_version};

const COPY: &str = "@triton.jit\ndef copy(x, y, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
                    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)\n";

#[test]
fn tile_ir_is_there_and_ptx_is_refused() {
    let program = Program::parse(&[Source::new("copy.rt", COPY)]);
    let args = Signature::parse("*fp32:16, *fp32:16, i32, 128").unwrap().bind(&["x", "y", "n", "BLOCK"]).unwrap();
    let specialization = Spec { args, ..Spec::default() }.specialize(&program).unwrap();
    let tile = emit(&program, &specialization, "sm_90a", Stage::Scheduled, &mut Silent).unwrap();
    assert!(tile.starts_with("kernel @copy(") || tile.starts_with("#l0"), "{tile}");
    let Err(Failure::Request { message, .. }) =
        compile(&program, &specialization, "sm_90a", String::new(), &mut Silent)
    else {
        panic!("a kernel was compiled without a code generator");
    };
    assert!(message.contains("the feature `codegen`"), "{message}");
    assert_eq!(llvm_version(), "none");
}
