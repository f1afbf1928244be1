//! `wgmma` against plain products: every type, every number of columns, every way in which operands lie in shared memory
//! or registers; and mistakes, each reported.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use half::{bf16, f16};
use rtc_emulator::{Fault, FaultKind, LaunchConfig, Memory, Program, Schedule};

/// A type of operands.
#[derive(Clone, Copy)]
struct Operands {
    /// Types of D, A and B as PTX writes them.
    types: &'static str,
    k: usize,
    bytes: usize,
    encode: fn(i32) -> u32,
    /// Values are from -this to this, or from 0.
    range: (i32, i32),
}

fn e4m3(v: i32) -> u32 {
    [0xc4, 0xc0, 0xb8, 0x00, 0x38, 0x40, 0x44][(v + 3) as usize]
}

fn e5m2(v: i32) -> u32 {
    [0xc2, 0xc0, 0xbc, 0x00, 0x3c, 0x40, 0x42][(v + 3) as usize]
}

const F16: Operands = Operands {
    types: "f32.f16.f16",
    k: 16,
    bytes: 2,
    encode: |v| f16::from_f32(v as f32).to_bits().into(),
    range: (-3, 3),
};
const F16_TO_F16: Operands = Operands { types: "f16.f16.f16", ..F16 };
const BF16: Operands =
    Operands { types: "f32.bf16.bf16", encode: |v| bf16::from_f32(v as f32).to_bits().into(), ..F16 };
const TF32: Operands =
    Operands { types: "f32.tf32.tf32", k: 8, bytes: 4, encode: |v| (v as f32).to_bits(), range: (-3, 3) };
const E4M3: Operands = Operands { types: "f32.e4m3.e4m3", k: 32, bytes: 1, encode: e4m3, range: (-3, 3) };
const E4M3_TO_F16: Operands = Operands { types: "f16.e4m3.e4m3", ..E4M3 };
const E5M2: Operands = Operands { types: "f32.e5m2.e5m2", encode: e5m2, ..E4M3 };
const S8: Operands = Operands { types: "s32.s8.s8", encode: |v| v as u8 as u32, range: (-128, 127), ..E4M3 };
const U8: Operands = Operands { types: "s32.u8.u8", encode: |v| v as u8 as u32, range: (0, 255), ..E4M3 };
const ALL: [Operands; 9] = [F16, F16_TO_F16, BF16, TF32, E4M3, E4M3_TO_F16, E5M2, S8, U8];

impl Operands {
    fn is_integer(&self) -> bool {
        self.types.starts_with("s32")
    }

    fn d_bits(&self) -> usize {
        if self.types.starts_with("f16") { 16 } else { 32 }
    }
}

/// How an operand lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lay {
    /// Swizzle in bytes, 0 for none.
    swizzle: usize,
    /// True if M or N is innermost.
    outer: bool,
}

impl Lay {
    /// Every layout of a type.
    fn all(operands: &Operands) -> Vec<Lay> {
        let one = |outer| [128, 64, 32, 0].map(|swizzle| Lay { swizzle, outer }).to_vec();
        if operands.bytes == 2 { [one(false), one(true)].concat() } else { one(false) }
    }

    /// Where element (row, k) of `rows` x `depth` lies, the bytes of the whole, and the descriptor's distances. With K
    /// innermost a row of the swizzle's width holds as much of K, as a tensor copy of that width puts it there; blocks of
    /// it follow one another. With M or N innermost so much of that, and `depth` such rows make a block.
    fn place(&self, rows: usize, depth: usize, bytes: usize, row: usize, k: usize) -> usize {
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
    fn descriptor(&self, start: usize, rows: usize, depth: usize, bytes: usize, k: usize) -> u64 {
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
struct Case {
    operands: Operands,
    n: usize,
    /// `None` for registers.
    a: Option<Lay>,
    b: Lay,
    /// Scales of A and B.
    signs: (i32, i32),
    /// False: what D held is ignored.
    adds: bool,
    mistake: &'static str,
}

/// Steps along k.
const STEPS: usize = 2;
/// Where B begins in shared memory.
const B_START: usize = 16 << 10;

impl Case {
    fn new(operands: Operands, n: usize, a: Option<Lay>, b: Lay) -> Case {
        Case { operands, n, a, b, signs: (1, 1), adds: true, mistake: "" }
    }

    fn name(&self) -> String {
        let Case { operands, n, a, b, signs, adds, mistake } = self;
        format!("{} n={n} a={a:?} b={b:?} {signs:?} {adds} {mistake}", operands.types)
    }

    fn registers(&self) -> usize {
        self.n * self.operands.d_bits() / 64
    }

    fn kernel(&self) -> String {
        let Operands { types, k, bytes, .. } = self.operands;
        let count = self.registers();
        let is = |mistake: &str| self.mistake == mistake;
        let unless = |mistake: &str, text: &str| if is(mistake) { String::new() } else { format!("{text}\n") };
        let mut t =
            String::from(".version 8.3\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n");
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

    /// Runs the kernel and compares.
    fn run(&self, schedule: Schedule) -> Result<(), Box<Fault>> {
        let Operands { k, bytes, encode, range, .. } = self.operands;
        let (m, n, depth) = (64, self.n, k * STEPS);
        let span = (range.1 - range.0 + 1) as usize;
        let value = |i: usize| range.0 + (i * 2_654_435_761 / 97 % span) as i32;
        let a: Vec<i32> = (0..m * depth).map(value).collect();
        let b: Vec<i32> = (0..n * depth).map(|i| value(3 * i + 7)).collect();
        let places = (0..n).flat_map(|row| (0..depth).map(move |i| (row, i)));
        let end = places.map(|(row, i)| self.b.place(n, depth, bytes, row, i) + bytes).max().unwrap();
        let mut image = vec![0u8; B_START + end.next_multiple_of(2048)];
        let mut put = |at: usize, v: i32| image[at..at + bytes].copy_from_slice(&encode(v).to_le_bytes()[..bytes]);
        for row in 0..n {
            for i in 0..depth {
                put(B_START + self.b.place(n, depth, bytes, row, i), b[row * depth + i]);
            }
        }
        if let Some(lay) = self.a {
            for row in 0..m {
                for i in 0..depth {
                    put(lay.place(m, depth, bytes, row, i), a[row * depth + i]);
                }
            }
        }
        // Fragments of A: rows lane / 4 and 8 below, groups of 4 bytes along k.
        let mut regs = vec![0u8; 128 * 4 * 4 * STEPS];
        let per = 4 / bytes;
        for (i, slot) in regs.chunks_exact_mut(bytes).enumerate() {
            let (register, thread, j) = (i / per / 128, i / per % 128, i % per);
            let (step, r) = (register / 4, register % 4);
            let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (r % 2);
            let column = step * k + r / 2 * 4 * per + thread % 4 * per + j;
            slot.copy_from_slice(&encode(a[row * depth + column]).to_le_bytes()[..bytes]);
        }
        // What D holds before: its place as a small number.
        let count = self.registers();
        let halves = self.operands.d_bits() == 16;
        let d_bits = |v: f64| match () {
            () if halves => f16::from_f64(v).to_bits().into(),
            () if self.operands.is_integer() => v as i32 as u32,
            () => (v as f32).to_bits(),
        };
        let per = if halves { 2 } else { 1 };
        let place = |i: usize| {
            let (register, thread, j) = (i / per / 128, i / per % 128, i % per);
            let index = per * register + j;
            let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (index / 2 % 2);
            (row, index / 4 * 8 + thread % 4 * 2 + index % 2)
        };
        let start = |row: usize, column: usize| ((row * 5 + column) % 16) as f64;
        let d: Vec<u8> = (0..128 * count * per)
            .flat_map(|i| {
                let (row, column) = place(i);
                d_bits(start(row, column)).to_le_bytes()[..4 / per].to_vec()
            })
            .collect();
        let mut memory = Memory::new();
        let mut alloc = |data: &[u8], name: &str| {
            let at = memory.alloc(data.len(), 256, name);
            memory.write(at, data).unwrap();
            at
        };
        let (image_at, regs_at, d_at) = (alloc(&image, "image"), alloc(&regs, "regs"), alloc(&d, "d"));
        let mut params: Vec<u8> = [image_at, regs_at, d_at].iter().flat_map(|p| p.to_le_bytes()).collect();
        params.extend((image.len() as u32).to_le_bytes());
        params.extend(u32::from(self.adds).to_le_bytes());
        for step in 0..STEPS {
            params.extend(self.a.map_or(0, |lay| lay.descriptor(0, m, depth, bytes, step * k)).to_le_bytes());
            params.extend(self.b.descriptor(B_START, n, depth, bytes, step * k).to_le_bytes());
        }
        let program = Program::load(&self.kernel()).unwrap_or_else(|e| panic!("{}: {e}", self.name()));
        let config = LaunchConfig {
            block: [128, 1, 1],
            shared_bytes: image.len() as u32,
            params: &params,
            schedule,
            ..LaunchConfig::new("k")
        };
        program.launch(&mut memory, &config).map_err(Box::new)?;
        let found = memory.read(d_at, d.len()).unwrap();
        let sign = f64::from(self.signs.0 * self.signs.1);
        for (i, bytes) in found.chunks_exact(4 / per).enumerate() {
            let (row, column) = place(i);
            let products = (0..depth).map(|x| f64::from(a[row * depth + x] * b[column * depth + x]));
            let sum = products.sum::<f64>() * sign + if self.adds { start(row, column) } else { 0.0 };
            let wanted = &d_bits(sum).to_le_bytes()[..4 / per];
            assert_eq!(bytes, wanted, "{} at ({row}, {column}), {schedule:?}: {sum} is wanted", self.name());
        }
        Ok(())
    }

    fn passes(&self) {
        for schedule in [Schedule::InOrder, Schedule::Random(self.n as u64)] {
            self.run(schedule).unwrap_or_else(|fault| panic!("{} {schedule:?}: {fault}", self.name()));
        }
    }
}

const K128: Lay = Lay { swizzle: 128, outer: false };

#[test]
fn every_type_and_layout_gives_the_product() {
    for operands in ALL {
        for a in Lay::all(&operands) {
            for b in Lay::all(&operands) {
                Case::new(operands, 64, Some(a), b).passes();
            }
        }
        for b in Lay::all(&operands) {
            Case::new(operands, 128, None, b).passes();
        }
    }
}

#[test]
fn every_number_of_columns_gives_the_product() {
    for n in (8..=256).step_by(8) {
        Case::new(F16, n, Some(K128), K128).passes();
        Case::new(E4M3_TO_F16, n, Some(K128), K128).passes();
        if n <= 24 || n % 16 == 0 {
            Case::new(S8, n, Some(K128), K128).passes();
        }
    }
    Case::new(TF32, 256, None, K128).passes();
}

#[test]
fn scales_negate_and_overwrite() {
    for signs in [(1, -1), (-1, 1), (-1, -1)] {
        for operands in [F16, BF16, TF32, E5M2] {
            Case { signs, ..Case::new(operands, 16, Some(K128), K128) }.passes();
        }
    }
    for operands in ALL {
        Case { adds: false, ..Case::new(operands, 16, None, K128) }.passes();
    }
}

#[test]
fn mistakes_are_reported() {
    type Check = fn(&FaultKind) -> bool;
    let in_use: Check = |kind| matches!(kind, FaultKind::RegisterInUse { .. });
    let no_fence: Check = |kind| matches!(kind, FaultKind::MissingProductFence { .. });
    let still_read: Check = |kind| matches!(kind, FaultKind::StillRead { .. });
    let cases: [(&str, bool, Check, &str); 16] = [
        ("no wait", false, in_use, "read of register %d0, which an unfinished product uses: `wgmma.mma_async"),
        ("waits for the one before", false, in_use, "read of register %d0"),
        ("no commit", false, in_use, "read of register %d0"),
        ("move", false, in_use, "`mov.b32 %r11, %d0`"),
        ("write between", false, in_use, "write of register %d1"),
        ("operand written", true, in_use, "write of register %a5"),
        ("operand read", true, in_use, "read of register %a5"),
        ("other accumulators", false, in_use, "write of register %d1"),
        ("no fence", false, no_fence, "`wgmma.fence` is missing: the accumulator register %d0 was written"),
        ("no fence", true, no_fence, "`wgmma.fence` is missing"),
        ("next without fence", false, no_fence, "accumulator register %d3"),
        ("no proxy fence", false, |kind| matches!(kind, FaultKind::MissingProxyFence { .. }), "`st.shared.v4.b32"),
        (
            "no barrier",
            false,
            |kind| matches!(kind, FaultKind::Unordered { .. } | FaultKind::StillRead { .. }),
            "in shared memory",
        ),
        ("memory written", false, still_read, "write at 0x20 in shared memory under an asynchronous read"),
        ("written by another", false, still_read, "write at 0x0 in shared memory under an asynchronous read"),
        ("ends", false, |kind| matches!(kind, FaultKind::PendingAtEnd { .. }), "without a wait for what it had begun"),
    ];
    for (mistake, in_registers, check, text) in cases {
        for schedule in [Schedule::InOrder, Schedule::Random(1), Schedule::Random(2), Schedule::Random(3)] {
            let case = Case { mistake, ..Case::new(F16, 32, (!in_registers).then_some(K128), K128) };
            let Err(fault) = case.run(schedule) else { panic!("{mistake}, {schedule:?}: no fault") };
            assert!(check(&fault.kind) && fault.to_string().contains(text), "{mistake}, {schedule:?}: {fault}");
        }
    }
}

#[test]
fn bad_products_are_refused() {
    let good = Case::new(F16, 32, Some(K128), K128).kernel();
    let cases = [
        ("m64n32k16", "m64n40k16", "20 accumulators are needed"),
        (", 1, 1, 0, 0;", ", 1, 2, 0, 0;", "must be 1 or -1"),
        (", 1, 1, 0, 0;", ", 1, 1, 0;", "4 immediates are needed after scale-d"),
        ("f32.f16.f16", "f32.f16.bf16", "not a known form"),
        ("%x5, %x6, %p", "{%a0, %a1}, %x6, %p", "3 immediates are needed"),
    ];
    for (from, to, text) in cases {
        let error = Program::load(&good.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(text), "{to}: {error}");
    }
}
