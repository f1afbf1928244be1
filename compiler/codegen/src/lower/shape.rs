//! Creation of tiles and changes of shape: each result register is a register of an operand, in the same thread.

use rtc_ir::{Op, view};
use rtc_layout::{Coord, Layout};

use super::{Lowering, coordinates::register};
use crate::{
    emit::Value,
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    pub(super) fn program_id(&self, op: Op, axis: u32) -> Result<()> {
        let value = self.grid_register("ctaid", "clusterid", axis)?;
        self.define(op, vec![value]);
        Ok(())
    }

    pub(super) fn num_programs(&self, op: Op, axis: u32) -> Result<()> {
        let value = self.grid_register("nctaid", "nclusterid", axis)?;
        self.define(op, vec![value]);
        Ok(())
    }

    /// A program is a block, or a cluster of blocks where the kernel has clusters.
    fn grid_register(&self, of_block: &str, of_cluster: &str, axis: u32) -> Result<Value<'c>> {
        let letter = *["x", "y", "z"]
            .get(axis as usize)
            .ok_or_else(|| CodegenError::lowering(format!("grid axis {axis}; a grid has three")))?;
        let name = if self.kernel.options.num_ctas > 1 { of_cluster } else { of_block };
        Ok(self.e.special_register(&format!("{name}.{letter}")))
    }

    pub(super) fn arange(&self, op: Op, start: i64) -> Result<()> {
        let e = self.e;
        let layout = self.layout(self.kernel.result(op, 0))?;
        let spot = self.layout_spot(layout, |index| index);
        let values = (0..layout.registers()).map(|register| {
            let index = self.at(spot, layout.index(register, 0, 0));
            if start == 0 { index } else { e.addi(index, e.int(e.ty.i32, start)) }
        });
        self.define(op, values.collect());
        Ok(())
    }

    /// A promise that the tile falls into aligned runs of equal elements: the registers of a run share the first one.
    pub(super) fn share_runs(&self, op: Op, runs: &[u32]) -> Result<()> {
        let operand = self.get(view::Hint::at(self.kernel, op).value())?;
        let mut registers = operand.to_vec();
        if let Some(layout) = self.kernel.layout_of(self.kernel.result(op, 0)) {
            let aligned = |axis: usize| runs.get(axis).map_or(1, |run| 1 << run.trailing_zeros().min(31));
            // Bits of the register's number that stay within a run.
            let within = |bit: &u32| {
                let coords = layout.coords(*bit, 0, 0);
                (0..layout.rank()).all(|axis| coords[axis] < aligned(axis))
            };
            let bits = (0..layout.registers().ilog2()).map(|bit| 1 << bit).filter(within).fold(0, |all, bit| all | bit);
            for (number, register) in registers.iter_mut().enumerate() {
                *register = operand[number & !(bits as usize)];
            }
        }
        self.define(op, registers);
        Ok(())
    }

    pub(super) fn splat(&self, op: Op) -> Result<()> {
        let value = self.scalar(view::Splat::at(self.kernel, op).scalar())?;
        self.define(op, vec![value; self.register_count(self.kernel.result(op, 0))?]);
        Ok(())
    }

    pub(super) fn unsplat(&self, op: Op) -> Result<()> {
        // A tile of one element has copies of it everywhere.
        let value = register(&self.get(view::Unsplat::at(self.kernel, op).source())?, 0);
        self.define(op, vec![value]);
        Ok(())
    }

    pub(super) fn expand_dims(&self, op: Op, axis: u32) -> Result<()> {
        self.rename(op, |mut coord| {
            coord.0[axis as usize..].rotate_left(1);
            coord.0[coord.0.len() - 1] = 0;
            coord
        })
    }

    pub(super) fn broadcast(&self, op: Op) -> Result<()> {
        let shape = self.layout(view::Broadcast::at(self.kernel, op).source())?.shape().to_vec();
        self.rename(op, |mut coord| {
            for (axis, size) in shape.iter().enumerate() {
                coord[axis] &= size - 1;
            }
            coord
        })
    }

    pub(super) fn reshape(&self, op: Op, reorder: bool) -> Result<()> {
        let result = self.kernel.result(op, 0);
        let (from, to) = (self.layout(view::Reshape::at(self.kernel, op).source())?, self.layout(result)?);
        let map = to.register_map(&from.reshape(to.shape()), |coord| coord);
        let map = match map {
            Some(map) => map,
            // Any permutation will do: register by register.
            None if reorder && from.registers() == to.registers() => (0..to.registers()).collect(),
            None => return Err(self.moves_data(op)),
        };
        self.pick(op, &map)
    }

    pub(super) fn trans(&self, op: Op, order: &[u32]) -> Result<()> {
        self.rename(op, |coord| {
            let mut source = Coord::ZERO;
            for (axis, from) in order.iter().enumerate() {
                source[*from as usize] = coord[axis];
            }
            source
        })
    }

    pub(super) fn join(&self, op: Op) -> Result<()> {
        let join = view::Join::at(self.kernel, op);
        let result = self.layout(self.kernel.result(op, 0))?;
        let last = result.rank() - 1;
        let (lhs, rhs) = (self.get(join.lhs())?, self.get(join.rhs())?);
        let operand = self.layout(join.lhs())?;
        // Which half a register belongs to must not depend on the thread.
        if (0..32).any(|lane| result.coords(0, lane, 0)[last] != 0)
            || (0..result.warps()).any(|warp| result.coords(0, 0, warp)[last] != 0)
        {
            return Err(self.moves_data(op));
        }
        let map = result.register_map(operand, |mut coord| {
            coord[last] = 0;
            coord
        });
        let map = map.ok_or_else(|| self.moves_data(op))?;
        let halves = (0..result.registers()).map(|r| if result.coords(r, 0, 0)[last] == 0 { &lhs } else { &rhs });
        let values = halves.zip(&map).map(|(half, from)| half[*from as usize]).collect();
        self.define(op, values);
        Ok(())
    }

    pub(super) fn split(&self, op: Op) -> Result<()> {
        let split = view::Split::at(self.kernel, op);
        let source = self.get(split.source())?;
        let from = self.layout(split.source())?;
        let last = from.rank() - 1;
        for half in 0..2 {
            let result = self.kernel.result(op, half as usize);
            let map = self.layout(result)?.register_map(from, |mut coord| {
                coord[last] = half;
                coord
            });
            let map = map.ok_or_else(|| self.moves_data(op))?;
            self.set(result, map.iter().map(|register| source[*register as usize]).collect());
        }
        Ok(())
    }

    pub(super) fn cat(&self, op: Op) -> Result<()> {
        let cat = view::Cat::at(self.kernel, op);
        // In any order: the registers of one after those of the other.
        let (lhs, rhs) = (self.get(cat.lhs())?, self.get(cat.rhs())?);
        let values: Vec<_> = lhs.iter().chain(rhs.iter()).copied().collect();
        if values.len() != self.register_count(self.kernel.result(op, 0))? {
            return Err(self.moves_data(op));
        }
        self.define(op, values);
        Ok(())
    }

    /// Defines the result by `map` from its coordinates to those of the operand.
    fn rename(&self, op: Op, map: impl Fn(Coord) -> Coord) -> Result<()> {
        let from: &Layout = self.layout(self.kernel.operand(op, 0))?;
        let to = self.layout(self.kernel.result(op, 0))?;
        let map = to.register_map(from, map).ok_or_else(|| self.moves_data(op))?;
        self.pick(op, &map)
    }

    /// Defines the result by the operand's registers in another order.
    pub(super) fn pick(&self, op: Op, registers: &[u32]) -> Result<()> {
        let source = self.operand(op, 0)?;
        self.define(op, registers.iter().map(|register| source[*register as usize]).collect());
        Ok(())
    }

    fn moves_data(&self, op: Op) -> CodegenError {
        let data = self.kernel.op(op);
        let types: Vec<_> = data.operands.iter().chain(&data.results).map(|v| self.kernel.value_type(*v)).collect();
        CodegenError::lowering(format!(
            "`{}` between layouts that hold the elements in different threads ({types:?})",
            data.kind.spec().mnemonic
        ))
    }
}
