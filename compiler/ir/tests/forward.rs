//! The trait `forwards` against the interpreter: what such an operation gives are the elements of its operand, all of
//! them and no others.

use std::collections::BTreeSet;

use rtc_ir::interp::{HostMemory, LaunchConfig, RunOptions, Storage, run};
use rtc_ir::{Kernel, OpKind, SPECS, Traits, Value, ValueDef, print_errors, text, verify, walk};

/// The elements `0..8` in three shapes, and two layouts of the first.
const LAYOUTS: &str = "\
#l0 = blocked(shape [8], size [1], lanes [32], warps [1], order [0])
#l1 = blocked(shape [8], size [2], lanes [32], warps [1], order [0])
";

/// For each operation with the trait, a kernel in which `%y` is its result; an attribute of it at a value of consequence.
const SAMPLES: &[(&str, &str)] = &[
    ("splat", "%x = constant {value = 7} : i32\n%y = splat %x : tile<4x2xi32>"),
    ("expand_dims", "%x = arange {start = 0, end = 8} : tile<8xi32>\n%y = expand_dims %x {axis = 1} : tile<8x1xi32>"),
    (
        "broadcast",
        "%r = arange {start = 0, end = 8} : tile<8xi32>\n%x = expand_dims %r {axis = 1} : tile<8x1xi32>
         %y = broadcast %x : tile<8x4xi32>",
    ),
    ("reshape", "%x = arange {start = 0, end = 8} : tile<8xi32>\n%y = reshape %x {reorder = true} : tile<2x4xi32>"),
    (
        "trans",
        "%r = arange {start = 0, end = 8} : tile<8xi32>\n%x = reshape %r : tile<4x2xi32>
         %y = trans %x {order = [1, 0]} : tile<2x4xi32>",
    ),
    ("unsplat", "%x = constant {value = 7} : tile<1xi32>\n%y = unsplat %x : i32"),
    (
        "convert_layout",
        "%x = arange {start = 0, end = 8} : tile<8xi32, #l0>\n%y = convert_layout %x : tile<8xi32, #l1>",
    ),
    (
        "hint",
        "%x = arange {start = 0, end = 8} : tile<8xi32>\n%y = hint %x {kind = max_contiguous, values = [8]} : tile<8xi32>",
    ),
];

fn kernel(body: &str) -> Kernel {
    let (layouts, phase) = if body.contains('#') { (LAYOUTS, " phase laid") } else { ("", "") };
    let source = format!(
        "{layouts}kernel @k() warps 1{phase} {{
         {body}
         print (%x) {{prefix = \"x\", signed = [1]}}
         print (%y) {{prefix = \"y\", signed = [1]}}
         ret
         }}"
    );
    text::parse(&source).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

/// The elements of `%x` and of `%y`, each with how often it is printed left out.
fn elements(kernel: &Kernel) -> [BTreeSet<String>; 2] {
    let verified = verify(kernel).unwrap_or_else(|e| panic!("{}", print_errors(kernel, &e)));
    let storage = if kernel.phase == rtc_ir::Phase::Tile { Storage::Tiles } else { Storage::Registers };
    let launch = LaunchConfig { grid: [1; 3], args: Vec::new() };
    let options = RunOptions { storage, ..RunOptions::default() };
    let report = run(verified, &mut HostMemory::new(), &launch, &options).unwrap_or_else(|fault| panic!("{fault}"));
    ["x", "y"].map(|name| {
        let lines = report.printed.lines().filter_map(|line| line.split_once(&format!(" {name}: ")));
        let found: BTreeSet<String> = lines.map(|(_, number)| number.to_string()).collect();
        assert!(!found.is_empty(), "{}", report.printed);
        found
    })
}

fn named(kernel: &Kernel, name: &str) -> Value {
    let mut results = walk(kernel).into_iter().flat_map(|op| kernel.op(op).results.to_vec());
    results.find(|value| kernel.value(*value).name.as_deref() == Some(name)).expect("a value of this name")
}

#[test]
fn each_gives_the_elements_of_its_operand() {
    for spec in SPECS.iter().filter(|spec| spec.traits.has(Traits::FORWARDS)) {
        let (_, body) = SAMPLES
            .iter()
            .find(|(mnemonic, _)| *mnemonic == spec.mnemonic)
            .unwrap_or_else(|| panic!("`{}` has no sample", spec.mnemonic));
        let kernel = kernel(body);
        let [x, y] = ["x", "y"].map(|name| named(&kernel, name));
        let op = kernel.def_op(y).expect("the result of an operation");
        assert_eq!(kernel.kind(op).spec().mnemonic, spec.mnemonic);
        assert_eq!(kernel.forwarded(op), Some(x), "`{}`", spec.mnemonic);
        let [given, result] = elements(&kernel);
        assert_eq!(given, result, "`{}`", spec.mnemonic);
    }
}

#[test]
fn others_hand_nothing_on() {
    assert_eq!(SAMPLES.len(), SPECS.iter().filter(|spec| spec.traits.has(Traits::FORWARDS)).count());
    for spec in SPECS.iter().filter(|spec| spec.traits.has(Traits::FORWARDS)) {
        assert!(spec.traits.has(Traits::PURE) && spec.operands.len() == 1, "`{}`", spec.mnemonic);
        assert!(spec.optional.is_empty() && !spec.traits.has(Traits::VARIADIC), "`{}`", spec.mnemonic);
    }
    let kernel = kernel("%x = constant {value = -1} : i32\n%y = extui %x {to = i64} : i64");
    let cast = kernel.def_op(named(&kernel, "y")).expect("the result of an operation");
    assert_eq!(kernel.forwarded(cast), None);
    let [given, result] = elements(&kernel);
    assert_ne!(given, result);
}

#[test]
fn the_source_is_behind_all_of_them_or_those_asked_for() {
    let kernel = kernel(
        "%n = program_id {axis = 0} : i32\n%h = hint %n {kind = multiple_of, values = [8]} : i32
         %s = splat %h : tile<8xi32>\n%e = expand_dims %s {axis = 0} : tile<1x8xi32>
         %x = trans %e {order = [1, 0]} : tile<8x1xi32>\n%y = addi %x, %x : tile<8x1xi32>",
    );
    let [n, h, e, x, y] = ["n", "h", "e", "x", "y"].map(|name| named(&kernel, name));
    assert_eq!(kernel.source(x), n);
    assert_eq!(kernel.source(y), y, "a sum is a value of its own");
    assert_eq!(kernel.source(n), n);
    assert_eq!(kernel.source_through(x, |kind| !matches!(kind, OpKind::Hint { .. })), h);
    assert_eq!(kernel.source_through(x, |kind| matches!(kind, OpKind::Trans { .. })), e);
    assert!(matches!(kernel.value(n).def, ValueDef::Result(..)));
}
