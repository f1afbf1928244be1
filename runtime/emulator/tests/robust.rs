//! Damaged PTX gives errors or faults, never a panic.
#![allow(clippy::unwrap_used)]

use rtc_emulator::tensor_map::{ElementType, TensorMap};
use rtc_emulator::{LaunchConfig, Memory, Program, Schedule};

#[test]
fn damaged_text_never_panics() {
    let seed = 0x9e37_79b9_7f4a_7c15u64;
    println!("seed {seed:#x}");
    let mut state = seed;
    let mut random = |n: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hand");
    let mut loaded = 0;
    let names = ["divergence", "memory", "barriers", "calls"];
    let asynchronous =
        ["copies", "mbarrier", "ring", "tensors", "cluster", "roles"].map(|name| format!("async_{name}"));
    for name in names.iter().map(|name| name.to_string()).chain(asynchronous) {
        let text = std::fs::read_to_string(folder.join(name).with_extension("ptx")).unwrap();
        let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with("//")).collect();
        for _ in 0..150 {
            let mut damaged: Vec<String> = lines.iter().map(|l| l.to_string()).collect();
            for _ in 0..=random(3) {
                let at = random(damaged.len());
                match random(4) {
                    0 => drop(damaged.remove(at)),
                    1 => damaged.swap(at, random(lines.len() - 4)),
                    2 => {
                        let cut = random(damaged[at].len() + 1);
                        damaged[at].truncate(cut);
                    }
                    _ => {
                        let digits = ["0", "1", "99999999999", "-5", "%r1", "b16", "v4", ";"];
                        let word = digits[random(digits.len())];
                        let words: Vec<&str> = damaged[at].split(' ').collect();
                        let n = random(words.len());
                        let changed: Vec<&str> =
                            words.iter().enumerate().map(|(i, w)| if i == n { word } else { *w }).collect();
                        damaged[at] = changed.join(" ");
                    }
                }
            }
            let Ok(program) = Program::load(&damaged.join("\n")) else { continue };
            loaded += 1;
            let mut memory = Memory::new();
            let address = memory.alloc(4096, 16, "all");
            let addresses: Vec<u8> = (0..8).flat_map(|_| address.to_le_bytes()).collect();
            let map = TensorMap::tiled(ElementType::U32, address, &[16, 8], &[64], &[8, 4]).unwrap().encode().unwrap();
            let params: Vec<u8> = [addresses.as_slice(), &map, &map, &map, &map, &addresses].concat();
            for kernel in program.kernels().collect::<Vec<_>>() {
                let config = LaunchConfig { params: &params, budget: Some(3000), ..LaunchConfig::new(kernel) };
                // Any result is fine; blocks of four warps in clusters of two reach more.
                let more = LaunchConfig { block: [128, 1, 1], grid: [2, 1, 1], cluster: [2, 1, 1], ..config.clone() };
                let _ = program.launch(&mut memory, &LaunchConfig { schedule: Schedule::Random(1), ..more });
                let _ = program.launch(&mut memory, &config);
            }
        }
    }
    assert!(loaded > 10, "only {loaded} texts could be loaded");
}
