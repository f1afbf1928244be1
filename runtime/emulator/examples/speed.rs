//! How many thread instructions per second the emulator executes: integer and float arithmetic, loads, shuffles.
//!
//! `cargo run --release -p rtc-emulator --example speed`

use std::time::Instant;

use rtc_emulator::{LaunchConfig, Memory, Program};

const PTX: &str = "
.version 8.3
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
    .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<2>;
    ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.b32 %r1, [n];
    mov.u32 %r2, %tid.x; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    mov.b32 %r3, 0f00000000; mov.b32 %r4, 0;
LOOP:
    ld.global.b32 %r5, [%rd4];
    fma.rn.f32 %r3, %r5, %r5, %r3;
    mul.lo.s32 %r6, %r4, 12345;
    xor.b32 %r7, %r6, %r4;
    add.rn.f32 %r3, %r3, %r5;
    and.b32 %r8, %r7, 31;
    shfl.sync.bfly.b32 %r9, %r3, 1, 31, -1;
    add.rn.f32 %r3, %r3, %r9;
    add.s32 %r4, %r4, 1;
    setp.lt.s32 %p1, %r4, %r1;
    @%p1 bra LOOP;
    st.global.b32 [%rd5], %r3;
    ret;
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = Program::load(PTX)?;
    let mut memory = Memory::new();
    let (x, y) = (memory.alloc(1024, 16, "x"), memory.alloc(1024, 16, "y"));
    let mut params = Vec::new();
    params.extend(x.to_le_bytes());
    params.extend(y.to_le_bytes());
    params.extend(20_000u32.to_le_bytes());
    let config = LaunchConfig { block: [256, 1, 1], params: &params, ..LaunchConfig::new("k") };
    let start = Instant::now();
    let report = program.launch(&mut memory, &config)?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = report.thread_instructions as f64 / seconds / 1e6;
    println!("{} thread instructions in {seconds:.3} s: {rate:.0} million per second", report.thread_instructions);
    Ok(())
}
