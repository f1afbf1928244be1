//! Random changes to kernels as text: reading, verifying, printing and running them never panics, and a verified kernel
//! has the same results on whole tiles and on registers.

mod mutate;

use mutate::{Random, mutate};
use rtc_ir::interp::{ArgValue, HostMemory, LaunchConfig, RunOptions, Storage, run};
use rtc_ir::text::{parse, print};
use rtc_ir::{Elem, Phase, Verified, print_errors, verify};

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
    let options = RunOptions { max_steps: 100_000, storage, ..RunOptions::default() };
    run(kernel, &mut memory, &launch, &options).map_err(|e| e.kind.to_string())?;
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
