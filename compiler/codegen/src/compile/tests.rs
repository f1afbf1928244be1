//! Whole kernels through code generation: text checks, metadata, unsupported features, line information.
//!
//! The central test, at the root of the workspace, checks that the PTX computes the same as the tile IR.

use rtc_ir::{LocData, text, verify};
use rtc_source::Span;

use super::*;
use crate::ptxas;
use rtc_abi::TARGETS;

const ADD: &str = "
#l0 = blocked(shape [1024], size [4], lanes [32], warps [4], order [0])
kernel @add(%flag: i1 {sig = \"i1\"}, %x: ptr<f32> {sig = \"*fp32\", align = 16}, %h: f16 {sig = \"fp16\"}, %y: ptr<f32> {sig = \"*fp32\"}, %n: i32 {sig = \"i32\"})
    warps 4 phase scheduled {
  %pid = program_id {axis = 0} : i32
  %size = constant {value = 1024} : i32
  %start = muli %pid, %size : i32
  %lane = arange {start = 0, end = 1024} : tile<1024xi32, #l0>
  %starts = splat %start : tile<1024xi32, #l0>
  %at = addi %starts, %lane : tile<1024xi32, #l0>
  %ns = splat %n : tile<1024xi32, #l0>
  %mask = cmpi %at, %ns {predicate = lt} : tile<1024xi1, #l0>
  %xs = splat %x : tile<1024xptr<f32>, #l0>
  %p = addptr %xs, %at : tile<1024xptr<f32>, #l0>
  %v = load %p, mask = %mask {vector = 4} : tile<1024xf32, #l0>
  %w = addf %v, %v : tile<1024xf32, #l0>
  %ys = splat %y : tile<1024xptr<f32>, #l0>
  %q = addptr %ys, %at : tile<1024xptr<f32>, #l0>
  store %q, %w, mask = %mask {cache = cs, vector = 4}
  ret
}
";

fn compile_text(text: &str, target: &str, options: CodegenOptions) -> Result<Output> {
    let kernel = text::parse(text).expect("the text reads");
    let verified = verify(&kernel).unwrap_or_else(|errors| panic!("{}", rtc_ir::print_errors(&kernel, &errors)));
    compile(verified, &SourceMap::new(), Target::named(target).expect("known"), options)
}

#[test]
fn every_target_accepts_a_masked_copy() {
    for target in TARGETS {
        let output = compile_text(ADD, target.name, CodegenOptions::default()).expect(target.name);
        assert!(output.ptx.contains(&format!(".target {}", target.name)), "{}", output.ptx);
        for needle in ["ld.global.v4.b32", "st.global.cs.v4.b32", ".reqntid 128"] {
            assert!(output.ptx.contains(needle), "{needle} is missing from\n{}", output.ptx);
        }
        assert!(rtc_ptx::parse(&output.ptx).is_ok(), "our own reader takes it");
        ptxas::check(&output.ptx, target);
    }
}

#[test]
fn wide_accesses_stay_wide() {
    // Without masks, and with elements that are used one by one.
    let text = ADD.replace(", mask = %mask", "").replace("addf %v, %v", "exp2 %v").replace("cache = cs, ", "");
    let ptx = compile_text(&text, "sm_80", CodegenOptions::default()).expect("compiles").ptx;
    assert_eq!(ptx.matches("ld.global.v4.b32").count(), 2, "{ptx}");
    assert_eq!(ptx.matches("st.global.v4.b32").count(), 2, "{ptx}");
    assert!(!ptx.contains("ld.global.b32"), "{ptx}");
}

#[test]
fn partial_results_of_warps_are_read_together() {
    let text = "
#l0 = blocked(shape [1024], size [4], lanes [32], warps [4], order [0])
kernel @sum(%x: ptr<f32> {sig = \"*fp32\", align = 16}) warps 4 shared 16 phase scheduled {
  %lane = arange {start = 0, end = 1024} : tile<1024xi32, #l0>
  %xs = splat %x : tile<1024xptr<f32>, #l0>
  %p = addptr %xs, %lane : tile<1024xptr<f32>, #l0>
  %v = load %p {vector = 4} : tile<1024xf32, #l0>
  %s = alloc_shared {align = 16, offset = 0} : shared<16xi8>
  %sum = reduce scratch = %s, (%v) {axis = 0} : f32 ^(%a: f32, %b: f32) {
    %c = addf %a, %b : f32
    yields (%c)
  }
  store %x, %sum
  ret
}
";
    let ptx = compile_text(text, "sm_80", CodegenOptions::default()).expect("compiles").ptx;
    assert_eq!(ptx.matches("ld.shared.v4.b32").count(), 1, "{ptx}");
    assert_eq!(ptx.matches("shfl.sync.bfly").count(), 5, "{ptx}");
}

#[test]
fn stages_come_on_demand_and_the_same_each_time() {
    let all = CodegenOptions { mlir: true, llvm_dialect: true, llvm: true, ..CodegenOptions::default() };
    let output = compile_text(ADD, "sm_90a", all.clone()).expect("compiles");
    let stage = |text: &Option<String>, needle: &str| text.as_ref().is_some_and(|text| text.contains(needle));
    assert!(stage(&output.mlir, "llvm.fadd"));
    assert!(stage(&output.llvm_dialect, "llvm.fadd"));
    assert!(stage(&output.llvm, "define ptx_kernel void @add"));
    assert_eq!(compile_text(ADD, "sm_90a", all), Ok(output));
    let bare = compile_text(ADD, "sm_90a", CodegenOptions::default()).expect("compiles");
    assert_eq!((bare.mlir, bare.llvm_dialect, bare.llvm), (None, None, None));
}

#[test]
fn what_a_target_lacks_is_said() {
    let dependent = "kernel @k() warps 1 phase scheduled {\n  grid_dependency {wait = true}\n  ret\n}\n";
    let error = compile_text(dependent, "sm_80", CodegenOptions::default()).expect_err("sm_90 and later only");
    assert!(matches!(&error, CodegenError::Unsupported { target, .. } if target == "sm_80"), "{error}");
    let output = compile_text(dependent, "sm_90", CodegenOptions::default()).expect("Hopper has it");
    assert!(output.ptx.contains("griddepcontrol.wait"));

    let registers = "kernel @k() warps 4 phase scheduled {
  warp_specialize {warps = [4, 4], registers = [40, 0]} ^() {
    yields
  } ^() {
    yields
  }
  ret
}
";
    let error = compile_text(registers, "sm_90", CodegenOptions::default()).expect_err("sm_90a has it");
    assert_eq!(
        error.to_string(),
        "`setmaxnreg`, which sets the registers of each partition, is not available on sm_90"
    );
    let output = compile_text(registers, "sm_90a", CodegenOptions::default()).expect("Hopper has it");
    assert!(output.ptx.contains("setmaxnreg.dec.sync.aligned.u32 40;"), "{}", output.ptx);
    ptxas::check(&output.ptx, Target::named("sm_90a").expect("it is in the table"));

    let large = "kernel @k() warps 1 shared 120000 phase scheduled {\n  ret\n}\n";
    let error = compile_text(large, "sm_86", CodegenOptions::default()).expect_err("99 KiB");
    assert_eq!(error.to_string(), "shared memory: 120000 needed, 101376 available on sm_86");
    assert!(compile_text(large, "sm_80", CodegenOptions::default()).is_ok());
}

#[test]
fn a_kernel_that_is_not_scheduled_is_refused() {
    let error = compile_text("kernel @k() warps 1 phase tile {\n  ret\n}\n", "sm_80", CodegenOptions::default());
    assert!(matches!(error, Err(CodegenError::Lowering { .. })));
}

#[test]
fn lines_follow_inlined_code_into_its_file() {
    let mut sources = SourceMap::new();
    let own = sources.add("kernels/k.rt", "first\nsecond\n  third\n");
    let library = sources.add("stdlib/math.rt", "def f():\n    body\n");
    let mut kernel = text::parse(
        "kernel @k(%p: ptr<f32> {sig = \"*fp32\"}) warps 1 phase scheduled {
  %v = load %p : f32
  %w = addf %v, %v : f32
  store %p, %w
  ret
}",
    )
    .expect("the text reads");
    let third = kernel.intern_loc(LocData { span: Some(Span::new(own, 15, 20)), caller: None });
    let body = kernel.intern_loc(LocData { span: Some(Span::new(library, 13, 17)), caller: Some(third) });
    let ops = rtc_ir::walk(&kernel);
    kernel.set_loc(ops[0], third);
    kernel.set_loc(ops[1], body);
    kernel.set_loc(ops[2], third);
    let verified = verify(&kernel).expect("a correct kernel");
    let target = Target::named("sm_80").expect("known");
    let ptx = compile(verified, &sources, target, CodegenOptions::default()).expect("compiles").ptx;
    for needle in [".file\t1 \"kernels/k.rt\"", ".file\t2 \"stdlib/math.rt\"", ".loc\t1 3 3", ".loc\t2 2 5"] {
        assert!(ptx.contains(needle), "{needle} is missing from\n{ptx}");
    }
    ptxas::check(&ptx, target);
}

/// Our own functions in bitcode; `library.ll` next to it is its text.
const LIBRARY: &[u8] = include_bytes!("library.bc");

/// A kernel that calls a function of the library on each element.
fn calling(symbol: &str, operands: &str) -> String {
    ADD.replace("addf %v, %v", &format!("extern_call ({operands}) {{symbol = \"{symbol}\", to = f32}}"))
}

fn with_library(text: &str, bitcode: &[u8], flush_denormals: bool) -> Result<String> {
    let library = Some(Library { bitcode: bitcode.into(), flush_denormals });
    compile_text(text, "sm_90a", CodegenOptions { library, ..CodegenOptions::default() }).map(|output| output.ptx)
}

#[test]
fn functions_of_a_library_are_linked_and_the_rest_is_dropped() {
    let target = Target::named("sm_90a").expect("known");
    let text = calling("__nv_shiftedf", "%v, %v");
    let fused = with_library(&text, LIBRARY, true).expect("links");
    assert!(fused.contains("fma.rn.f32") && fused.contains("__nv_shiftedf"), "{fused}");
    let apart = with_library(&text.replace("phase scheduled", "no_fp_fusion phase scheduled"), LIBRARY, true);
    let apart = apart.expect("links");
    assert!(!apart.contains("fma.rn.f32") && apart.contains("mul.rn.f32"), "{apart}");
    let square = with_library(&calling("__nv_squaref", "%v"), LIBRARY, true).expect("links");
    assert!(square.contains("product") && !square.contains("__nv_"), "{square}");
    for ptx in [&fused, &apart, &square] {
        assert!(!ptx.contains("unused") && !ptx.contains(".extern .func"), "{ptx}");
        assert!(rtc_ptx::parse(ptx).is_ok(), "our own reader takes it");
        ptxas::check(ptx, target);
    }
}

#[test]
fn the_library_hears_whether_denormals_are_flushed() {
    let text = calling("__nv_flushedf", "%v");
    let stored = |flush| {
        let ptx = with_library(&text, LIBRARY, flush).expect("links");
        assert!(!ptx.contains("reflect"), "{ptx}");
        (
            ptx.contains("0f3F800000") || ptx.contains("1065353216"),
            ptx.contains("0f40000000") || ptx.contains("1073741824"),
        )
    };
    assert_eq!(stored(true), (true, false));
    assert_eq!(stored(false), (false, true));
}

#[test]
fn a_library_that_cannot_be_used_is_an_error_value() {
    let text = calling("__nv_shiftedf", "%v, %v");
    let message = |result: Result<String>| match result.expect_err("cannot be used") {
        CodegenError::Library { message } => message,
        other => panic!("{other}"),
    };
    for bitcode in [&b""[..], b"BC\xC0\xDE", b"BC\xC0\xDE no bitcode at all", &LIBRARY[..LIBRARY.len() / 2], b"text"] {
        let message = message(with_library(&text, bitcode, true));
        assert!(message.starts_with("the library "), "{message}");
    }
    let missing = message(with_library(&calling("__nv_nothing", "%v"), LIBRARY, true));
    assert!(missing.contains("__nv_nothing"), "{missing}");
    let none = compile_text(&text, "sm_90a", CodegenOptions::default());
    assert!(matches!(none, Err(CodegenError::Library { .. })), "{none:?}");
    // A kernel without calls needs none.
    assert!(with_library(ADD, b"text", true).is_ok());
}

#[test]
fn copies_in_other_warps_are_not_stored() {
    let text = "#l0 = linear(shape [64], reg [[32]], lane [[1], [2], [4], [8], [16]], warp [[0], [0]])
kernel @k() warps 4 phase scheduled shared 256 {
  %b = alloc_shared {align = 16, offset = 0} : shared<64xi32>
  %v = arange {start = 0, end = 64} : tile<64xi32, #l0>
  local_store %v, %b
  ret
}";
    let ptx = compile_text(text, "sm_80", CodegenOptions::default()).expect("compiles").ptx;
    let guard = ptx.find("setp").expect("only one warp stores");
    assert!(ptx.find("st.shared").is_some_and(|store| guard < store), "{ptx}");
}
