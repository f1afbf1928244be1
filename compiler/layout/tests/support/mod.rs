//! Executes plans on index numbers: every register holds the row-major index of its element.
#![allow(dead_code)]

use rtc_layout::*;

/// `[warp][lane][register]`.
pub type Registers = Vec<Vec<Vec<u32>>>;

/// A small generator of random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A random layout that covers a tile of this shape: random bases, with copies, and with mixed axes if `mixed`.
    pub fn layout(&mut self, shape: &[u32], num_warps: u32, mixed: bool) -> Layout {
        let dims: Vec<(usize, u32)> = shape
            .iter()
            .enumerate()
            .flat_map(|(axis, d)| (0..d.trailing_zeros()).map(move |bit| (axis, 1u32 << bit)))
            .collect();
        let unit: Vec<Coord> = dims.iter().map(|&(axis, step)| Coord::along(axis, step)).collect();
        let thread_bits = 5 + num_warps.trailing_zeros() as usize;
        let mut thread: Vec<Coord> = vec![Coord::ZERO; thread_bits];
        let mut free: Vec<usize> = (0..thread_bits).collect();
        let mut register = Vec::new();
        let mut left = unit.clone();
        while !left.is_empty() {
            let vector = left.remove(self.below(left.len() as u64) as usize);
            if !free.is_empty() && self.below(4) != 0 {
                thread[free.remove(self.below(free.len() as u64) as usize)] = vector;
            } else {
                register.push(vector);
            }
        }
        if mixed {
            // Column operations keep the span: add one basis to another.
            for _ in 0..6 {
                let total = register.len() + thread_bits;
                let (a, b) = (self.below(total as u64) as usize, self.below(total as u64) as usize);
                if a != b {
                    let read = |i: usize| if i < register.len() { register[i] } else { thread[i - register.len()] };
                    let sum = read(a) ^ read(b);
                    if a < register.len() { register[a] = sum } else { thread[a - register.len()] = sum }
                }
            }
            if self.below(3) == 0 {
                register.push(if self.below(2) == 0 {
                    Coord::ZERO
                } else {
                    register.first().copied().unwrap_or_default()
                });
            }
        }
        let mut bases = Bases { register, warp: thread[5..].to_vec(), ..Bases::default() };
        bases.lane.copy_from_slice(&thread[..5]);
        Layout::from_bases(shape, &bases)
    }
}

pub fn fill(layout: &Layout) -> Registers {
    let thread = |warp, lane| (0..layout.registers()).map(|r| layout.index(r, lane, warp)).collect();
    (0..layout.warps()).map(|warp| (0..32).map(|lane| thread(warp, lane)).collect()).collect()
}

pub fn exchange(values: &mut [Vec<u32>], by: LaneXor) {
    for (lane, registers) in values.iter_mut().enumerate() {
        for (lanes, mask) in by.stages() {
            if (lane as u32 & lanes).count_ones() % 2 == 1 {
                let old = registers.clone();
                for (r, value) in registers.iter_mut().enumerate() {
                    *value = old[r ^ mask as usize];
                }
            }
        }
        let _ = lane;
    }
}

pub fn run_shuffles(plan: &ShufflePlan, src: &Registers) -> Registers {
    let warp = |warp: &Vec<Vec<u32>>| {
        let mut sent = warp.clone();
        exchange(&mut sent, plan.send);
        let mut received: Vec<Vec<u32>> = (0..32)
            .map(|lane| {
                plan.rounds
                    .iter()
                    .map(|&round| sent[plan.source(round, lane) as usize][round.register as usize])
                    .collect()
            })
            .collect();
        exchange(&mut received, plan.receive);
        received.iter().map(|values| plan.slot.iter().map(|&slot| values[slot as usize]).collect()).collect()
    };
    src.iter().map(warp).collect()
}

/// The (address, registers-in-order) pairs of a step in a thread: for matrices the thread's elements and their places.
fn places(access: &SharedAccess, step: &AccessStep, warp: u32) -> Vec<Vec<(u32, u32)>> {
    let address = |lane| access.address(step, lane, warp);
    (0..32)
        .map(|lane| match access.kind {
            AccessKind::Vector => {
                let first = address(lane);
                assert_eq!(first % access.width, 0, "an unaligned vector");
                step.registers.iter().enumerate().map(|(i, &r)| (first + i as u32, r)).collect()
            }
            AccessKind::Matrix { transposed } => {
                let pack = 32 / access.bits;
                assert_eq!(step.registers.len() as u32, pack * access.matrices);
                assert_eq!(access.width * access.bits, 128);
                let place = |(i, &r): (usize, &u32)| {
                    let (matrix, part) = (i as u32 / pack, i as u32 % pack);
                    let along = lane % 4 * pack + part;
                    let (row, column) = if transposed { (along, lane / 4) } else { (lane / 4, along) };
                    let row_address = address(matrix * 8 + row);
                    assert_eq!(row_address % access.width, 0, "an unaligned matrix row");
                    (row_address + column, r)
                };
                step.registers.iter().enumerate().map(place).collect()
            }
        })
        .collect()
}

pub fn run_store(access: &SharedAccess, elements: u32, src: &Registers) -> Vec<Option<u32>> {
    let mut memory = vec![None; elements as usize];
    for (warp, lanes) in src.iter().enumerate() {
        for step in &access.steps {
            for (lane, list) in places(access, step, warp as u32).into_iter().enumerate() {
                let skip = access.kind == AccessKind::Vector
                    && (lane as u32 & access.copies.lanes != 0 || warp as u32 & access.copies.warps != 0);
                for (address, r) in list.into_iter().filter(|_| !skip) {
                    let value = lanes[lane][r as usize];
                    let cell: &mut Option<u32> = &mut memory[address as usize];
                    assert!(cell.is_none_or(|old| old == value), "two values at offset {address}");
                    *cell = Some(value);
                }
            }
        }
    }
    memory
}

pub fn run_load(access: &SharedAccess, memory: &[Option<u32>], warps: u32) -> Registers {
    (0..warps)
        .map(|warp| {
            let mut lanes = vec![vec![None; access.source.len()]; 32];
            for step in &access.steps {
                for (lane, list) in places(access, step, warp).into_iter().enumerate() {
                    for (address, r) in list {
                        lanes[lane][r as usize] = memory[address as usize];
                    }
                }
            }
            let read = |thread: &Vec<Option<u32>>, &r: &u32| thread[r as usize].expect("a register that no step loads");
            lanes.iter().map(|thread| access.source.iter().map(|r| read(thread, r)).collect()).collect()
        })
        .collect()
}

pub fn run_shared(plan: &SharedPlan, src: &Layout, dst: &Layout) -> Registers {
    let memory = run_store(&plan.store, plan.shared.elements(), &fill(src));
    for (offset, value) in memory.iter().enumerate() {
        let coord = plan.shared.coords(offset as u32);
        let index = coord.0.iter().zip(src.shape()).fold(0, |index, (c, d)| index * d + c);
        assert_eq!(*value, Some(index), "offset {offset}");
    }
    run_load(&plan.load, &memory, dst.warps())
}
