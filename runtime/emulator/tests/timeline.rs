//! Timelines of small programs, worked out by hand.
#![allow(clippy::unwrap_used)]

use rtc_emulator::timeline::{Bar, BarKind, Model, Timeline};
use rtc_emulator::{LaunchConfig, LaunchReport, Memory, Program};

/// A launch of one block; the kernel gets the address of 16 KB and has 8 KB of shared memory.
fn launched(body: &str, threads: u32, records: bool) -> LaunchReport {
    let ptx = format!(
        ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 x) {{\n\
         .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p<4>;\n\
         ld.param.b64 %rd1, [x];\nmov.u32 %r1, %tid.x;\n{body}\nret;\n}}"
    );
    let program = Program::load(&ptx).unwrap();
    let mut memory = Memory::new();
    let params = memory.alloc(16384, 16, "x").to_le_bytes();
    let block = [threads, 1, 1];
    let config = LaunchConfig { params: &params, shared_bytes: 8192, block, records, ..LaunchConfig::new("k") };
    program.launch(&mut memory, &config).unwrap()
}

fn timeline(body: &str, threads: u32) -> Timeline {
    launched(body, threads, true).trace.unwrap().replay(&Model::SM_90)
}

/// The bars of a warp that are of a kind.
fn bars(timeline: &Timeline, warp: u32, kind: BarKind) -> Vec<&Bar> {
    timeline.bars.iter().filter(|bar| bar.warp == warp && bar.kind == kind).collect()
}

/// Copies into three buffers in turn, each two iterations before the wait for it.
const RING: &str = "
    mul.wide.u32 %rd2, %r1, 16; add.s64 %rd3, %rd1, %rd2;
    shl.b32 %r2, %r1, 4; add.s32 %r3, %r2, 512;
    cp.async.cg.shared.global [%r2], [%rd3], 16; cp.async.commit_group;
    cp.async.cg.shared.global [%r3], [%rd3], 16; cp.async.commit_group;
    mov.u32 %r4, 0; mov.u32 %r5, 1024;
LOOP:
    cp.async.wait_group 1;
    add.s32 %r6, %r2, %r5;
    cp.async.cg.shared.global [%r6], [%rd3], 16; cp.async.commit_group;
    add.s32 %r5, %r5, 512;
    setp.eq.s32 %p2, %r5, 1536;
    selp.b32 %r5, 0, %r5, %p2;
    add.s32 %r4, %r4, 1;
    setp.lt.s32 %p1, %r4, 6;
    @%p1 bra LOOP;
    cp.async.wait_group 0;";

#[test]
fn copies_have_their_buffer_and_the_iteration_of_their_wait() {
    let timeline = timeline(RING, 32);
    let copies = bars(&timeline, 0, BarKind::Copy);
    let of = |bar: &&Bar| (bar.iteration, bar.stage, bar.awaited.unwrap().iteration, bar.awaited.unwrap().ahead);
    let found: Vec<_> = copies.iter().map(of).collect();
    assert_eq!(found[..2].iter().map(|copy| (copy.0, copy.2)).collect::<Vec<_>>(), [(None, Some(0)), (None, Some(1))]);
    let loop_copy = |i: u32| (Some(i), Some(i % 3), Some(i + 2), Some(2));
    assert_eq!(found[2..6], [0, 1, 2, 3].map(loop_copy));
    // The last two are awaited after the loop.
    assert!(found[6..].iter().all(|copy| copy.2.is_none()) && found.len() == 8, "{found:?}");
    for copy in copies {
        assert_eq!(copy.bytes, 512);
        assert!(copy.end >= copy.start + Model::SM_90.global_latency && copy.awaited.unwrap().end >= copy.end);
    }
}

#[test]
fn a_barrier_ends_when_the_last_warp_arrives() {
    let body = "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra MEET;\n\
                ld.global.b32 %r2, [%rd1];\nadd.s32 %r3, %r2, 1;\nMEET:\nbar.sync 0;";
    let timeline = timeline(body, 64);
    let (load, wait) = (bars(&timeline, 0, BarKind::Load)[0], bars(&timeline, 0, BarKind::Wait)[0]);
    assert_eq!((wait.end, load.bytes), (load.end, 32));
    let barrier = bars(&timeline, 1, BarKind::Barrier)[0];
    assert!(barrier.start < load.start + 20 && barrier.end >= load.end, "{barrier:?} {load:?}");
}

#[test]
fn a_wait_for_an_mbarrier_ends_with_the_arrival() {
    let body = "setp.ne.u32 %p1, %r1, 0;\nmov.u32 %r9, 64;\n@!%p1 mbarrier.init.shared.b64 [%r9], 1;\n\
                fence.mbarrier_init.release.cluster;\nbar.sync 0;\n\
                setp.ge.u32 %p2, %r1, 32;\n@%p2 bra WAIT;\n\
                @%p1 bra DONE;\nld.global.b32 %r2, [%rd1];\nadd.s32 %r3, %r2, 1;\n\
                mbarrier.arrive.shared.b64 %rd4, [%r9];\nbra DONE;\n\
                WAIT:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r9], 0;\n@!%p3 bra WAIT;\nDONE:";
    let timeline = timeline(body, 64);
    let load = bars(&timeline, 0, BarKind::Load)[0];
    let wait = bars(&timeline, 1, BarKind::Wait)[0];
    assert!(wait.start < load.start + 30 && wait.end >= load.end, "{wait:?} {load:?}");
}

#[test]
fn a_recording_changes_nothing_else() {
    let (plain, recorded) = (launched(RING, 32, false), launched(RING, 32, true));
    assert!(plain.trace.is_none() && recorded.trace.is_some());
    assert_eq!(LaunchReport { trace: None, ..recorded }, plain);
}

#[test]
fn counts_belong_to_their_instructions() {
    let ptx = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 x) {\n\
               .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;\nld.param.b64 %rd1, [x];\n\
               .loc 1 7 3\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 8;\nadd.s64 %rd3, %rd1, %rd2;\n\
               .loc 1 9 3\nld.global.b32 %r2, [%rd3];\nsetp.lt.u32 %p1, %r1, 7;\n@%p1 bra END;\n\
               shl.b32 %r3, %r1, 3;\nst.shared.b32 [%r3], %r2;\nEND: ret;\n}\n.file 1 \"k.rt\"\n";
    let program = Program::load(ptx).unwrap();
    let mut memory = Memory::new();
    let params = memory.alloc(256, 16, "x").to_le_bytes();
    let config = LaunchConfig { params: &params, shared_bytes: 512, counts: true, ..LaunchConfig::new("k") };
    let counters = program.launch(&mut memory, &config).unwrap().counters.unwrap();
    let at = |line: u32| counters.by_instruction.iter().find(|count| count.ptx_line == line).unwrap();
    assert_eq!((at(12).global.sectors, at(12).location.as_ref().unwrap().line), (8, 9));
    assert_eq!((at(14).divergent, at(16).executed.threads), (1, 25));
    assert_eq!((at(16).shared.turns, at(16).shared.conflicts), (2, 1));
    let sum: u64 = counters.by_instruction.iter().map(|count| count.executed.warps).sum();
    assert_eq!(sum, counters.instructions.values().map(|count| count.warps).sum());
}
