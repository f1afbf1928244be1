//! The way from MLIR text to PTX.

use super::*;

fn compile(text: &str, target: &str) -> Result<String> {
    let cx = MlirContext::new();
    let mut module = Module::parse(cx.get(), text).unwrap_or_else(|| panic!("{:?}", cx.take_diagnostics()));
    to_llvm_dialect(&cx, &mut module)?;
    let llvm = to_llvm(&cx, &module)?;
    guarded(|| emit(llvm, Target::named(target).expect("known"), Want::Ptx, None).map(|emitted| emitted.ptx))
}

#[test]
fn an_instruction_that_the_chip_lacks_is_an_error_value() {
    let text = "llvm.func @k() attributes {nvvm.kernel} { nvvm.wgmma.fence.aligned llvm.return }";
    assert!(compile(text, "sm_90a").expect("Hopper has wgmma").contains("wgmma.fence"));
    for _ in 0..2 {
        let error = compile(text, "sm_80").expect_err("Ampere has no wgmma");
        assert!(matches!(&error, CodegenError::Llvm { message, .. } if message.contains("wgmma")), "{error}");
    }
    assert!(compile(text, "sm_90a").is_ok(), "the back end still works afterwards");
}

#[test]
fn a_missing_library_function_is_an_error_value() {
    let text = "llvm.func @k(%p: !llvm.ptr<1>, %x: f64) attributes {nvvm.kernel} {
        %y = llvm.intr.exp(%x) : (f64) -> f64
        llvm.store %y, %p : f64, !llvm.ptr<1>
        llvm.return }";
    let error = compile(text, "sm_80").expect_err("NVPTX has no library of functions");
    assert!(matches!(error, CodegenError::Llvm { .. }), "{error}");
}

#[test]
fn only_assembly_with_side_effects_is_convergent() {
    let text = r#"llvm.func @k(%p: !llvm.ptr<1>, %x: i32) attributes {nvvm.kernel} {
        %a = llvm.inline_asm has_side_effects "bar.warp.sync 0xffffffff; mov.u32 $0, $1;", "=r,r" %x : (i32) -> i32
        %b = llvm.inline_asm "not.b32 $0, $1;", "=r,r" %a : (i32) -> i32
        llvm.store %b, %p : i32, !llvm.ptr<1>
        llvm.return }"#;
    let cx = MlirContext::new();
    let mut module = Module::parse(cx.get(), text).expect("valid text");
    to_llvm_dialect(&cx, &mut module).expect("conversion");
    let llvm = to_llvm(&cx, &module).expect("translation");
    let llvm = emit(llvm, Target::named("sm_80").expect("known"), Want::Llvm, None).expect("optimization").llvm;
    let attributes = |needle: &str| {
        let line = llvm.lines().find(|line| line.contains(needle)).expect("the assembly is kept");
        let group = line.split(") #").nth(1).map(|rest| rest.split_whitespace().next().unwrap_or("").to_owned());
        group.and_then(|group| llvm.lines().find(|l| l.starts_with(&format!("attributes #{group} "))))
    };
    assert!(attributes("bar.warp.sync").is_some_and(|line| line.contains("convergent")), "{llvm}");
    assert!(!attributes("not.b32").is_some_and(|line| line.contains("convergent")), "{llvm}");
}

#[test]
fn an_exact_product_is_fused_only_where_it_vanishes() {
    let ptx = |stored: &str| {
        let text = format!(
            "llvm.func @k(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %x: f32, %n: i32, %s: f32) attributes {{nvvm.kernel}} {{
                %c = llvm.mlir.constant(23 : i32) : i32
                %bits = llvm.shl %n, %c : i32
                %power = llvm.bitcast %bits : i32 to f32
                %y = llvm.fmul %x, %power {{fastmathFlags = #llvm.fastmath<contract>}} : f32
                %z = llvm.fadd %y, %s {{fastmathFlags = #llvm.fastmath<contract>}} : f32
                llvm.store %z, %p : f32, !llvm.ptr<1>
                llvm.store {stored}, %q : f32, !llvm.ptr<1>
                llvm.return }}"
        );
        compile(&text, "sm_90a").expect("plain arithmetic")
    };
    assert!(ptx("%s").contains("fma.rn.f32"), "the product has no other use");
    let both = ptx("%y");
    assert!(!both.contains("fma.rn.f32") && both.contains("mul.rn.f32"), "{both}");
}
