//! Random changes to texts: reading, verifying, printing and running them never panics, and what is verified does the
//! same on whole tiles and on registers.

use rtc_ir::interp::{ArgValue, HostMemory, LaunchConfig, RunOptions, Storage, run};
use rtc_ir::text::{parse, print};
use rtc_ir::{Elem, Phase, Verified, print_errors, verify};

/// A linear congruential generator; the upper half is used.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

fn sources() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let mut out = Vec::new();
    for folder in ["text", "verify", "run"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("the folder is there");
        let mut paths: Vec<_> = entries.map(|e| e.expect("a directory entry").path()).collect();
        paths.retain(|p| p.extension().is_some_and(|x| x == "tir"));
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(path).expect("the file is text");
            out.extend(text.split("\n// ----\n").map(str::to_string));
        }
    }
    out
}

/// Words of the language, so that changes often still read.
const WORDS: &[&str] = &[
    "%x",
    "%a",
    "%i",
    "#l0",
    "#l1",
    "tile<4xi32>",
    "tile<1x2x4x8xf32, #l1>",
    "f32",
    "i1",
    "ptr<f16>",
    "0",
    "-1",
    "64",
    "4294967296",
    "1.5",
    "inf",
    "nan(0x7ff8000000000000)",
    "mask",
    "reduce",
    "addf",
    "yields",
    "^",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "=",
    ",",
    ":",
    "axis",
    "\"s\"",
    "é",
    "warps 8",
    "phase laid",
    "phase scheduled",
    "loc(0:1..2)",
    "trans",
    "reshape",
    "split",
    "join",
    "cat",
    "dot",
    "broadcast",
    "scan",
    "mma_v2(shape [64, 64], warps [4, 1])",
];

fn mutate(random: &mut Random, text: &str, others: &[String]) -> String {
    let mut text = text.to_string();
    for _ in 0..1 + random.below(3) {
        let cut = |random: &mut Random, text: &str| {
            let mut at = random.below(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (a, b) = (cut(random, &text), cut(random, &text));
        match random.below(6) {
            0 => text.insert_str(a, WORDS[random.below(WORDS.len())]),
            1 => {
                let end = a + text[a..].find([' ', '\n']).unwrap_or(0);
                text.replace_range(a..end, "");
            }
            2 => {
                let mut lines: Vec<&str> = text.lines().collect();
                let (i, j) = (random.below(lines.len()), random.below(lines.len()));
                if i < lines.len() && j < lines.len() {
                    lines.swap(i, j);
                }
                text = lines.join("\n");
            }
            3 => {
                let other = &others[random.below(others.len())];
                let line = other.lines().nth(random.below(other.lines().count())).unwrap_or_default();
                text.insert_str(a, line);
            }
            4 => {
                let word = WORDS[random.below(WORDS.len())];
                let end = a + text[a..].find([' ', ',', '\n']).unwrap_or(0);
                text.replace_range(a..end, word);
            }
            _ => {
                let (a, b) = (a.min(b), a.max(b).min(a.min(b) + 12));
                if text.is_char_boundary(b) {
                    let piece = text[a..b].to_string();
                    text.insert_str(b, &piece);
                }
            }
        }
    }
    text
}

/// All memory after a run, or the fault.
fn outcome(kernel: Verified<'_>, storage: Storage) -> Result<Vec<Vec<u8>>, String> {
    let mut memory = HostMemory::new();
    let (mut args, mut bases) = (Vec::new(), Vec::new());
    for param in &kernel.kernel().params {
        args.push(match kernel.kernel().value_type(param.value).elem() {
            Some(Elem::Ptr(_)) => {
                bases.push(memory.alloc(param.name.clone(), vec![0; 1024]));
                ArgValue::Pointer(bases[bases.len() - 1])
            }
            _ => ArgValue::Bits(3),
        });
    }
    let launch = LaunchConfig { grid: [1, 1, 1], args };
    run(kernel, &mut memory, &launch, &RunOptions { max_steps: 100_000, storage }).map_err(|e| e.kind.to_string())?;
    Ok(bases.iter().map(|base| memory.bytes(*base).expect("it was allocated").to_vec()).collect())
}

#[test]
fn no_text_panics() {
    let seed = std::env::var("RTC_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_251_120);
    println!("seed {seed}");
    let sources = sources();
    let mut random = Random(seed);
    let (mut read, mut verified) = (0, 0);
    for _ in 0..20_000 {
        let source = &sources[random.below(sources.len())];
        let text = mutate(&mut random, source, &sources);
        let result = std::panic::catch_unwind(|| {
            let Ok(kernel) = parse(&text) else { return (0, 0) };
            let printed = print(&kernel);
            let again = parse(&printed).unwrap_or_else(|e| panic!("what was printed is not read: {e}\n{printed}"));
            assert_eq!(print(&again), printed);
            let Ok(accepted) = verify(&kernel).inspect_err(|e| drop(print_errors(&kernel, e))) else { return (1, 0) };
            let tiles = outcome(accepted, Storage::Tiles);
            // `reorder` leaves the order of elements open, and the step limit strikes at different places.
            let limited = matches!(&tiles, Err(fault) if fault.contains("limit"));
            if kernel.phase != Phase::Tile && !limited && !text.contains("reorder") {
                let registers = outcome(accepted, Storage::Registers);
                if !matches!(&registers, Err(fault) if fault.contains("limit")) {
                    assert_eq!(registers, tiles, "whole tiles and registers differ");
                }
            }
            (1, 1)
        });
        match result {
            Ok((r, v)) => {
                read += r;
                verified += v;
            }
            Err(_) => panic!("seed {seed}: this text panics:\n{text}"),
        }
    }
    println!("{read} read, {verified} verified");
    assert!(read > 2000 && verified > 500, "the changes are too wild: {read} read, {verified} verified");
}
