//! How fast the emulator is: thread instructions and operations of matrix products in a second, on one core and on all.
//!
//! `cargo run --release -p rtc-emulator --example speed [START OF A NAME]`

mod kernels;

use std::time::Instant;

fn main() {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let named = std::env::args().nth(1).unwrap_or_default();
    for kernel in kernels::measured().iter_mut().filter(|kernel| kernel.name.starts_with(&named)) {
        for threads in [1, all] {
            let mut best = f64::INFINITY;
            let mut instructions = 0;
            for _ in 0..8 {
                let start = Instant::now();
                instructions = kernel.launch(threads).thread_instructions;
                best = best.min(start.elapsed().as_secs_f64());
            }
            let rate = instructions as f64 / best / 1e6;
            let flops = kernel.operations as f64 / best / 1e9;
            println!(
                "{}, {threads} threads: {rate:.0} million thread instructions, {flops:.2} GFLOP a second",
                kernel.name
            );
        }
    }
}
