//! Runs kernels in the interpreter. The comments before `kernel` say on what, and what must come out:
//!
//! ```text
//! // grid 2 1 1                   programs; 1 1 1 if absent
//! // arg x = f32 [1, 2.5, inf]    an allocation; also `f32 iota 8`, `f32 fill 8 1.5`, `f32 uninit 8`
//! // arg n = 3                    a scalar
//! // arg d = desc x 20 40         a tensor descriptor: the allocation `x` as 20 rows of 40 elements of 4 bytes
//! // steps 100                    the step limit
//! // expect x = f32 [2, 3.5, inf] content afterwards; floats are compared by bits, any NaN equals any NaN
//! // print pid (0, 0, 0) idx () x: 1
//! // fault: out of bounds         part of the fault's text
//! // finding: overflow            part of a finding's text
//! ```
//!
//! Kernels from phase `laid` on run on whole tiles and on registers. `// ----` separates kernels in a file.

use std::collections::{HashMap, HashSet};

use rtc_ir::interp::{ArgValue, DescArg, HostMemory, LaunchConfig, RunOptions, Storage, run};
use rtc_ir::text::parse;
use rtc_ir::{Elem, Evaluate, Kernel, Literal, Phase, SPECS, Scalar, decode_float, print_errors, verify};

#[test]
fn interpreter() {
    let mut wrong = String::new();
    let mut count = 0;
    for (path, source) in super::files("run") {
        for part in source.split("\n// ----\n") {
            count += 1;
            if let Err(message) = check(part) {
                wrong.push_str(&format!("{}:\n{part}\n{message}\n", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 20, "only {count} kernels");
}

/// An operation that takes its meaning from the interpreter's code is run by a kernel of this folder: the interpreter
/// says that it ran, or that it is the one at fault. The others are run by `tests/table.rs`.
#[test]
fn every_structured_operation_is_run() {
    let mut seen: HashSet<&str> = HashSet::new();
    for (_, source) in super::files("run") {
        for part in source.split("\n// ----\n") {
            seen.extend(check(part).expect("the test beside this one checks it too"));
        }
    }
    let structured = SPECS.iter().filter(|spec| matches!(spec.eval, Evaluate::Structured));
    // What a record holds is a time; `tests/instrument.rs` of the command reads it.
    let named = structured.map(|spec| spec.mnemonic).filter(|name| *name != "record");
    let missing: Vec<&str> = named.filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "no kernel in tests/filetests/run/ runs {missing:?}");
}

/// Checks a kernel; the operations that ran.
fn check(source: &str) -> Result<HashSet<&'static str>, String> {
    let kernel = parse(source).map_err(|e| e.to_string())?;
    verify(&kernel).map_err(|errors| print_errors(&kernel, &errors))?;
    let storages: &[Storage] =
        if kernel.phase == Phase::Tile { &[Storage::Tiles] } else { &[Storage::Tiles, Storage::Registers] };
    let mut ran = HashSet::new();
    for storage in storages {
        ran.extend(check_storage(source, &kernel, *storage).map_err(|e| format!("{storage:?}: {e}"))?);
    }
    Ok(ran)
}

fn check_storage(source: &str, kernel: &Kernel, storage: Storage) -> Result<HashSet<&'static str>, String> {
    let mut memory = HostMemory::new();
    let mut bases: HashMap<&str, u64> = HashMap::new();
    let mut args: HashMap<&str, ArgValue> = HashMap::new();
    let mut launch = LaunchConfig { grid: [1; 3], args: Vec::new() };
    let mut options = RunOptions { storage, ..RunOptions::default() };
    let (mut expects, mut prints, mut findings, mut fault) = (Vec::new(), String::new(), Vec::new(), None);
    for line in source.lines().map_while(|l| l.strip_prefix("// ")) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "grid" => {
                let sizes: Vec<u32> = rest.split(' ').map(|s| s.parse().expect("a size")).collect();
                launch.grid = sizes.try_into().expect("three sizes");
            }
            "steps" => options.max_steps = rest.parse().expect("a number"),
            "arg" => {
                let (name, value) = rest.split_once(" = ").expect("name = value");
                let arg = match value.split_once(' ') {
                    Some(("desc", rest)) => {
                        let (of, sizes) = rest.split_once(' ').expect("an allocation and sizes");
                        let sizes: Vec<u64> = sizes.split(' ').map(|s| s.parse().expect("a size")).collect();
                        let mut desc = DescArg { base: bases[of], ..DescArg::default() };
                        for (axis, size) in sizes.iter().enumerate() {
                            desc.shape[axis] = *size;
                            desc.strides[axis] = 4 * sizes[axis + 1..].iter().product::<u64>();
                        }
                        ArgValue::Desc(desc)
                    }
                    Some((scalar, content)) => {
                        let scalar = scalar.parse().expect("a scalar type");
                        let base = match content.strip_prefix("uninit ") {
                            Some(n) => {
                                let count: usize = n.parse().expect("a count");
                                memory.alloc_uninit(name, count * Scalar::bytes(scalar) as usize)
                            }
                            None => memory.alloc(name, bytes(scalar, content)),
                        };
                        bases.insert(name, base);
                        ArgValue::Pointer(base)
                    }
                    None if value.contains('.') => ArgValue::Float(value.parse().expect("a float")),
                    None => ArgValue::Int(value.parse().expect("an integer")),
                };
                args.insert(name, arg);
            }
            "expect" => expects.push(rest.split_once(" = ").expect("name = value")),
            "print" => prints.push_str(&format!("{rest}\n")),
            "fault:" => fault = Some(rest),
            "finding:" => findings.push(rest),
            // Anything else is prose.
            _ => {}
        }
    }
    for param in &kernel.params {
        launch.args.push(*args.get(param.name.as_str()).ok_or(format!("no argument `{}`", param.name))?);
    }
    let verified = verify(kernel).map_err(|_| "it was verified before".to_string())?;
    let report = match (run(verified, &mut memory, &launch, &options), fault) {
        (Ok(report), None) => report,
        (Err(found), Some(wanted)) if found.to_string().contains(wanted) => return Ok(found.op.into_iter().collect()),
        (Err(found), _) => return Err(format!("fault: {found}")),
        (Ok(_), Some(wanted)) => return Err(format!("no fault with `{wanted}`")),
    };
    if !prints.is_empty() && report.printed != prints {
        return Err(format!("printed:\n{}", report.printed));
    }
    let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    if found.len() != findings.len() || !findings.iter().all(|w| found.iter().any(|f| f.contains(w))) {
        return Err(format!("findings: {found:#?}"));
    }
    for (name, content) in expects {
        let (scalar, content) = content.split_once(' ').expect("type and values");
        let scalar: Scalar = scalar.parse().expect("a scalar type");
        let found = memory.bytes(bases[name]).expect("it was allocated");
        let (found, wanted) = (numbers(scalar, found), numbers(scalar, &bytes(scalar, content)));
        let same = |a: &u64, b: &u64| {
            a == b || scalar.is_float() && decode_float(*a, scalar).is_nan() && decode_float(*b, scalar).is_nan()
        };
        if found.len() != wanted.len() || !found.iter().zip(&wanted).all(|(a, b)| same(a, b)) {
            return Err(format!("`{name}` is {}\nnot {}", show(scalar, &found), show(scalar, &wanted)));
        }
    }
    Ok(report.ran.keys().map(|op| kernel.kind(op).spec().mnemonic).collect())
}

fn numbers(scalar: Scalar, bytes: &[u8]) -> Vec<u64> {
    let wide = |chunk: &[u8]| chunk.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    bytes.chunks(scalar.bytes() as usize).map(wide).collect()
}

fn show(scalar: Scalar, bits: &[u64]) -> String {
    let one = |b: &u64| if scalar.is_float() { decode_float(*b, scalar).to_string() } else { format!("{b:#x}") };
    bits.iter().map(one).collect::<Vec<String>>().join(", ")
}

fn bytes(scalar: Scalar, content: &str) -> Vec<u8> {
    let literal = |text: &str| {
        let text = text.trim();
        match text.parse() {
            Ok(i) => Literal::Int(i),
            Err(_) => Literal::float(text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))),
        }
    };
    let literals: Vec<Literal> = if let Some(n) = content.strip_prefix("iota ") {
        (0..n.parse().expect("a count")).map(Literal::Int).collect()
    } else if let Some(rest) = content.strip_prefix("fill ") {
        let (n, value) = rest.split_once(' ').expect("count and value");
        vec![literal(value); n.parse().expect("a count")]
    } else {
        let inner = content.trim().strip_prefix('[').and_then(|c| c.strip_suffix(']'));
        inner.unwrap_or_else(|| panic!("`{content}` is no list")).split(',').map(literal).collect()
    };
    let size = scalar.bytes() as usize;
    literals.iter().flat_map(|l| l.bits(scalar).to_le_bytes()[..size].to_vec()).collect()
}

#[test]
fn elements_of_scalars() {
    assert_eq!(bytes(Scalar::F16, "[1, -0.0]"), [0, 0x3c, 0, 0x80]);
    assert_eq!(Elem::Ptr(Scalar::F16).bytes(), 8);
}
