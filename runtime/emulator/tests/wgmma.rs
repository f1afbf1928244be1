//! `wgmma` against plain dot products: every type, every number of columns, all placements of operands in shared memory
//! or registers; and errors, each reported.
#![allow(clippy::unwrap_used)]

use half::f16;
use rtc_emulator::{Fault, FaultKind, LaunchConfig, Memory, Program, Schedule};

#[path = "wgmma/case.rs"]
mod case;

use case::*;

impl Case {
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
        // The initial value of D: its index as a small number.
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
