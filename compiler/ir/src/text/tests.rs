//! Tests of the text form.

use super::{parse, print, print_with};
use crate::text::PrintOptions;

/// Reads, prints, and expects that the printed text is a fixed point.
fn round(text: &str) -> String {
    let kernel = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let printed = print(&kernel);
    let again = parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert_eq!(print(&again), printed);
    printed
}

const ALL_FORMS: &str = r#"
#l7 = blocked(shape [128], size [1], lanes [32], warps [4], order [0]) // a comment
kernel @forms(%x: ptr<f32> {sig = "*fp32", align = 16}, %n: i32 {sig = "i32"}, %t.0: f16 {sig = "fp16"})
    warps 4 stages 5 ctas 2 maxnreg 64 no_fp_fusion shared 512 phase scheduled {
  %pid = program_id {axis = 1} : i32
  barrier
  %lane = arange {start = 0, end = 128} : tile<128xi32, #l7>
  %addi9 = addi %lane, %lane : tile<128xi32, #l7>
  %addi3 = addi %lane, %addi9 : tile<128xi32, #l7>
  %p = splat %x : tile<128xptr<f32>, #l7>
  %q = addptr %p, %lane : tile<128xptr<f32>, #l7>
  %m = cmpi %lane, %addi3 {predicate = ult} : tile<128xi1, #l7>
  %zero = constant {value = -0.0} : tile<128xf32, #l7>
  %nan = constant {value = nan(0x7ff8000000000001)} : f32
  %inf = constant {value = inf} : f64
  %ninf = constant {value = -inf} : f64
  %tiny = constant {value = 5e-324} : f64
  %a = load %q, mask = %m, other = %zero {cache = cg, volatile = true} : tile<128xf32, #l7> loc(0:12..34 from 0:1..2 from none)
  %s = alloc_shared {align = 16, offset = 32} : shared<16xi8>
  %sum, %reduce7 = reduce scratch = %s, (%a, %a) {axis = 0} : f32, f32 ^(%l: f32, %k: f32, %arg5: f32, %arg6: f32) {
    %u = addf %l, %arg5 : f32
    %v = mulf %k, %arg6 : f32
    yields (%u, %v)
  }
  %c = cmpf %sum, %nan {predicate = ne} : i1
  if_else %c ^() {
    store %q, %a, mask = %m
    yields
  } ^() {
    print (%pid, %sum) {prefix = "x \"q\" \\ \n \u{1}é", hex = true, signed = [1, 0]}
    yields
  }
  %i, %acc = for_range %n, %pid, %n, (%n, %sum) {hints = [[num_stages, 3], [disable_licm, 1]]} : i32, f32 ^(%j: i32, %i1: i32, %acc1: f32) {
    yields (%i1, %acc1)
  }
  %w = while_loop (%i) : i32 ^(%b: i32) {
    condition %c, (%b)
  } ^(%d: i32) {
    yields (%d)
  }
  ret
}
"#;

#[test]
fn every_form_reads_back() {
    insta::assert_snapshot!(round(ALL_FORMS));
    let kernel = parse(ALL_FORMS).expect("it was read before");
    let with_locs = print_with(&kernel, PrintOptions { locs: true });
    assert!(with_locs.contains("loc(0:12..34 from 0:1..2 from none)"), "{with_locs}");
    let again = parse(&with_locs).expect("what was printed is read");
    assert_eq!(print_with(&again, PrintOptions { locs: true }), with_locs);
    assert_eq!(again.params, kernel.params);
    assert_eq!(again.options, kernel.options);
}

#[test]
fn names_depend_on_the_kernel_alone() {
    let printed = round(
        "kernel @k(%x: i32, %\u{61}rg0: i32) warps 4 phase tile {
  %addi5 = addi %x, %x : i32
  %muli0 = addi %x, %addi5 : i32
  %mul = muli %x, %muli0 : i32
  %muli9 = muli %x, %mul : i32
  ret
}",
    );
    for line in ["%addi0 = addi %x, %x", "%muli0 = addi %x, %addi0", "%muli1 = muli %x, %mul"] {
        assert!(printed.contains(line), "{printed}");
    }
}

#[test]
fn floats_keep_their_bits() {
    let mut state = 1u64;
    for i in 0..2000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = if i % 4 == 0 { state | 0x7ff0 << 48 } else { state };
        let value = crate::Literal::Float(bits);
        let text = format!(
            "kernel @k() warps 4 phase tile {{\n  %c = constant {{value = {}}} : f64\n  ret\n}}\n",
            crate::AttrValue::Float(bits)
        );
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let op = kernel.first_op(kernel.body()).expect("an operation");
        assert_eq!(*kernel.kind(op), crate::OpKind::Constant { value }, "{text}");
    }
}

#[test]
fn wrong_texts_are_refused_with_a_place() {
    let body = |op: &str| format!("kernel @k(%x: i32) warps 4 phase tile {{\n  {op}\n  ret\n}}\n");
    for (text, message) in [
        (String::new(), "1:1: expected `kernel`, found the end"),
        (body("%y = addj %x, %x : i32"), "2:8: there is no operation `addj`"),
        (body("%y = addi %x : i32"), "2:8: `addi` takes 2 operands, not 1"),
        (body("%y = addi %x, %x, (%x) : i32"), "2:8: `addi` takes no further operands"),
        (body("%y = addi %x, %z : i32"), "2:17: `%z` is not defined"),
        (body("%x = addi %x, %x : i32"), "2:3: `%x` is defined twice"),
        (body("%y = addi %x, %x"), "2:8: there are 1 results and 0 result types"),
        (body("%y = addi %x, %x : tile<4xi32, #l3>"), "2:22: expected a type, found `tile<4xi32, #l3>`"),
        (body("%y = addi %x, mask = %x : i32"), "2:8: `addi` takes 2 operands, not 1"),
        (body("%y = program_id : i32"), "2:8: attribute `axis` is missing"),
        (body("%y = program_id {axis = 0, axes = 1} : i32"), "2:8: `program_id` has no attribute `axes`"),
        (body("%y = program_id {axis = -1} : i32"), "2:8: attribute `axis` has the wrong form"),
        (body("?"), "2:3: this is no token"),
        ("#l0 = nonsense\nkernel".into(), "1:1: expected `(` before ``"),
    ] {
        let error = parse(&text).expect_err(&text).to_string();
        assert_eq!(error, message, "{text}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let open = "if_else %c ^() {\n".repeat(10_000);
    let error = parse(&format!("kernel @k(%c: i1) warps 1 phase tile {{\n{open}")).expect_err("it is too deep");
    assert!(error.message.contains("too deeply"), "{error}");
    let lists = format!("kernel @k() warps 1 phase tile {{ %x = trans %y {{order = {}", "[".repeat(10_000));
    assert!(parse(&lists).is_err());
}
