//! Compares the emulator with an NVIDIA H100: every form of `hardware/forms.txt` on 64 lanes of edge and random values.
//! `hardware/make.py` made `hardware/hardware.bin` on that GPU; it builds the same kernels as this file.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use rtc_emulator::{LaunchConfig, Memory, Program};

const N: usize = 64;
const CLASSES: &[(&str, char)] = &[
    ("f32", 'r'),
    ("f64", 'd'),
    ("f16", 'h'),
    ("i16", 'h'),
    ("i32", 'r'),
    ("i64", 'd'),
    ("bf16", 'h'),
    ("f16x2", 'r'),
    ("bf16x2", 'r'),
    ("s8x4", 'r'),
    ("small", 'r'),
    ("shift", 'r'),
    ("ints", 'r'),
    ("halfint", 'r'),
    ("bfint", 'r'),
    ("tfint", 'r'),
    ("dint", 'd'),
    ("f8", 'h'),
    ("pred", 'p'),
];

struct Form<'a> {
    destinations: &'a str,
    sources: Vec<&'a str>,
    text: &'a str,
    ulp: u64,
}

fn read_form(line: &str) -> Option<Form<'_>> {
    let line = line.split('#').next()?.trim();
    let (head, text) = line.split_once(':')?;
    let mut words = head.split_whitespace();
    let destinations = words.next()?;
    let (ulp, sources): (Vec<&str>, Vec<&str>) = words.partition(|w| w.starts_with('~'));
    let ulp = ulp.first().map_or(0, |w| w[1..].parse().unwrap());
    Some(Form { destinations, sources, text: text.trim(), ulp })
}

fn kind_of(class: &str) -> char {
    CLASSES.iter().find(|c| c.0 == class).unwrap().1
}

fn width(kind: char) -> (&'static str, usize) {
    match kind {
        'h' => ("b16", 16),
        'r' => ("b32", 32),
        'd' => ("b64", 64),
        _ => ("pred", 32),
    }
}

fn kernel(index: usize, form: &Form<'_>) -> String {
    let mut k =
        format!(".visible .entry k{index}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po)\n{{\n");
    k.push_str(".reg .b64 %x<8>; .reg .b32 %y<4>; .reg .pred %q;\nmov.u32 %y0, %tid.x;\n");
    for (letter, class) in "abc".chars().zip(&form.sources) {
        let (register, bits) = width(kind_of(class));
        writeln!(k, "ld.param.b64 %x0, [p{letter}];").unwrap();
        for j in (0..8).filter(|j| form.text.contains(&format!("${letter}{j}"))) {
            writeln!(k, ".reg .{register} %{letter}{j};").unwrap();
            writeln!(
                k,
                "add.s32 %y1, %y0, {}; and.b32 %y1, %y1, {}; mul.wide.u32 %x1, %y1, 8; add.s64 %x2, %x0, %x1;",
                37 * j,
                N - 1
            )
            .unwrap();
            if register == "pred" {
                writeln!(k, "ld.global.b32 %y2, [%x2]; setp.ne.b32 %{letter}{j}, %y2, 0;").unwrap();
            } else {
                writeln!(k, "ld.global.b{bits} %{letter}{j}, [%x2];").unwrap();
            }
        }
    }
    for (j, kind) in form.destinations.chars().enumerate() {
        writeln!(k, ".reg .{} %d{j};", width(kind).0).unwrap();
    }
    let end = if form.text.starts_with("{ ") { "" } else { ";" };
    writeln!(k, "{}{end}\nld.param.b64 %x0, [po];", form.text.replace('$', "%")).unwrap();
    for (j, kind) in form.destinations.chars().enumerate() {
        let (register, bits) = width(kind);
        let at = j * N * bits / 8;
        writeln!(k, "mul.wide.u32 %x1, %y0, {}; add.s64 %x2, %x0, %x1;", bits / 8).unwrap();
        if register == "pred" {
            writeln!(k, "selp.b32 %y2, 1, 0, %d{j}; st.global.b32 [%x2+{at}], %y2;").unwrap();
        } else {
            writeln!(k, "st.global.b{bits} [%x2+{at}], %d{j};").unwrap();
        }
    }
    k.push_str("ret;\n}\n");
    k
}

/// Distance between two values as floating-point numbers of a width; 0 if both are NaN.
fn distance(a: u64, b: u64, bits: usize) -> u64 {
    let ordered = |x: u64| {
        let sign = 1u64 << (bits - 1);
        if x & sign != 0 { -((x & !sign) as i128) } else { x as i128 }
    };
    (ordered(a) - ordered(b)).unsigned_abs() as u64
}

#[test]
fn every_form_agrees_with_hardware() {
    let forms: Vec<Form<'_>> = include_str!("hardware/forms.txt").lines().filter_map(read_form).collect();
    let mut data = include_bytes!("hardware/hardware.bin").as_slice();
    let mut take = |n: usize| {
        let (head, rest) = data.split_at(n);
        data = rest;
        head
    };
    let mut memory = Memory::new();
    let mut columns = Vec::new();
    for (class, _) in CLASSES {
        let addresses: Vec<u64> = (0..3)
            .map(|_| {
                let address = memory.alloc(N * 8, 16, class);
                memory.write(address, take(N * 8)).unwrap();
                address
            })
            .collect();
        columns.push(addresses);
    }
    let column = |class: &str, n: usize| columns[CLASSES.iter().position(|c| c.0 == class).unwrap()][n];
    let out = memory.alloc(N * 8 * 8, 16, "out");
    let mut failures = Vec::new();
    for (i, form) in forms.iter().enumerate() {
        let size: usize = form.destinations.chars().map(|k| N * width(k).1 / 8).sum();
        let wanted = take(size);
        let ptx = format!(".version 8.4\n.target sm_90a\n.address_size 64\n{}", kernel(i, form));
        let program = match Program::load(&ptx) {
            Ok(program) => program,
            Err(error) => {
                failures.push(format!("{}: {error}", form.text));
                continue;
            }
        };
        let mut params = Vec::new();
        for n in 0..3 {
            let address = form.sources.get(n).map_or(column("f32", 0), |class| column(class, n));
            params.extend(address.to_le_bytes());
        }
        params.extend(out.to_le_bytes());
        let name = format!("k{i}");
        let config = LaunchConfig { block: [N as u32, 1, 1], params: &params, ..LaunchConfig::new(&name) };
        if let Err(fault) = program.launch(&mut memory, &config) {
            failures.push(format!("{}: {fault}", form.text));
            continue;
        }
        let found = memory.read(out, size).unwrap();
        let mut at = 0;
        let mut bad = 0;
        let mut first = String::new();
        for (j, kind) in form.destinations.chars().enumerate() {
            let bits = width(kind).1;
            for lane in 0..N {
                let value = |bytes: &[u8]| {
                    let mut all = [0; 8];
                    all[..bits / 8].copy_from_slice(&bytes[at..at + bits / 8]);
                    u64::from_le_bytes(all)
                };
                let (mine, theirs) = (value(found), value(wanted));
                at += bits / 8;
                if mine != theirs && distance(mine, theirs, bits) > form.ulp {
                    bad += 1;
                    if bad <= 3 {
                        let inputs: Vec<String> = form
                            .sources
                            .iter()
                            .enumerate()
                            .map(|(n, class)| {
                                let bytes = memory.read(column(class, n) + 8 * lane as u64, 8).unwrap();
                                format!("{:#x}", u64::from_le_bytes(bytes.try_into().unwrap()))
                            })
                            .collect();
                        write!(
                            first,
                            "\n    d{j} lane {lane} ({}): {mine:#x}, hardware {theirs:#x}",
                            inputs.join(", ")
                        )
                        .unwrap();
                    }
                }
            }
        }
        if bad > 0 {
            failures.push(format!("{}: {bad} differ{first}", form.text));
        }
    }
    assert!(data.is_empty(), "hardware.bin does not belong to forms.txt");
    assert!(failures.is_empty(), "{} of {} forms:\n{}", failures.len(), forms.len(), failures.join("\n"));
}
