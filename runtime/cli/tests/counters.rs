//! The savings of analyses at run time, counted: each kernel in a form that an analysis understands, and one that computes the
//! same such that the analysis cannot know. `rtc run --counters` counts sectors, accesses to shared memory and instructions;
//! divisions, which are one instruction of PTX and many of the machine, are counted in the PTX of the loop.
#![allow(clippy::unwrap_used)]

mod scratch;

use std::fmt::Write;

use scratch::{Scratch, safetensors};
use serde_json::{Value, json};

const KERNELS: &str = "\
@triton.jit
def narrow_load(x, s, y, group):
    r, c = tl.arange(0, 32)[:, None], tl.arange(0, 64)[None, :]
    scales = tl.load(s + r // group * 64 + c)
    tl.store(y + r * 64 + c, tl.load(x + r * 64 + c) * scales)


@triton.jit
def lanes(x, y, sr, sc):
    r, c = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
    tl.store(y, tl.sum(tl.load(x + r * sr + c * sc)))


@triton.jit
def unit_stride(x, y, ones, n, sr, sc, LOADED: tl.constexpr):
    r, c = tl.arange(0, 16)[:, None], tl.arange(0, 32)[None, :]
    if LOADED:
        sc = tl.load(ones)
    sums = tl.zeros((16,), tl.float32)
    for i in range(n):
        sums += tl.sum(tl.load(x + i * 512 + r * sr + c * sc), axis=1)
    tl.store(y + tl.arange(0, 16), sums)


@triton.jit
def cast_operand(a, b, y, n):
    m, c, k = tl.arange(0, 16), tl.arange(0, 64), tl.arange(0, 64)
    sums = tl.zeros((16, 64), tl.float32)
    for i in range(n):
        left = tl.load(a + m[:, None] * 256 + (i * 64 + k)[None, :])
        right = tl.load(b + c[None, :] * 256 + (i * 64 + k)[:, None]).to(tl.float16)
        sums = tl.dot(left, right, sums)
    tl.store(y + m[:, None] * 64 + c[None, :], sums)


@triton.jit
def divisor(x, y, ones, n, group, LOADED: tl.constexpr):
    o = tl.arange(0, 128)
    sums = tl.zeros((128,), tl.float32)
    for i in range(n):
        if LOADED:
            group = tl.load(ones + i)
        sums += tl.load(x + (i * 128 + o) // group)
    tl.store(y + o, sums)
";

/// What is shown, the kernel, its arguments, and those that differ where the analysis knows and where it does not. A number
/// alone is a constant.
const CASES: [(&str, &str, &str, [&str; 2]); 5] = [
    ("one row of scales for 32", "narrow_load", "x=*fp32:16, s=*fp32:16, y=*fp32:16", ["group=32", "group=i32 32"]),
    ("a stride that is a multiple of 16", "lanes", "x=*fp32:16, y=*fp32:16, sr=i32 1", ["sc=i32:16 32", "sc=i32 32"]),
    (
        "a stride that is 1 in this launch",
        "unit_stride",
        "x=*fp32:16, y=*fp32:16, ones=*i32:16, n=i32 4, sr=i32:16 32, sc=i64 1",
        ["LOADED=false", "LOADED=true"],
    ),
    (
        "an operand cast from 8 bits, and one of 16",
        "cast_operand",
        "a=*fp16:16, y=*fp32:16, n=i32 4",
        ["b=*i8:16", "b=*fp16:16"],
    ),
    (
        "a divisor that the loop does not change",
        "divisor",
        "x=*fp32:16, y=*fp32:16, ones=*i32:16, n=i32 4, group=i32 1",
        ["LOADED=false", "LOADED=true"],
    ),
];

/// The elements of a tensor.
const ELEMENTS: usize = 1 << 14;

/// The tensors file of a launch: ones in `ones`, zeros elsewhere.
fn tensors(types: &[(String, &str, usize)]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, ty, bytes) in types {
        let start = data.len();
        match name.as_str() {
            "ones" => data.extend(std::iter::repeat_n(1_i32.to_le_bytes(), ELEMENTS).flatten()),
            _ => data.resize(start + ELEMENTS * bytes, 0),
        }
        let field = json!({"dtype": ty, "shape": [ELEMENTS], "data_offsets": [start, data.len()]});
        header.insert(name.clone(), field);
    }
    safetensors(&Value::Object(header).to_string(), &data)
}

/// A launch of a kernel with these arguments, in the order of its parameters, and its tensors.
fn launch(kernel: &str, arguments: &str) -> (String, Vec<u8>) {
    let mut given: Vec<(&str, &str)> = arguments.split(", ").map(|part| part.split_once('=').unwrap()).collect();
    let head = KERNELS.split(&format!("def {kernel}(")).nth(1).unwrap().split(')').next().unwrap();
    let place = |name: &str| head.split(", ").position(|param| param.split(':').next() == Some(name)).unwrap();
    given.sort_by_key(|(name, _)| place(name));
    let (mut spec, mut args, mut types) = (Vec::new(), serde_json::Map::new(), Vec::new());
    for (name, text) in given {
        if let Ok(constant @ (Value::Number(_) | Value::Bool(_))) = serde_json::from_str(text) {
            spec.push(json!({"name": name, "constexpr": constant}));
            continue;
        }
        let (ty, value) = text.split_once(' ').unwrap_or((text, ""));
        let (ty, divisible) = ty.split_once(':').map_or((ty, 1), |(ty, by)| (ty, by.parse().unwrap()));
        spec.push(json!({"name": name, "type": ty, "divisible_by": divisible}));
        let value = match ty {
            "*fp32" | "*i32" | "*fp16" | "*i8" => {
                let (stored, bytes) = [("*fp32", "F32", 4), ("*i32", "I32", 4), ("*fp16", "F16", 2), ("*i8", "I8", 1)]
                    .into_iter()
                    .find_map(|(of, stored, bytes)| (of == ty).then_some((stored, bytes)))
                    .unwrap();
                types.push((name.to_owned(), stored, bytes));
                json!({"tensor": name})
            }
            _ => json!(value.parse::<i64>().unwrap()),
        };
        args.insert(name.to_owned(), value);
    }
    let spec = json!({"kernel": kernel, "args": spec});
    let launch = json!({"spec": spec, "grid": [1, 1, 1], "args": args, "tensors": "in.safetensors"});
    (launch.to_string(), tensors(&types))
}

/// The divisions and remainders in the loops of PTX.
fn divisions_in_loops(ptx: &str) -> u64 {
    let lines: Vec<&str> = ptx.lines().map(str::trim).collect();
    let last_branch = |label: &str| lines.iter().rposition(|line| line.contains("bra") && line.contains(label));
    let within = |(start, line): (usize, &&str)| {
        let label = line.strip_suffix(':').filter(|label| label.starts_with("$L"))?;
        last_branch(&format!("{label};")).filter(|end| *end > start).map(|end| start..end)
    };
    let loops: Vec<_> = lines.iter().enumerate().filter_map(within).collect();
    let divides = |line: &str| line.contains("div.") || line.contains("rem.");
    (0..lines.len()).filter(|number| divides(lines[*number]) && loops.iter().any(|of| of.contains(number))).count()
        as u64
}

#[test]
fn what_analyses_save_is_counted() {
    let scratch = Scratch::new("analyses");
    scratch.write("k.rt", KERNELS);
    let mut table = String::new();
    for (title, kernel, arguments, variants) in CASES {
        writeln!(table, "{title}").unwrap();
        for variant in variants {
            let (launch, tensors) = launch(kernel, &format!("{arguments}, {variant}"));
            scratch.write("l.json", launch).write("in.safetensors", tensors);
            let args = ["run", "k.rt", "--launch", "l.json", "--arch", "sm_90a", "--counters", "--keep", "kept"];
            let output = scratch.rtc(&[&args[..], &["--message-format", "json"]].concat());
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
            let counters = &serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap()["counters"];
            let number = |path: &str| counters.pointer(path).and_then(Value::as_u64).unwrap_or(0);
            let instructions = counters["instructions"].as_object().unwrap();
            let all: u64 = instructions.values().map(|class| class["warps"].as_u64().unwrap()).sum();
            let ptx = std::fs::read_to_string(scratch.0.join(format!("kept/{kernel}.ptx"))).unwrap();
            let counted = [
                ("loads", number("/loads/requests")),
                ("sectors of loads", number("/loads/sectors")),
                ("copies", number("/copies_in/requests")),
                ("sectors of copies", number("/copies_in/sectors")),
                ("accesses to shared memory", number("/shared/requests")),
                ("wavefronts", number("/shared/turns")),
                ("barriers and waits", number("/instructions/sync/warps")),
                ("instructions", all),
                ("divisions in loops", divisions_in_loops(&ptx)),
            ];
            let shown = counted.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} {count}"));
            writeln!(table, "  {variant:<14} {}", shown.collect::<Vec<_>>().join(", ")).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
