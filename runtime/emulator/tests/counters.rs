//! Counters of small programs, worked out by hand.
#![allow(clippy::unwrap_used)]

use rtc_emulator::counters::{Class, Counters, Machine, SharedTraffic, Traffic};
use rtc_emulator::{LaunchConfig, Memory, Program};

/// Counts a launch of one warp; the kernel gets the address of 16 KB and has 8 KB of shared memory.
fn counted(body: &str) -> Counters {
    let ptx = format!(
        ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 x) {{\n\
         .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p<4>;\n\
         ld.param.b64 %rd1, [x];\nmov.u32 %r1, %tid.x;\n{body}\nret;\n}}"
    );
    let program = Program::load(&ptx).unwrap();
    let mut memory = Memory::new();
    let params = memory.alloc(16384, 16, "x").to_le_bytes();
    let config = LaunchConfig { params: &params, shared_bytes: 8192, counts: true, ..LaunchConfig::new("k") };
    program.launch(&mut memory, &config).unwrap().counters.unwrap()
}

/// A load by each lane, `stride` bytes apart.
fn global(width: &str, stride: u32) -> Traffic {
    counted(&format!(
        "mul.wide.u32 %rd2, %r1, {stride};\nadd.s64 %rd3, %rd1, %rd2;\nld.global.{width} [%rd3];",
        width = match width {
            "v4" => "v4.b32 {%r2, %r3, %r4, %r5},".to_string(),
            _ => "b32 %r2,".to_string(),
        }
    ))
    .loads
}

#[test]
fn sectors_of_global_memory() {
    assert_eq!(global("b32", 4), Traffic { requests: 1, sectors: 4, bytes: 128 });
    assert_eq!(global("b32", 8), Traffic { requests: 1, sectors: 8, bytes: 128 });
    assert_eq!(global("b32", 128), Traffic { requests: 1, sectors: 32, bytes: 128 });
    assert_eq!(global("b32", 0), Traffic { requests: 1, sectors: 1, bytes: 4 });
    assert_eq!(global("v4", 16), Traffic { requests: 1, sectors: 16, bytes: 512 });
    assert!((global("v4", 16).sectors_per_request() - 16.0).abs() < 1e-9);
}

/// A store by each lane to shared memory, `stride` bytes apart.
fn shared(store: &str, stride: u32) -> SharedTraffic {
    counted(&format!("mul.lo.u32 %r6, %r1, {stride};\nmov.b32 %r2, 0;\nst.shared.{store};")).shared
}

#[test]
fn conflicts_of_banks() {
    let word = "b32 [%r6], %r2";
    assert_eq!(shared(word, 4), SharedTraffic { requests: 1, turns: 1, conflicts: 0, bytes: 128 });
    assert_eq!(shared(word, 8), SharedTraffic { requests: 1, turns: 2, conflicts: 1, bytes: 128 });
    assert_eq!(shared(word, 128), SharedTraffic { requests: 1, turns: 32, conflicts: 31, bytes: 128 });
    // 33 words apart: every lane has its own bank.
    assert_eq!(shared(word, 132), SharedTraffic { requests: 1, turns: 1, conflicts: 0, bytes: 128 });
    // All lanes at one address.
    assert_eq!(shared(word, 0), SharedTraffic { requests: 1, turns: 1, conflicts: 0, bytes: 4 });
    // 16 bytes each take 4 wavefronts of 8 lanes, the minimum for 512 bytes.
    let wide = "v4.b32 [%r6], {%r2, %r2, %r2, %r2}";
    assert_eq!(shared(wide, 16), SharedTraffic { requests: 1, turns: 4, conflicts: 0, bytes: 512 });
    assert_eq!(shared(wide, 128), SharedTraffic { requests: 1, turns: 32, conflicts: 28, bytes: 512 });
}

#[test]
fn arithmetic_and_divergence() {
    let counters = counted(
        "setp.lt.u32 %p1, %r1, 8;\nmov.b32 %r2, 0;\n@%p1 bra L;\nfma.rn.f32 %r3, %r2, %r2, %r2;\nL:\n\
         add.rn.f32 %r4, %r2, %r2;\n\
         mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r4, %r5, %r6, %r7}, {%r2, %r2}, {%r2}, {%r2, %r2, %r2, %r2};",
    );
    assert_eq!((counters.branches, counters.divergent_branches), (1, 1));
    assert_eq!(counters.matrix_flops, 2 * 16 * 8 * 8);
    assert_eq!(counters.thread_flops, 2 * 24 + 32);
    assert_eq!(counters.instructions[&Class::Fp32].threads, 24 + 32);
    assert_eq!(counters.instructions[&Class::Matrix].warps, 1);
    let roofline = counters.roofline(&Machine::H200);
    assert!(!roofline.is_memory_bound() && roofline.seconds() > 0.0);
}

#[test]
fn nothing_is_counted_unless_asked_for() {
    let program =
        Program::load(".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry k() {\nret;\n}").unwrap();
    let report = program.launch(&mut Memory::new(), &LaunchConfig::new("k")).unwrap();
    assert_eq!(report.counters, None);
}
