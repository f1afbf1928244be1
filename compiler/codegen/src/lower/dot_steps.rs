//! The steps of a matrix product whose operands lie in shared memory: fragments of them are loaded and multiplied.

use std::{borrow::Cow, collections::HashMap};

use rtc_ir::Elem;
use rtc_layout::{Access, Coord, FragmentPlan, Layout, Multiplier};

use super::Lowering;
use crate::{
    emit::Value,
    error::{CodegenError, Result},
};

/// One operand in shared memory.
pub(super) struct Fragments {
    /// Steps of the sum in a fragment.
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
    /// So many bytes apart.
    Apart { load: Access, stride: u32 },
    /// As a plan says.
    Mixed(FragmentPlan),
}

impl Fragments {
    /// How a fragment is loaded, and how many bytes after the start.
    fn load(&self, number: u32) -> (Cow<'_, Access>, u32) {
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

/// One product.
pub(super) struct Product<'a> {
    pub operands: [Fragments; 2],
    pub multiplier: Multiplier,
    /// The elements of the sums, and of the operands in shared memory.
    pub elem: Elem,
    /// The layout of the sums.
    pub layout: &'a Layout,
}

/// The fragments that some steps need, by their numbers.
type Loaded<'c> = [HashMap<u32, Vec<Value<'c>>>; 2];

impl<'c> Lowering<'_, 'c> {
    /// Adds the products of `steps` steps, whose operands begin at the two addresses, to the sums.
    pub(super) fn multiply_steps(
        &self,
        product: &Product<'_>,
        starts: [Value<'c>; 2],
        steps: u32,
        sums: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>> {
        let mut sums = sums.to_vec();
        let mut loaded: Loaded<'c> = [HashMap::new(), HashMap::new()];
        let at_once = match product.multiplier {
            Multiplier::Threads => 1,
            // The instruction that takes most.
            Multiplier::MmaF64 if self.has_tall_f64(product) => steps.min(16),
            Multiplier::MmaF64 => 4,
        };
        for step in (0..steps).step_by(at_once as usize) {
            for (index, operand) in product.operands.iter().enumerate() {
                let numbers = step / operand.depth..(step + at_once).div_ceil(operand.depth);
                loaded[index].retain(|number, _| numbers.contains(number));
                for number in numbers {
                    loaded[index].entry(number).or_insert_with(|| {
                        let (load, bytes) = operand.load(number);
                        self.load_tile(self.e.constant_offset(starts[index], bytes as i32), &load, product.elem)
                    });
                }
            }
            match product.multiplier {
                Multiplier::Threads => self.multiply_step(product, step, &loaded, &mut sums)?,
                Multiplier::MmaF64 if at_once == 4 && !self.has_tall_f64(product) => {
                    self.multiply_flat_f64(product, step, &loaded, &mut sums)?;
                }
                Multiplier::MmaF64 => self.multiply_tall_f64(product, (step, at_once), &loaded, &mut sums)?,
            }
        }
        Ok(sums)
    }

    /// One step by multiply-adds.
    fn multiply_step(
        &self,
        product: &Product<'_>,
        step: u32,
        loaded: &Loaded<'c>,
        sums: &mut [Value<'c>],
    ) -> Result<()> {
        let map = |operand: &Fragments| {
            let map = product.layout.register_map(&operand.fragment, |mut coord: Coord| {
                coord[operand.axis] = step % operand.depth;
                coord
            });
            map.ok_or_else(elsewhere)
        };
        let (from_lhs, from_rhs) = (map(&product.operands[0])?, map(&product.operands[1])?);
        let [lhs, rhs] = [0, 1].map(|index| &loaded[index][&(step / product.operands[index].depth)]);
        for (register, sum) in sums.iter_mut().enumerate() {
            let (a, b) = (lhs[from_lhs[register] as usize], rhs[from_rhs[register] as usize]);
            *sum = self.multiply_add(product.elem, a, b, *sum);
        }
        Ok(())
    }

    /// Whether the sums lie as m16n8 on `f64` has them, two pairs eight rows apart in a thread, and the target has it.
    fn has_tall_f64(&self, product: &Product<'_>) -> bool {
        let (layout, rows) = (product.layout, product.layout.rank() - 2);
        self.target.capability >= 90
            && layout.registers() >= 4
            && layout.coords(2, 0, 0)[rows] == layout.coords(0, 0, 0)[rows] + 8
    }

    /// Four steps by `mma.sync` m8n8k4 on `f64`.
    fn multiply_flat_f64(
        &self,
        product: &Product<'_>,
        step: u32,
        loaded: &Loaded<'c>,
        sums: &mut [Value<'c>],
    ) -> Result<()> {
        let instruction = self.instruction(product.elem, product.elem, product.elem)?;
        for (pair, sums) in (0..).step_by(2).zip(sums.chunks_mut(2)) {
            let place = product.layout.coords(pair, 0, 0);
            let operands = [0, 1].map(|index| register(product, loaded, index, place, step));
            let [a, b] = operands;
            let results = self.multiply(&instruction, vec![a?, b?], sums.to_vec());
            sums.copy_from_slice(&results);
        }
        Ok(())
    }

    /// 4, 8 or 16 steps by `mma.sync` m16n8 on `f64`, which LLVM has no intrinsic for.
    fn multiply_tall_f64(
        &self,
        product: &Product<'_>,
        (step, count): (u32, u32),
        loaded: &Loaded<'c>,
        sums: &mut [Value<'c>],
    ) -> Result<()> {
        let (e, of_lhs, of_rhs) = (self.e, count / 2, count / 4);
        let names = |from: u32, count: u32| {
            let names: Vec<String> = (from..from + count).map(|i| format!("${i}")).collect();
            names.join(", ")
        };
        let text = format!(
            "mma.sync.aligned.m16n8k{count}.row.col.f64.f64.f64.f64 {{{}}}, {{{}}}, {{{}}}, {{{}}};",
            names(0, 4),
            names(4, of_lhs),
            names(4 + of_lhs, of_rhs),
            names(4 + of_lhs + of_rhs, 4),
        );
        let constraints = format!("=d,=d,=d,=d{}", ",d".repeat((of_lhs + of_rhs + 4) as usize));
        for (first, sums) in (0..).step_by(4).zip(sums.chunks_mut(4)) {
            let places = [first, first + 2].map(|register| product.layout.coords(register, 0, 0));
            let mut operands = Vec::new();
            for four in (step..step + count).step_by(4) {
                for place in places {
                    operands.push(register(product, loaded, 0, place, four)?);
                }
            }
            for four in (step..step + count).step_by(4) {
                operands.push(register(product, loaded, 1, places[0], four)?);
            }
            operands.extend_from_slice(sums);
            let results = e.assembly(&text, &constraints, &operands, &[e.ty.f64; 4], true);
            sums.copy_from_slice(&results);
        }
        Ok(())
    }
}

/// The register of an operand for the sums at `place` and for four steps.
fn register<'c>(
    product: &Product<'_>,
    loaded: &Loaded<'c>,
    index: usize,
    place: Coord,
    step: u32,
) -> Result<Value<'c>> {
    let operand = &product.operands[index];
    let mut coord = place;
    coord[operand.axis] = step % operand.depth;
    let register = operand.fragment.find_register(coord, 0, 0).ok_or_else(elsewhere)?;
    Ok(loaded[index][&(step / operand.depth)][register as usize])
}

fn elsewhere() -> CodegenError {
    CodegenError::lowering("a fragment of a product that is held in other threads")
}
