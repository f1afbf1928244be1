//! Estimates of registers of small kernels.

use rtc_ir::{Kernel, OpKind, walk};

use super::{Scope, estimate};

/// Loads 32 floats in each thread, stores what `BODY` makes of them.
const KERNEL: &str =
    "#l0 = linear(shape [1024], reg [[32], [64], [128], [256], [512]], lane [[1], [2], [4], [8], [16]], warp [])
kernel @k(%p: ptr<f32> {sig = \"*fp32\"}, %n: i32 {sig = \"i32\"}) warps 1 phase laid {
  %arange = arange {start = 0, end = 1024} : tile<1024xi32, #l0>
  %splat = splat %p : tile<1024xptr<f32>, #l0>
  %at = addptr %splat, %arange : tile<1024xptr<f32>, #l0>
  %x = load %at : tile<1024xf32, #l0>
  BODY
  store %at, %y
  ret
}
";

fn kernel(body: &str) -> Kernel {
    let text = KERNEL.replace("BODY", body);
    rtc_ir::text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn registers(body: &str) -> u32 {
    estimate(&kernel(body), Scope::Kernel)
}

const COPY: &str = "%y = absf %x : tile<1024xf32, #l0>";

/// Three tiles of which the last one is made of both others.
const CHAIN: &str = "%a = absf %x : tile<1024xf32, #l0>
  BETWEEN%b = mulf %a, %x : tile<1024xf32, #l0>
  %y = mulf %b, %a : tile<1024xf32, #l0>";

#[test]
fn elements_are_computed_where_they_are_used() {
    let (alone, chain) = (registers(COPY), registers(&CHAIN.replace("BETWEEN", "")));
    assert!((32..=48).contains(&alone), "{alone}");
    assert!(chain <= alone + 2, "{chain} with intermediate tiles, {alone} without");
}

#[test]
fn nothing_moves_over_a_barrier() {
    let (chain, fixed) =
        (registers(&CHAIN.replace("BETWEEN", "")), registers(&CHAIN.replace("BETWEEN", "barrier\n  ")));
    assert!(fixed >= chain + 31, "{fixed} with a barrier, {chain} without");
}

#[test]
fn addresses_with_a_common_step_share_a_register() {
    let scaled = |by: &str| {
        let offset =
            "%i = muli %arange, %by : tile<1024xi32, #l0>\n  %q = addptr %splat, %i : tile<1024xptr<f32>, #l0>";
        registers(&format!("{by} : tile<1024xi32, #l0>\n  {offset}\n  barrier\n  store %q, %x\n  {COPY}"))
    };
    let (known, unknown) = (scaled("%by = constant {value = 3}"), scaled("%by = splat %n"));
    assert!(unknown >= known + 24, "{unknown} with a stride that is an argument, {known} with a constant");
}

#[test]
fn values_are_held_through_a_loop() {
    let text = "%zero = constant {value = 0} : i32
  %one = constant {value = 1} : i32
  %y = for_range %zero, %n, %one, (%x) : tile<1024xf32, #l0> ^(%i: i32, %sum: tile<1024xf32, #l0>) {
    %next = addf %sum, %sum : tile<1024xf32, #l0>
    yields (%next)
  }";
    let kernel = kernel(text);
    let of = walk(&kernel).into_iter().find(|op| matches!(kernel.kind(*op), OpKind::ForRange { .. })).expect("a loop");
    let held = [kernel.result(of, 0)];
    assert_eq!(estimate(&kernel, Scope::Loop(of, &held)), estimate(&kernel, Scope::Loop(of, &[])) + 32);
    assert_eq!(estimate(&kernel, Scope::Loop(of, &[])), estimate(&kernel, Scope::Consumer(of, &[])));
}
