//! Every function of libdevice, at every signature, resolves and has the right result type: by the standard library, and
//! as a call of NVIDIA's library where that is given.

mod kernels;

use std::fmt::Write as _;

use kernels::compile;

/// A signature's type and what `static_print` shows for it.
const TYPES: [(&str, &str, &str); 7] = [
    ("i1", "*i1", "int1"),
    ("i32", "*i32", "int32"),
    ("i64", "*i64", "int64"),
    ("u32", "*u32", "uint32"),
    ("u64", "*u64", "uint64"),
    ("f32", "*fp32", "fp32"),
    ("f64", "*fp64", "fp64"),
];

fn row(short: &str) -> (&'static str, &'static str) {
    let found = TYPES.iter().find(|(name, ..)| *name == short).unwrap_or_else(|| panic!("no type `{short}`"));
    (found.1, found.2)
}

#[test]
fn every_function_resolves_at_every_signature() {
    resolve_all("");
}

#[test]
fn every_function_is_a_call_where_the_library_is_given() {
    resolve_all("# libdevice: external\n");
}

fn resolve_all(header: &str) {
    let (mut wrong, mut count) = (String::new(), 0);
    for line in rtc_stdlib::LIBDEVICE_FUNCTIONS.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, arguments @ .., "->", result, _symbol] = &words[..] else { panic!("`{line}`") };
        let pointers: Vec<_> = ["a", "b", "c", "d"][..arguments.len()].to_vec();
        let loads: Vec<_> = pointers.iter().map(|p| format!("tl.load({p} + i)")).collect();
        let text = format!(
            "{header}@triton.jit\ndef kernel({}):\n    i = tl.arange(0, 32)\n    y = tl.extra.cuda.libdevice.{name}({})\n    \
             z = libdevice.{name}({})\n    tl.static_print(z.dtype)\n",
            pointers.join(", "),
            loads.join(", "),
            loads.join(", "),
        );
        let signature: Vec<_> = arguments.iter().map(|a| row(a).0).collect();
        let outcome = compile("kernel.rt", &text, &signature.join(", "), 90);
        let shown = outcome.prints.first().map_or("refused", String::as_str);
        if shown != row(result).1 {
            writeln!(wrong, "{line}: {shown} {}", outcome.rendered.join("; ")).expect("writes to memory");
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 300, "only {count} signatures");
}
