//! Kernels whose speed in the emulator is measured, with launches of them.

use rtc_emulator::{LaunchConfig, LaunchReport, Memory, Program};

#[path = "products.rs"]
mod products;

/// A loop over loads, arithmetic, a shuffle and a branch.
const MIXED: &str = "
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

/// y = x * sigmoid(x) as the compiler writes it: four elements of a thread.
const ELEMENTWISE: &str = "
.version 8.3
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
    .reg .b32 %r<40>; .reg .b64 %rd<8>; .reg .pred %p<2>;
    ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.b32 %r1, [n];
    mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r2, 9; mov.u32 %r4, %tid.x; shl.b32 %r5, %r4, 2; or.b32 %r6, %r3, %r5;
    setp.lt.s32 %p1, %r6, %r1; mul.wide.s32 %rd3, %r6, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;
    @%p1 ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd4];
    mul.rn.f32 %r14, %r10, 0fBFB8AA3B; mul.rn.f32 %r15, %r11, 0fBFB8AA3B;
    mul.rn.f32 %r16, %r12, 0fBFB8AA3B; mul.rn.f32 %r17, %r13, 0fBFB8AA3B;
    ex2.approx.ftz.f32 %r18, %r14; ex2.approx.ftz.f32 %r19, %r15;
    ex2.approx.ftz.f32 %r20, %r16; ex2.approx.ftz.f32 %r21, %r17;
    add.rn.f32 %r22, %r18, 0f3F800000; add.rn.f32 %r23, %r19, 0f3F800000;
    add.rn.f32 %r24, %r20, 0f3F800000; add.rn.f32 %r25, %r21, 0f3F800000;
    div.full.f32 %r26, %r10, %r22; div.full.f32 %r27, %r11, %r23;
    div.full.f32 %r28, %r12, %r24; div.full.f32 %r29, %r13, %r25;
    fma.rn.f32 %r30, %r26, %r10, %r26; fma.rn.f32 %r31, %r27, %r11, %r27;
    fma.rn.f32 %r32, %r28, %r12, %r28; fma.rn.f32 %r33, %r29, %r13, %r29;
    max.f32 %r34, %r30, %r26; max.f32 %r35, %r31, %r27; max.f32 %r36, %r32, %r28; max.f32 %r37, %r33, %r29;
    @%p1 st.global.v4.b32 [%rd5], {%r34, %r35, %r36, %r37};
    ret;
}";

/// A kernel with its memory.
pub struct Measured {
    /// The kind of kernel.
    pub name: &'static str,
    program: Program,
    memory: Memory,
    params: Vec<u8>,
    blocks: u32,
    threads: u32,
    /// Operations on floats of matrix products in a launch.
    pub operations: u64,
}

impl Measured {
    /// A kernel on two buffers of so many bytes, filled with `word` and with numbers near it, alternately.
    fn new(name: &'static str, ptx: &str, (blocks, threads): (u32, u32), bytes: usize, n: u32) -> Measured {
        // Halves and floats of moderate size.
        Measured::with(name, ptx, (blocks, threads), bytes, n, |i| 0x3c00_3800 + i % 701 * 0x1_0003)
    }

    fn with(
        name: &'static str,
        ptx: &str,
        (blocks, threads): (u32, u32),
        bytes: usize,
        n: u32,
        word: impl Fn(u32) -> u32,
    ) -> Measured {
        let mut memory = Memory::new();
        let (x, y) = (memory.alloc(bytes, 16, "x"), memory.alloc(bytes, 16, "y"));
        let content: Vec<u8> = (0..bytes as u32 / 4).flat_map(|i| word(i).to_le_bytes()).collect();
        memory.write(x, &content).expect("it fits");
        let mut params: Vec<u8> = [x, y].iter().flat_map(|p| p.to_le_bytes()).collect();
        params.extend(n.to_le_bytes());
        let program = Program::load(ptx).expect("the kernel is right");
        Measured { name, program, memory, params, blocks, threads, operations: 0 }
    }

    /// A launch on so many threads of this machine.
    pub fn launch(&mut self, threads: usize) -> LaunchReport {
        let config = LaunchConfig {
            grid: [self.blocks, 1, 1],
            block: [self.threads, 1, 1],
            params: &self.params,
            threads,
            ..LaunchConfig::new("k")
        };
        self.program.launch(&mut self.memory, &config).expect("it ends")
    }
}

/// All of them.
pub fn measured() -> Vec<Measured> {
    let mut all = vec![
        Measured::new("mixed loop", MIXED, (8, 128), 1024, 1000),
        Measured::new("elementwise", ELEMENTWISE, (512, 128), 512 * 512 * 4, 512 * 512),
    ];
    all.extend(products::measured());
    all
}
