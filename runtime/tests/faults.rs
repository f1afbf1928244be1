//! A table of faults: what is tried, and what the runtime says. Each names the kernel, the argument and what to do, and
//! nothing runs.
#![allow(clippy::unwrap_used, unsafe_code)]
#![cfg(feature = "emulator")]

use rtc_runtime::{Arg, Device, DeviceAddress, DeviceKind, Metadata, Slice, Variant, args};
use std::fmt::Write;

const PTX: &str = include_str!("kernels/scale.ptx");
const METADATA: &str = include_str!("kernels/scale.json");

/// The metadata without what is proved of the accesses.
fn unproved() -> String {
    ["read", "write"].iter().fold(METADATA.to_owned(), |text, access| {
        text.replace(&format!(r#" "access": "{access}", "extent": "n","#), "")
    })
}

/// Addresses differ between devices; what they end in counts.
fn masked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        let end = rest[at + 2..].find(|c: char| !c.is_ascii_hexdigit()).map_or(rest.len(), |n| at + 2 + n);
        let _ = write!(out, "{}0x..{}", &rest[..at], &rest[end - 1..end]);
        rest = &rest[end..];
    }
    out + rest
}

#[test]
fn launches_that_do_not_fit() {
    let device = Device::emulator();
    // Compiled for `*fp32:16, *fp32, fp32, i32:4`.
    let promised = unproved()
        .replace(r#""x", "type": "*fp32""#, r#""x", "type": "*fp32", "divisible_by": 16"#)
        .replace(r#""n", "type": "i32""#, r#""n", "type": "i32", "divisible_by": 4"#);
    // SAFETY: the files were made together; on the emulator an access out of bounds is a fault.
    let kernel = unsafe { device.load_json(PTX, &promised).unwrap().assume_in_bounds() };
    let stream = device.default_stream();
    let x = device.upload(&[1.0f32; 64]).unwrap();
    let y = device.upload(&[-1.0f32; 64]).unwrap();
    let bytes = device.upload(&[0u8; 64]).unwrap();
    let (halves, ints) = (device.zeros::<half::f16>(64).unwrap(), device.zeros::<i32>(64).unwrap());
    let other = Device::emulator();
    let elsewhere = other.upload(&[1.0f32; 64]).unwrap();

    let mut table = String::new();
    let mut row = |what: &str, grid: (u32, u32, u32), args: &[Arg<'_>]| {
        let said = match kernel.launch(stream, grid, args) {
            Ok(()) => "nothing to run".to_owned(),
            Err(error) => masked(&error.to_string()),
        };
        let _ = writeln!(table, "{what}\n    {said}");
        assert_eq!(y.to_vec().unwrap(), [-1.0; 64], "{what}: nothing may run");
    };
    let one = (1, 1, 1);
    row("too few arguments", one, &args![&x, &y, 2.0f32]);
    row("too many arguments", one, &args![&x, &y, 2.0f32, 32, 1]);
    row("no arguments", one, &[]);
    row("a buffer of halves", one, &args![&x, &halves, 2.0f32, 32]);
    row("a buffer of integers", one, &args![&ints, &y, 2.0f32, 32]);
    row("a number for a buffer", one, &args![&x, 7u64, 2.0f32, 32]);
    row("a buffer for a number", one, &args![&x, &y, &x, 32]);
    row("a float for an integer", one, &args![&x, &y, 2.0f32, 32.0f64]);
    row("a bool for a float", one, &args![&x, &y, true, 32]);
    row("an integer of too many bits", one, &args![&x, &y, 2.0f32, 1i64 << 40]);
    row("an integer that breaks a promise", one, &args![&x, &y, 2.0f32, 30]);
    row("an address that breaks a promise", one, &args![x.slice(1..), &y, 2.0f32, 32]);
    row("bytes that begin within an element", one, &args![&x, bytes.slice(2..), 2.0f32, 32]);
    row("an address between elements", one, &args![&x, Slice::from(&bytes).slice(1..), 2.0f32, 32]);
    row("a buffer of another device", one, &args![&x, &elsewhere, 2.0f32, 32]);
    row("a grid of zero", (0, 1, 1), &args![&x, &y, 2.0f32, 32]);
    row("a grid of zero with a mistake", (1, 0, 1), &args![&x, &y, 2.0f32, 31]);
    row("a grid too large along x", (1 << 31, 1, 1), &args![&x, &y, 2.0f32, 32]);
    row("a grid too large along y", (1, 1 << 16, 1), &args![&x, &y, 2.0f32, 32]);
    row("a grid too large along z", (1, 1, u32::MAX), &args![&x, &y, 2.0f32, 32]);
    let wrong = kernel.launch(other.default_stream(), one, &args![&x, &y, 2.0f32, 32]).unwrap_err();
    let _ = writeln!(table, "a stream of another device\n    {wrong}");
    let null = kernel.launch(stream, one, &args![DeviceAddress::NULL, &y, 2.0f32, 32]).unwrap_err();
    let _ = writeln!(table, "the null pointer, which the kernel reads\n    {}", masked(&null.to_string()));
    let short = device.alloc_named::<f32>(8, "short").unwrap();
    let past = kernel.launch(stream, one, &args![&short, &y, 2.0f32, 32]).unwrap_err();
    let _ = writeln!(table, "a buffer too short, without an extent in the metadata\n    {}", masked(&past.to_string()));
    let writes = promised.replace(r#""y", "type": "*fp32""#, r#""y", "type": "*fp32", "access": "write""#);
    // SAFETY: as above.
    let shared =
        unsafe { device.load_json(PTX, &writes) }.unwrap().launch(stream, one, &args![&x, &y, 2.0f32, 32]).unwrap_err();
    let _ = writeln!(table, "a buffer to be read where the kernel writes\n    {shared}");
    assert_eq!(y.to_vec().unwrap(), [-1.0; 64], "nothing may run");
    insta::assert_snapshot!(table);
}

#[test]
fn kernels_that_cannot_be_loaded() {
    let device = Device::emulator();
    let mut table = String::new();
    let mut row = |what: &str, said: String| {
        let _ = writeln!(table, "{what}\n    {said}");
    };
    // SAFETY: none of them is loaded.
    let load = |ptx: &str, metadata: &str| unsafe { device.load_json(ptx, metadata) }.unwrap_err().to_string();
    row("metadata cut off", load(PTX, &unproved()[..unproved().len() / 2]));
    row("metadata of another kernel", load(PTX, &METADATA.replace(r#""symbol": "scale""#, r#""symbol": "add""#)));
    let mut fewer = Metadata::from_json(&unproved()).unwrap();
    fewer.params.pop();
    row("metadata with fewer parameters", load(PTX, &fewer.to_json()));
    row("PTX with a word that is none", load(&PTX.replace("mul.f32", "mul.f33"), METADATA));
    row("PTX cut off", load(&PTX[..PTX.len() - 40], METADATA));
    row("no PTX", load("", METADATA));
    // SAFETY: it is not loaded.
    let variant = unsafe { Variant::new("sm_120a", PTX, METADATA, None) };
    row("PTX for another target", device.load_variant("scale", &[variant]).unwrap_err().to_string());
    insta::assert_snapshot!(table);
}

#[test]
fn devices_that_are_not_there() {
    let error = Device::open(DeviceKind::Cuda(99)).unwrap_err().to_string();
    assert!(error.contains("there is no CUDA device 99") || error.contains("no CUDA driver was found"), "{error}");
    // Where there is no GPU, the fallback says why.
    let device = Device::auto();
    assert_eq!(device.is_cuda(), device.cuda_error().is_none());
    #[cfg(not(feature = "jit"))]
    assert!(Device::interpreter().unwrap_err().to_string().contains("feature `jit`"));
}

/// The page on faults names tests; each is where it says.
#[test]
fn the_page_on_faults_names_tests_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/correctness/faults.md")).unwrap();
    let files = page.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": `"));
    let files: Vec<(&str, &str)> = files.map(|(letter, rest)| (letter, rest.split('`').next().unwrap())).collect();
    let mut named = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in tests.split(", ").filter(|test| *test != "test") {
            let (letter, name) = test.split_once(" `").unwrap_or_else(|| panic!("{row}"));
            let (_, path) = files.iter().find(|(known, _)| *known == letter).unwrap_or_else(|| panic!("{letter}"));
            let text = std::fs::read_to_string(root.join(path)).unwrap();
            let name = name.trim_end_matches('`');
            let declarations = [format!("fn {name}()"), format!("def {name}(self)")];
            assert!(declarations.iter().any(|declaration| text.contains(declaration)), "{path} has no test {name}");
            named += 1;
        }
    }
    assert!(named > 30, "{named}");
}
