//! The steps of a dot whose operands lie in shared memory: fragments of them are loaded and multiplied.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use rtc_ir::Elem;
use rtc_layout::{Coord, FragmentPlan, Layout, Multiplier, SharedAccess};

use super::Lowering;
use crate::{
    emit::Value,
    error::{CodegenError, Result},
};

/// One operand in shared memory.
pub(super) struct Fragments {
    /// Steps along K in a fragment.
    pub depth: u32,
    /// A thread's part.
    pub fragment: Layout,
    /// The axis that is summed over.
    pub axis: usize,
    /// Where fragments lie.
    pub numbers: Numbers,
}

/// Where the fragments of an operand lie.
pub(super) enum Numbers {
    /// The distance in bytes.
    Apart { load: SharedAccess, stride: u32 },
    /// As a plan says.
    Mixed(FragmentPlan),
}

impl Fragments {
    /// How a fragment is loaded, and how many bytes after the start.
    fn load(&self, number: u32) -> (Cow<'_, SharedAccess>, u32) {
        match &self.numbers {
            Numbers::Apart { load, stride } => (Cow::Borrowed(load), number * stride),
            Numbers::Mixed(plan) => (Cow::Owned(plan.load_of(number)), 0),
        }
    }

    /// The bytes from the first step to the one after `steps` steps.
    pub(super) fn bytes_to(&self, steps: u32, elem: Elem) -> u32 {
        match &self.numbers {
            Numbers::Apart { stride, .. } => steps / self.depth * stride,
            Numbers::Mixed(plan) => plan.offset(steps / self.depth) * elem.bytes(),
        }
    }
}

/// One dot.
pub(super) struct SharedDot<'a> {
    pub operands: [Fragments; 2],
    pub multiplier: Multiplier,
    /// The elements of the accumulators, and of the operands in shared memory.
    pub elem: Elem,
    /// The layout of the accumulators.
    pub layout: &'a Layout,
}

/// The fragments that some steps need, by their numbers.
type Loaded<'c> = [HashMap<u32, Vec<Value<'c>>>; 2];

impl<'c> Lowering<'_, 'c> {
    /// Adds the dots of `steps` steps, whose operands begin at the two addresses, to the accumulators.
    pub(super) fn multiply_steps(
        &self,
        dot: &SharedDot<'_>,
        starts: [Value<'c>; 2],
        steps: u32,
        accs: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>> {
        let mut accs = accs.to_vec();
        let mut loaded: Loaded<'c> = [HashMap::new(), HashMap::new()];
        let deepest = dot.operands.iter().map(|operand| operand.depth).max().unwrap_or(1);
        let at_once = match dot.multiplier {
            Multiplier::Threads => deepest,
            Multiplier::MmaF64 => 4,
        };
        let order = serpentine(dot.layout);
        for step in (0..steps).step_by(at_once as usize) {
            for (index, operand) in dot.operands.iter().enumerate() {
                let numbers = step / operand.depth..(step + at_once).div_ceil(operand.depth);
                loaded[index].retain(|number, _| numbers.contains(number));
                for number in numbers {
                    loaded[index].entry(number).or_insert_with(|| {
                        let (load, bytes) = operand.load(number);
                        self.load_tile(self.e.constant_offset(starts[index], bytes as i32), &load, dot.elem)
                    });
                }
            }
            match dot.multiplier {
                Multiplier::Threads => self.multiply_add_all(dot, step..step + at_once, &loaded, &order, &mut accs)?,
                Multiplier::MmaF64 => self.multiply_f64(dot, step, &loaded, &mut accs)?,
            }
        }
        Ok(accs)
    }

    /// Some steps by FMAs.
    fn multiply_add_all(
        &self,
        dot: &SharedDot<'_>,
        steps: Range<u32>,
        loaded: &Loaded<'c>,
        order: &[usize],
        accs: &mut [Value<'c>],
    ) -> Result<()> {
        for step in steps {
            let map = |operand: &Fragments| {
                let map = dot.layout.register_map(&operand.fragment, |mut coord: Coord| {
                    coord[operand.axis] = step % operand.depth;
                    coord
                });
                map.ok_or_else(elsewhere)
            };
            let (from_lhs, from_rhs) = (map(&dot.operands[0])?, map(&dot.operands[1])?);
            let [lhs, rhs] = [0, 1].map(|index| &loaded[index][&(step / dot.operands[index].depth)]);
            for register in order {
                let (a, b) = (lhs[from_lhs[*register] as usize], rhs[from_rhs[*register] as usize]);
                accs[*register] = self.multiply_add(dot.elem, a, b, accs[*register]);
            }
        }
        Ok(())
    }

    /// Four steps by `mma.sync` on `f64`: m16n8k4 where the accumulators lie in fours, two pairs eight rows apart, and the target
    /// has it, else m8n8k4.
    fn multiply_f64(&self, dot: &SharedDot<'_>, step: u32, loaded: &Loaded<'c>, accs: &mut [Value<'c>]) -> Result<()> {
        let instruction = self.instruction(dot.elem, dot.elem, dot.elem)?;
        let (layout, rows) = (dot.layout, dot.layout.rank() - 2);
        let place = |register: u32| layout.coords(register, 0, 0);
        let tall = self.target.capability >= 90 && layout.registers() >= 4 && place(2)[rows] == place(0)[rows] + 8;
        let at_once = if tall { 4 } else { 2 };
        for (first, accs) in (0..).step_by(at_once).zip(accs.chunks_mut(at_once)) {
            let operand = |index, register| self::register(dot, loaded, index, place(register), step);
            let results = if tall {
                let operands = [operand(0, first)?, operand(0, first + 2)?, operand(1, first)?];
                self.multiply_tall_f64(operands, accs)
            } else {
                self.multiply(&instruction, vec![operand(0, first)?, operand(1, first)?], accs.to_vec())
            };
            accs.copy_from_slice(&results);
        }
        Ok(())
    }

    /// `mma.sync` m16n8k4 on `f64`, which LLVM has no intrinsic for. Those of 8 and 16 steps were no faster on an H200,
    /// and let fewer registers be free.
    fn multiply_tall_f64(&self, operands: [Value<'c>; 3], accs: &[Value<'c>]) -> Vec<Value<'c>> {
        let text =
            "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};";
        let all = [&operands[..], accs].concat();
        self.e.assembly(text, "=d,=d,=d,=d,d,d,d,d,d,d,d", &all, &[self.e.ty.f64; 4], true)
    }
}

/// The registers of accumulators row by row, to and fro: each FMA has an operand in common with the one before. The
/// assembler then finds registers that can be read at the same time for more of them.
fn serpentine(layout: &Layout) -> Vec<usize> {
    let (rank, last) = (layout.rank(), layout.rank() - 1);
    let mut all: Vec<(Vec<u32>, u32, usize)> = (0..layout.registers())
        .map(|register| {
            let place = layout.coords(register, 0, 0);
            ((0..rank - 1).map(|axis| place[axis]).collect(), place[last], register as usize)
        })
        .collect();
    all.sort_unstable();
    for row in all.chunk_by_mut(|a, b| a.0 == b.0).skip(1).step_by(2) {
        row.reverse();
    }
    all.into_iter().map(|(_, _, register)| register).collect()
}

/// The register of an operand for the accumulators at `place` and for four steps.
fn register<'c>(dot: &SharedDot<'_>, loaded: &Loaded<'c>, index: usize, place: Coord, step: u32) -> Result<Value<'c>> {
    let operand = &dot.operands[index];
    let mut coord = place;
    coord[operand.axis] = step % operand.depth;
    let register = operand.fragment.find_register(coord, 0, 0).ok_or_else(elsewhere)?;
    Ok(loaded[index][&(step / operand.depth)][register as usize])
}

fn elsewhere() -> CodegenError {
    CodegenError::lowering("a fragment of a dot that is held in other threads")
}
