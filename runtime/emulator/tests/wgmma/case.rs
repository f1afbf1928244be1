//! Kernels with `wgmma`: two products along k, of every type, with operands in shared memory or registers.

use std::fmt::Write;

use half::{bf16, f16};

/// A type of operands.
#[derive(Clone, Copy)]
pub struct Operands {
    /// Types of D, A and B as PTX writes them.
    pub types: &'static str,
    pub k: usize,
    pub bytes: usize,
    pub encode: fn(i32) -> u32,
    /// Values are from -this to this, or from 0.
    pub range: (i32, i32),
}

pub fn e4m3(v: i32) -> u32 {
    [0xc4, 0xc0, 0xb8, 0x00, 0x38, 0x40, 0x44][(v + 3) as usize]
}

pub fn e5m2(v: i32) -> u32 {
    [0xc2, 0xc0, 0xbc, 0x00, 0x3c, 0x40, 0x42][(v + 3) as usize]
}

pub const F16: Operands = Operands {
    types: "f32.f16.f16",
    k: 16,
    bytes: 2,
    encode: |v| f16::from_f32(v as f32).to_bits().into(),
    range: (-3, 3),
};
pub const F16_TO_F16: Operands = Operands { types: "f16.f16.f16", ..F16 };
pub const BF16: Operands =
    Operands { types: "f32.bf16.bf16", encode: |v| bf16::from_f32(v as f32).to_bits().into(), ..F16 };
pub const TF32: Operands =
    Operands { types: "f32.tf32.tf32", k: 8, bytes: 4, encode: |v| (v as f32).to_bits(), range: (-3, 3) };
pub const E4M3: Operands = Operands { types: "f32.e4m3.e4m3", k: 32, bytes: 1, encode: e4m3, range: (-3, 3) };
pub const E4M3_TO_F16: Operands = Operands { types: "f16.e4m3.e4m3", ..E4M3 };
pub const E5M2: Operands = Operands { types: "f32.e5m2.e5m2", encode: e5m2, ..E4M3 };
pub const S8: Operands = Operands { types: "s32.s8.s8", encode: |v| v as u8 as u32, range: (-128, 127), ..E4M3 };
pub const U8: Operands = Operands { types: "s32.u8.u8", encode: |v| v as u8 as u32, range: (0, 255), ..E4M3 };
pub const ALL: [Operands; 9] = [F16, F16_TO_F16, BF16, TF32, E4M3, E4M3_TO_F16, E5M2, S8, U8];

impl Operands {
    pub fn is_integer(&self) -> bool {
        self.types.starts_with("s32")
    }

    pub fn d_bits(&self) -> usize {
        if self.types.starts_with("f16") { 16 } else { 32 }
    }
}

/// How an operand lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lay {
    /// Swizzle in bytes, 0 for none.
    pub swizzle: usize,
    /// True if M or N is innermost.
    pub outer: bool,
}

impl Lay {
    /// Every layout of a type.
    pub fn all(operands: &Operands) -> Vec<Lay> {
        let one = |outer| [128, 64, 32, 0].map(|swizzle| Lay { swizzle, outer }).to_vec();
        if operands.bytes == 2 { [one(false), one(true)].concat() } else { one(false) }
    }

    /// Where element (row, k) of `rows` x `depth` lies, the bytes of the whole, and the descriptor's distances. With K
    /// innermost a row of the swizzle's width holds as much of K, as a tensor copy of that width puts it there; blocks of
    /// it follow one another. With M or N innermost so much of that, and `depth` such rows make a block.
    pub fn place(&self, rows: usize, depth: usize, bytes: usize, row: usize, k: usize) -> usize {
        let (outer, inner, outers) = if self.outer { (k, row, depth) } else { (row, k, rows) };
        if self.swizzle == 0 {
            // Core matrices of 8 rows of 16 bytes; first all along `outer`, then the next 16 bytes.
            return inner * bytes / 16 * (outers * 16) + outer * 16 + inner * bytes % 16;
        }
        let (block, within) = (inner * bytes / self.swizzle, inner * bytes % self.swizzle);
        let plain = block * outers * self.swizzle + outer * self.swizzle + within;
        let chunks = self.swizzle / 16;
        plain ^ ((plain / 128 % chunks) * 16)
    }

    /// Descriptor of the elements from k on.
    pub fn descriptor(&self, start: usize, rows: usize, depth: usize, bytes: usize, k: usize) -> u64 {
        let row = if self.swizzle == 0 { 16 } else { self.swizzle };
        let (leading, stride) = match (self.outer, self.swizzle) {
            (false, 0) => (rows * 16, 128),
            (false, _) => (16, 8 * row),
            // From one group of 8 of k to the next; from one group of 8 of M or N to the next.
            (true, 0) => (128, depth * 16),
            (true, _) => (depth * row, 8 * row),
        };
        let advance = match (self.outer, self.swizzle) {
            (true, _) => k * row,
            (false, 0) => k * bytes / 16 * (rows * 16),
            (false, _) => k * bytes / row * rows * row + k * bytes % row,
        };
        let kind = match self.swizzle {
            0 => 0u64,
            128 => 1,
            64 => 2,
            _ => 3,
        };
        ((start + advance) >> 4) as u64 | ((leading >> 4) as u64) << 16 | ((stride >> 4) as u64) << 32 | kind << 62
    }
}

/// A product of two steps along k.
pub struct Case {
    pub operands: Operands,
    pub n: usize,
    /// `None` for registers.
    pub a: Option<Lay>,
    pub b: Lay,
    /// Scales of A and B.
    pub signs: (i32, i32),
    /// False: what D held is ignored.
    pub adds: bool,
    pub mistake: &'static str,
}

/// Steps along k.
pub const STEPS: usize = 2;
/// Where B begins in shared memory.
pub const B_START: usize = 16 << 10;

impl Case {
    pub fn new(operands: Operands, n: usize, a: Option<Lay>, b: Lay) -> Case {
        Case { operands, n, a, b, signs: (1, 1), adds: true, mistake: "" }
    }

    pub fn name(&self) -> String {
        let Case { operands, n, a, b, signs, adds, mistake } = self;
        format!("{} n={n} a={a:?} b={b:?} {signs:?} {adds} {mistake}", operands.types)
    }

    pub fn registers(&self) -> usize {
        self.n * self.operands.d_bits() / 64
    }

    pub fn kernel(&self) -> String {
        let Operands { types, k, bytes, .. } = self.operands;
        let count = self.registers();
        let is = |mistake: &str| self.mistake == mistake;
        let unless = |mistake: &str, text: &str| if is(mistake) { String::new() } else { format!("{text}\n") };
        let mut t =
            String::from(".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n");
        t.push_str(
            ".visible .entry k(.param .u64 image, .param .u64 regs, .param .u64 d, .param .u32 bytes, .param .u32 adds",
        );
        for i in 0..STEPS {
            write!(t, ", .param .u64 a{i}, .param .u64 b{i}").unwrap();
        }
        writeln!(
            t,
            ") .reqntid 128 {{\n.reg .b32 %r<20>; .reg .b64 %x<20>; .reg .pred %p, %q, %m; .reg .b32 %d<{count}>;"
        )
        .unwrap();
        writeln!(t, ".reg .b32 %a<{}>;", 4 * STEPS).unwrap();
        t.push_str(
            "mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 4; ld.param.b64 %x0, [image]; ld.param.b64 %x1, [regs]; ld.param.b64 %x2, [d];
ld.param.b32 %r2, [bytes]; ld.param.b32 %r3, [adds]; setp.ne.b32 %p, %r3, 0; setp.eq.b32 %q, %r3, %r3; mov.u32 %r4, smem;
FILL: setp.ge.u32 %m, %r1, %r2; @%m bra FILLED; cvt.u64.u32 %x3, %r1; add.s64 %x3, %x3, %x0;
ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%x3]; add.s32 %r9, %r4, %r1; st.shared.v4.b32 [%r9], {%r5, %r6, %r7, %r8};
add.s32 %r1, %r1, 2048; bra FILL;
FILLED: shr.u32 %r12, %r4, 4; cvt.u64.u32 %x7, %r12; shl.b32 %r10, %r0, 2; cvt.u64.u32 %x4, %r10; add.s64 %x1, %x1, %x4; add.s64 %x2, %x2, %x4;\n",
        );
        t.push_str(&unless("no proxy fence", "fence.proxy.async;"));
        t.push_str(&unless("no barrier", "bar.sync 0;"));
        for i in 0..4 * STEPS {
            writeln!(t, "ld.global.b32 %a{i}, [%x1+{}];", 512 * i).unwrap();
        }
        for i in 0..count {
            writeln!(t, "ld.global.b32 %d{i}, [%x2+{}];", 512 * i).unwrap();
        }
        t.push_str(&unless("no fence", "wgmma.fence.sync.aligned;"));
        let list: Vec<String> = (0..count).map(|i| format!("%d{i}")).collect();
        for step in 0..STEPS {
            writeln!(t, "ld.param.b64 %x5, [a{step}]; ld.param.b64 %x6, [b{step}];").unwrap();
            t.push_str("add.s64 %x5, %x5, %x7; add.s64 %x6, %x6, %x7;\n");
            let a = match self.a {
                Some(_) => "%x5".to_string(),
                None => {
                    let list: Vec<String> = (0..4).map(|i| format!("%a{}", 4 * step + i)).collect();
                    format!("{{{}}}", list.join(", "))
                }
            };
            let p = if step == 0 { "%p" } else { "%q" };
            let mut tail = if self.operands.is_integer() {
                String::new()
            } else {
                format!(", {}, {}", self.signs.0, self.signs.1)
            };
            if bytes == 2 {
                if let Some(lay) = self.a {
                    write!(tail, ", {}", u8::from(lay.outer)).unwrap();
                }
                write!(tail, ", {}", u8::from(self.b.outer)).unwrap();
            }
            let mut list = list.clone();
            if step == 1 && is("other accumulators") {
                list.rotate_left(1);
            }
            let d = list.join(", ");
            writeln!(t, "wgmma.mma_async.sync.aligned.m64n{}k{k}.{types} {{{d}}}, {a}, %x6, {p}{tail};", self.n)
                .unwrap();
            if step == 0 && is("write between") {
                t.push_str("mov.b32 %d1, 0;\n");
            }
        }
        t.push_str(&unless("no commit", "wgmma.commit_group.sync.aligned;"));
        match self.mistake {
            "move" => t.push_str("mov.b32 %r11, %d0;\n"),
            "operand written" => t.push_str("mov.b32 %a5, 0;\n"),
            "operand read" => t.push_str("st.global.b32 [%x2], %a5;\n"),
            "memory written" => t.push_str("add.s32 %r11, %r4, 32; st.shared.b32 [%r11], 0;\n"),
            "written by another" => t.push_str(
                "shr.u32 %r11, %r0, 5; setp.eq.b32 %m, %r11, 3; @!%m bra WAIT; st.shared.b32 [%r4], 0;\nWAIT:\n",
            ),
            _ => {}
        }
        match self.mistake {
            "no wait" | "ends" => {}
            "waits for the one before" => t.push_str("wgmma.wait_group.sync.aligned 1;\n"),
            _ => t.push_str("wgmma.wait_group.sync.aligned 0;\n"),
        }
        if is("next without fence") {
            let d = list.join(", ");
            let tail = if bytes == 2 { ", 1, 1, 0, 0" } else { ", 1, 1" };
            write!(
                t,
                "mov.b32 %d3, 0; wgmma.mma_async.sync.aligned.m64n{}k{k}.{types} {{{d}}}, %x5, %x6, %p{tail};",
                self.n
            )
            .unwrap();
        }
        for i in (0..count).filter(|_| !is("ends")) {
            writeln!(t, "st.global.b32 [%x2+{}], %d{i};", 512 * i).unwrap();
        }
        t.push_str("ret;\n}\n");
        t
    }
}
