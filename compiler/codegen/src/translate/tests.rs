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

/// A kernel that waits for three accumulators, converts the first so many by `convert`, and applies `result` to each;
/// TYPE, SUM and HALF are placeholders for the type, the accumulator and its converted value.
fn rounded(count: usize, convert: &str, ty: &str, result: &str) -> String {
    let three = "!llvm.struct<(f32, f32, f32)>";
    let casts: String = (0..count)
        .map(|i| {
            let convert = convert.replace("SUM", &format!("%s{i}"));
            let result = result.replace("HALF", &format!("%h{i}"));
            format!(
                "%s{i} = llvm.extractvalue %all[{i}] : {three}
                %h{i} = {convert}
                {result}
                llvm.call_intrinsic \"llvm.nvvm.barrier.cta.sync.aligned.all\"(%zero) : (i32) -> ()\n"
            )
            .replace("%r", &format!("%r{i}"))
        })
        .collect();
    let text = format!(
        "llvm.func @k(%p: !llvm.ptr<1>, %a: f32, %b: f32, %c: f32) attributes {{nvvm.kernel}} {{
            %zero = llvm.mlir.constant(0 : i32) : i32
            %all = llvm.inline_asm has_side_effects \"wgmma.wait_group.sync.aligned 0;\", \"=f,=f,=f,0,1,2\"
                %a, %b, %c : (f32, f32, f32) -> {three}
            {casts}
            llvm.return }}"
    );
    compile(&text.replace("TYPE", ty), "sm_90a").expect("plain arithmetic")
}

#[test]
fn sums_that_are_rounded_are_converted_in_pairs() {
    let single = "%r = llvm.fpext HALF : TYPE to f32\nllvm.store volatile %r, %p : f32, !llvm.ptr<1>";
    for (convert, ty, one, two) in [
        ("llvm.fptrunc SUM : f32 to TYPE", "f16", "cvt.rn.f16.f32", "cvt.rn.f16x2.f32"),
        ("llvm.fptrunc SUM : f32 to TYPE", "bf16", "cvt.rn.bf16.f32", "cvt.rn.bf16x2.f32"),
        (
            "llvm.call_intrinsic \"llvm.nvvm.f2f16.rz\"(SUM) : (f32) -> TYPE",
            "f16",
            "cvt.rz.f16.f32",
            "cvt.rz.f16x2.f32",
        ),
        (
            "llvm.call_intrinsic \"llvm.nvvm.f2bf16.rz\"(SUM) : (f32) -> TYPE",
            "bf16",
            "cvt.rz.bf16.f32",
            "cvt.rz.bf16x2.f32",
        ),
    ] {
        for count in 1..=3 {
            let ptx = rounded(count, convert, ty, single);
            let found = [one, two].map(|name| ptx.matches(name).count());
            assert_eq!(found, [count % 2, count / 2], "{count} sums\n{ptx}");
        }
        // LLVM itself makes a pair of the parts of a word, but not of values that are stored one by one.
        let stored = rounded(2, convert, ty, "llvm.store volatile HALF, %p : TYPE, !llvm.ptr<1>");
        assert_eq!([one, two].map(|name| stored.matches(name).count()), [0, 1], "{stored}");
    }
}

/// LLVM's jump threading lets paths of a kernel bypass the point where the threads of a warp reconverge, before an
/// instruction that they have to execute together (llvm/llvm-project#213868). It does so only if it does not know that
/// threads of the target diverge: it queries the target machine, and without one assumes a CPU. All our passes are
/// given one.
/// Where the threads that copy also wait for asynchronous dots, a loop does not carry what it can compute of its counter.
#[test]
fn loops_with_copies_beside_dots_keep_their_addresses() {
    let ptx = |dot: &str| {
        let text = format!(
            r#"llvm.func @k(%p: !llvm.ptr<1>, %row: i64, %n: i64) attributes {{nvvm.kernel}} {{
                %zero = llvm.mlir.constant(0 : i64) : i64
                %one = llvm.mlir.constant(1 : i64) : i64
                llvm.br ^loop(%zero : i64)
              ^loop(%i: i64):
                llvm.inline_asm has_side_effects "cp.async.wait_group 0;", "~{{memory}}" : () -> ()
                llvm.inline_asm has_side_effects "{dot}", "~{{memory}}" : () -> ()
                %offset = llvm.mul %i, %row : i64
                %from = llvm.getelementptr %p[%offset] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
                llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];", "l,~{{memory}}" %from : (!llvm.ptr<1>) -> ()
                %next = llvm.add %i, %one : i64
                %more = llvm.icmp "slt" %next, %n : i64
                llvm.cond_br %more, ^loop(%next : i64), ^end
              ^end:
                llvm.return }}"#
        );
        compile(&text, "sm_90a").expect("valid text")
    };
    let multiplies = |ptx: &str| ptx.contains("mul.lo.s64") || ptx.contains("mad.lo.s64");
    let with_dot = ptx("wgmma.wait_group.sync.aligned 0;");
    assert!(multiplies(&with_dot), "{with_dot}");
    let without = ptx("bar.sync 0;");
    assert!(!multiplies(&without), "strength reduction makes it a sum:\n{without}");
}

#[test]
fn jumps_are_not_threaded_past_the_place_where_threads_meet() {
    let text = "llvm.func @k(%p: !llvm.ptr<1>, %lane: i32) attributes {nvvm.kernel} {
        %zero = llvm.mlir.constant(0 : i32) : i32
        %yes = llvm.mlir.constant(true) : i1
        %no = llvm.mlir.constant(false) : i1
        %first = llvm.icmp \"eq\" %lane, %zero : i32
        llvm.cond_br %first, ^one, ^others
      ^one:
        llvm.store %lane, %p : i32, !llvm.ptr<1>
        llvm.br ^meet(%yes : i1)
      ^others:
        llvm.store %zero, %p : i32, !llvm.ptr<1>
        llvm.br ^meet(%no : i1)
      ^meet(%again: i1):
        llvm.cond_br %again, ^wait, ^end
      ^wait:
        nvvm.barrier0
        llvm.br ^end
      ^end:
        llvm.return }";
    let threaded = |machine: Option<&Machine>| {
        let cx = MlirContext::new();
        let mut module = Module::parse(cx.get(), text).expect("valid text");
        to_llvm_dialect(&cx, &mut module).expect("conversion");
        let llvm = to_llvm(&cx, &module).expect("translation");
        let before = llvm.text();
        llvm.run(c"jump-threading", machine).expect("the pass runs");
        assert!(before.contains("phi i1"), "{before}");
        !llvm.text().contains("phi i1")
    };
    for target in ["sm_80", "sm_90a"] {
        let machine = Machine::new(Target::named(target).expect("known")).expect("the back end has it");
        assert!(!threaded(Some(&machine)), "{target}");
    }
    assert!(threaded(None), "the pass no longer asks the machine, so that this test shows nothing");
}
