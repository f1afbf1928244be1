//! Blocks on several threads leave what they leave one after the other.
#![allow(clippy::unwrap_used)]

use rtc_emulator::{LaunchConfig, LaunchReport, Memory, Program};

const HEAD: &str = ".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x, .param .u64 y) {
    .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<3>;
    ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    mad.lo.s32 %r3, %r2, 64, %r1; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    mov.b32 %r4, 0; mov.b32 %r6, 1;\n";
const BLOCKS: usize = 48;
const ELEMENTS: usize = 64 * BLOCKS;

/// A kernel that loops long enough for threads to be worth it, and then does `rest`.
fn kernel(rest: &str) -> Program {
    let spin = "SPIN: add.s32 %r4, %r4, 1; xor.b32 %r6, %r6, %r4; setp.lt.s32 %p1, %r4, 300; @%p1 bra SPIN;\n";
    Program::load(&format!("{HEAD}{spin}{rest}\nret;\n}}\n")).unwrap()
}

/// The content of both tensors and the report, or the fault in words.
fn launch(program: &Program, threads: usize) -> (Vec<u8>, Vec<u8>, Result<LaunchReport, String>) {
    let mut memory = Memory::new();
    let (x, y) = (memory.alloc(4 * ELEMENTS, 16, "x"), memory.alloc(4 * ELEMENTS, 16, "y"));
    let content: Vec<u8> = (0..ELEMENTS as u32).flat_map(|i| (i * 7).to_le_bytes()).collect();
    memory.write(x, &content).unwrap();
    let params: Vec<u8> = [x, y].iter().flat_map(|p| p.to_le_bytes()).collect();
    let config = LaunchConfig {
        grid: [BLOCKS as u32, 1, 1],
        block: [64, 1, 1],
        params: &params,
        threads,
        ..LaunchConfig::new("k")
    };
    let report = program.launch(&mut memory, &config).map_err(|fault| fault.to_string());
    let read = |at| memory.read(at, 4 * ELEMENTS).unwrap().to_vec();
    (read(x), read(y), report)
}

#[track_caller]
fn same(rest: &str) -> (Vec<u8>, Vec<u8>, Result<LaunchReport, String>) {
    let program = kernel(rest);
    let one = launch(&program, 1);
    for threads in [2, 3, 7, 64] {
        assert_eq!(launch(&program, threads), one, "{threads} threads");
    }
    one
}

#[test]
fn blocks_that_have_nothing_to_do_with_each_other() {
    let (x, y, report) = same("ld.global.b32 %r5, [%rd4]; add.s32 %r5, %r5, %r6; st.global.b32 [%rd5], %r5;");
    assert_ne!(x, y);
    assert!(report.unwrap().thread_instructions > 100_000);
}

#[test]
fn blocks_that_change_a_tensor_in_place() {
    let (.., report) = same("ld.global.b32 %r5, [%rd4]; add.s32 %r5, %r5, %r6; st.global.b32 [%rd4], %r5;");
    assert!(report.is_ok());
}

#[test]
fn blocks_that_read_what_the_one_before_wrote() {
    // The block before has doubled its last element, and so on: only one after the other gives that.
    let (x, ..) = same(
        "setp.eq.s32 %p2, %r3, 0; @%p2 bra END; ld.global.b32 %r5, [%rd4+-4]; add.s32 %r5, %r5, 1; bar.sync 0;
         st.global.b32 [%rd4], %r5;\nEND:",
    );
    assert_eq!(u32::from_le_bytes(x[4 * 64..4 * 65].try_into().unwrap()), 62 * 7 + 2);
}

#[test]
fn blocks_that_write_the_same_place() {
    let (_, y, _) = same("st.global.b32 [%rd2], %r2;");
    assert_eq!(y[..4], (BLOCKS as u32 - 1).to_le_bytes());
}

#[test]
fn blocks_with_atomics() {
    let (_, y, _) = same("atom.global.add.u32 %r5, [%rd2], 1; st.global.b32 [%rd4], %r5;");
    assert_eq!(y[..4], (ELEMENTS as u32).to_le_bytes());
}

#[test]
fn a_fault_is_that_of_the_first_block_that_has_one() {
    let (.., report) = same("setp.gt.u32 %p2, %r2, 20; @%p2 trap; st.global.b32 [%rd5], %r6;");
    assert!(report.unwrap_err().contains("21"));
}
