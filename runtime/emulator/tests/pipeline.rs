//! A whole matmul: a producer thread fills a ring by tensor copies, a warp group of consumers multiplies with one group
//! of products in flight, the block goes on to its next tile without draining the ring. Right results under many
//! schedules, and every planted mistake reported under each.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use half::f16;
use rtc_emulator::tensor_map::{ElementType, TensorMap};
use rtc_emulator::{Fault, FaultKind, LaunchConfig, Memory, Program, Schedule};

const M: usize = 64;
const N: usize = 128;
const K: usize = 192;

/// The kernel; a mistake leaves out or changes an instruction. Tiles of 64 x 64, steps of 64 along K, two slots of 16 KiB
/// (A with K innermost, B with N innermost), barriers behind them: two full, two empty.
fn kernel(mistake: &str) -> String {
    let is = |name: &str| mistake == name;
    let unless = |name: &str, text: &'static str| if is(name) { "" } else { text };
    let mut t = String::from(
        ".version 8.3
.target sm_90a
.address_size 64
.file 1 \"matmul.tri\"
.extern .shared .align 1024 .b8 smem[];
.visible .entry matmul(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .u64 c) .reqntid 256 {
.reg .b32 %r<40>; .reg .b64 %x<20>; .reg .pred %p<20>; .reg .b32 %d<32>;
mov.b64 %x0, a; cvta.param.u64 %x0, %x0; mov.b64 %x1, b; cvta.param.u64 %x1, %x1; ld.param.b64 %x2, [c];
mov.u32 %r0, %tid.x; mov.u32 %r1, smem; add.s32 %r2, %r1, 32768; setp.ne.b32 %p0, %r0, 0; @%p0 bra READY;
prefetch.tensormap [%x0]; prefetch.tensormap [%x1];
mbarrier.init.shared::cta.b64 [%r2], 1; mbarrier.init.shared::cta.b64 [%r2+8], 1;
mbarrier.init.shared::cta.b64 [%r2+16], 1; mbarrier.init.shared::cta.b64 [%r2+24], 1;
fence.mbarrier_init.release.cluster;
READY: bar.sync 0;
mov.b32 %r3, 0; mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0;
setp.ge.u32 %p1, %r0, 128; @%p1 bra CONSUMER;
setmaxnreg.dec.sync.aligned.u32 40; @%p0 exit;
PRODUCE: shl.b32 %r10, %r4, 3; add.s32 %r10, %r10, %r2; xor.b32 %r11, %r5, 1;
",
    );
    t.push_str(unless(
        "no wait for a free slot",
        "FREE: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r10+16], %r11; @!%p2 bra FREE;\n",
    ));
    let bytes = if is("half the bytes") { 8192 } else { 16384 };
    writeln!(t, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], {bytes};").unwrap();
    t.push_str(
        "shl.b32 %r12, %r4, 14; add.s32 %r12, %r12, %r1; add.s32 %r13, %r12, 8192; shl.b32 %r14, %r3, 6; shl.b32 %r15, %r6, 6;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%x0, {%r14, 0}], [%r10];
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r13], [%x1, {%r15, %r14}], [%r10];
xor.b32 %r4, %r4, 1; setp.eq.b32 %p3, %r4, 0; @%p3 xor.b32 %r5, %r5, 1;
add.s32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 3; @%p4 bra PRODUCE;
mov.b32 %r3, 0; add.s32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 2; @%p4 bra PRODUCE; ret;
CONSUMER: setmaxnreg.inc.sync.aligned.u32 232; setp.eq.b32 %p5, %r0, 128; setp.eq.b32 %p9, %r0, %r0;
shr.u32 %r20, %r1, 4; cvt.u64.u32 %x3, %r20; mov.b64 %x4, 0x4000004000010000; add.s64 %x3, %x3, %x4;
TILE:
STEP: shl.b32 %r10, %r4, 3; add.s32 %r10, %r10, %r2; xor.b32 %r21, %r4, 1; shl.b32 %r21, %r21, 3; add.s32 %r21, %r21, %r2;
setp.ne.b32 %p6, %r3, 0;\n",
    );
    if is("wrong parity") {
        t.push_str("xor.b32 %r22, %r5, 1;\n");
    } else {
        t.push_str("mov.b32 %r22, %r5;\n");
    }
    t.push_str(unless(
        "no wait for the copies",
        "FULL: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r10], %r22; @!%p2 bra FULL;\n",
    ));
    t.push_str(
        "shl.b32 %r23, %r4, 10; cvt.u64.u32 %x5, %r23; add.s64 %x5, %x5, %x3; add.s64 %x6, %x5, 512;\n.loc 1 12 9\n",
    );
    if is("zeros while in flight") {
        t.push_str("mov.b32 %d0, 0;\n");
    }
    t.push_str("wgmma.fence.sync.aligned;\n");
    if is("zeros after the fence") {
        t.push_str("@!%p6 mov.b32 %d0, 0;\n");
    }
    let list: Vec<String> = (0..32).map(|i| format!("%d{i}")).collect();
    for step in 0..4 {
        let p = if step == 0 { "%p6" } else { "%p9" };
        writeln!(
            t,
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{}}}, %x5, %x6, {p}, 1, 1, 0, 1;
add.s64 %x5, %x5, 2; add.s64 %x6, %x6, 128;",
            list.join(", ")
        )
        .unwrap();
    }
    t.push_str("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;\nand.pred %p7, %p6, %p5;\n");
    // The slot of the step before is free now: its products are done.
    if is("frees the slot in use") {
        t.push_str("@%p5 mbarrier.arrive.shared::cta.b64 _, [%r10+16];\n");
    } else {
        t.push_str("@%p7 mbarrier.arrive.shared::cta.b64 _, [%r21+16];\n");
    }
    t.push_str(
        "xor.b32 %r4, %r4, 1; setp.eq.b32 %p3, %r4, 0; @%p3 xor.b32 %r5, %r5, 1;
add.s32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 3; @%p4 bra STEP;\n",
    );
    let last = if is("last products not waited for") { 1 } else { 0 };
    writeln!(t, "wgmma.wait_group.sync.aligned {last};").unwrap();
    if !is("frees the slot in use") && !is("last slot never freed") {
        t.push_str("@%p5 mbarrier.arrive.shared::cta.b64 _, [%r10+16];\n");
    }
    // Row lane / 4 of the warp's 16, columns in pairs.
    t.push_str(
        "sub.s32 %r24, %r0, 128; shr.u32 %r25, %r24, 5; and.b32 %r26, %r24, 31; shr.u32 %r27, %r26, 2; and.b32 %r28, %r26, 3;
shl.b32 %r25, %r25, 4; add.s32 %r25, %r25, %r27; shl.b32 %r25, %r25, 7; shl.b32 %r29, %r28, 1; add.s32 %r25, %r25, %r29;
shl.b32 %r30, %r6, 6; add.s32 %r25, %r25, %r30; mul.wide.u32 %x7, %r25, 4; add.s64 %x7, %x7, %x2;\n",
    );
    for i in 0..32 {
        let (column, below) = (i / 4 * 8 + i % 2, i / 2 % 2);
        writeln!(t, "st.global.b32 [%x7+{}], %d{i};", 4 * (column + below * 8 * N)).unwrap();
    }
    t.push_str("mov.b32 %r3, 0; add.s32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 2; @%p4 bra TILE; ret;\n}\n");
    t
}

fn run(mistake: &str, schedule: Schedule) -> Result<(), Box<Fault>> {
    let program = Program::load(&kernel(mistake)).unwrap();
    let value = |i: usize| (i * 31 / 7 % 9) as f32 - 4.0;
    let a: Vec<f32> = (0..M * K).map(value).collect();
    let b: Vec<f32> = (0..K * N).map(|i| value(5 * i + 2)).collect();
    let mut memory = Memory::new();
    let mut put = |values: &[f32], name: &str| {
        let bytes: Vec<u8> = values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect();
        let at = memory.alloc(bytes.len(), 256, name);
        memory.write(at, &bytes).unwrap();
        at
    };
    let (a_at, b_at) = (put(&a, "a"), put(&b, "b"));
    let c_at = memory.alloc(M * N * 4, 256, "c");
    let map = |at: u64, rows: usize, columns: usize| {
        let dims = [columns as u64, rows as u64];
        let map = TensorMap::tiled(ElementType::F16, at, &dims, &[2 * columns as u64], &[64, 64]).unwrap();
        TensorMap { swizzle: 128, ..map }.encode().unwrap()
    };
    let params = [map(a_at, M, K).as_slice(), &map(b_at, K, N), &c_at.to_le_bytes()].concat();
    let config = LaunchConfig {
        block: [256, 1, 1],
        shared_bytes: 32768 + 32,
        params: &params,
        budget: Some(5_000_000),
        schedule,
        ..LaunchConfig::new("matmul")
    };
    program.launch(&mut memory, &config).map_err(Box::new)?;
    let found = memory.read(c_at, M * N * 4).unwrap();
    for (i, bytes) in found.chunks_exact(4).enumerate() {
        let wanted: f32 = (0..K).map(|k| a[i / N * K + k] * b[k * N + i % N]).sum();
        assert_eq!(bytes, wanted.to_le_bytes(), "row {}, column {}, {schedule:?}: {wanted} is wanted", i / N, i % N);
    }
    Ok(())
}

fn schedules(seeds: u64) -> impl Iterator<Item = Schedule> {
    std::iter::once(Schedule::InOrder).chain((0..seeds).map(Schedule::Random))
}

#[test]
fn the_product_is_right_under_every_schedule() {
    for schedule in schedules(12) {
        run("", schedule).unwrap_or_else(|fault| panic!("{schedule:?}: {fault}"));
    }
}

#[test]
fn mistakes_are_reported_under_every_schedule() {
    type Check = fn(&FaultKind) -> bool;
    let late: Check = |k| {
        let misuse = matches!(k, FaultKind::MbarrierMisuse { .. } | FaultKind::Deadlock { .. });
        misuse || matches!(k, FaultKind::NotArrived { .. } | FaultKind::StillRead { .. } | FaultKind::Unordered { .. })
    };
    let cases: [(&str, Check); 9] = [
        ("no wait for a free slot", late),
        ("half the bytes", late),
        ("wrong parity", late),
        ("no wait for the copies", late),
        ("frees the slot in use", |k| matches!(k, FaultKind::StillRead { .. })),
        ("last products not waited for", |k| matches!(k, FaultKind::RegisterInUse { .. })),
        ("zeros while in flight", |k| matches!(k, FaultKind::RegisterInUse { .. })),
        ("zeros after the fence", |k| matches!(k, FaultKind::MissingProductFence { .. })),
        ("last slot never freed", |k| matches!(k, FaultKind::Deadlock { .. })),
    ];
    for (mistake, check) in cases {
        for schedule in schedules(6) {
            let Err(fault) = run(mistake, schedule) else { panic!("{mistake}, {schedule:?}: no fault") };
            assert!(check(&fault.kind), "{mistake}, {schedule:?}: {fault}");
            let text = fault.to_string();
            assert!(text.contains("Kernel `matmul`, block (0, 0, 0)") && text.contains("PTX line"), "{text}");
        }
    }
    let fault = run("zeros while in flight", Schedule::InOrder).unwrap_err();
    assert!(fault.to_string().contains("source matmul.tri:12:9"), "{fault}");
}
