//! Shape operations: each slot of the result is a slot of an operand.
//!
//! On whole tiles the slots are elements; in registers the source is a register of the same thread.

use std::rc::Rc;

use rtc_layout::Coord;

use super::machine::{Machine, Sources, Stop};
use super::value::Data;
use super::{FaultKind, Storage};
use crate::layout_rules::{flatten, register_sources, unflatten, without};
use crate::{Op, OpKind, Shape, Type};

impl Machine<'_> {
    /// Runs a shape operation.
    pub(crate) fn shape(&mut self, op: Op) -> Result<(), Stop> {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let operands: Vec<Data> = data.operands.iter().map(|v| self.get(*v)).collect();
        for (i, result) in data.results.iter().enumerate() {
            let sources = self.sources_of(op, i)?;
            self.tick(sources.len())?;
            let slots = sources.iter().map(|(operand, slot)| operands[*operand as usize].slot(*slot as usize));
            let slots = slots.collect();
            self.set(*result, Data::many(slots));
        }
        Ok(())
    }

    fn sources_of(&mut self, op: Op, result: usize) -> Result<Sources, Stop> {
        if let Some(sources) = self.sources.get(&(op, result)) {
            return Ok(sources.clone());
        }
        let sources = match self.storage {
            Storage::Tiles => self.tile_sources(op, result),
            Storage::Registers => self.thread_sources(op, result)?,
        };
        let sources = Rc::new(sources);
        self.sources.insert((op, result), sources.clone());
        Ok(sources)
    }

    fn tile_sources(&self, op: Op, result: usize) -> Vec<(u32, u32)> {
        let data = self.kernel.op(op);
        let shape_of = |v: crate::Value| self.kernel.value_type(v).shape();
        let (Some(from), Some(to)) = (shape_of(data.operands[0]), shape_of(data.results[result])) else {
            return Vec::new();
        };
        (0..to.numel() as u32).map(|i| element_source(&data.kind, result, i, &from, &to)).collect()
    }

    fn thread_sources(&self, op: Op, result: usize) -> Result<Vec<(u32, u32)>, Stop> {
        let data = self.kernel.op(op);
        let Some(map) = register_sources(self.kernel, op, result) else {
            let text = format!("`{}` would move data between threads", data.kind.spec().mnemonic);
            return Err(self.stop(FaultKind::Layout(text)));
        };
        let layout = |v: crate::Value| self.kernel.layout_of(v);
        let registers: Vec<u32> = data.operands.iter().map(|v| layout(*v).map_or(1, |l| l.registers())).collect();
        let threads = layout(data.results[result]).map_or(0, |l| l.warps() * l.lanes());
        let place = |thread: u32| {
            let registers = &registers;
            map.iter().map(move |(operand, r)| (*operand as u32, thread * registers[*operand] + r))
        };
        Ok((0..threads).flat_map(place).collect())
    }
}

/// The operand and its element that element `index` of a result is.
fn element_source(kind: &OpKind, result: usize, index: u32, from: &Shape, to: &Shape) -> (u32, u32) {
    let at = |coord: Coord| flatten(coord, from);
    let mut c = unflatten(index, to);
    match kind {
        OpKind::Broadcast {} => {
            for (entry, dim) in c.0.iter_mut().zip(from.iter()) {
                *entry &= dim - 1;
            }
            (0, at(c))
        }
        OpKind::Trans { order } => {
            let mut source = Coord::ZERO;
            for (i, axis) in order.iter().enumerate() {
                source[*axis as usize] = c[i];
            }
            (0, at(source))
        }
        OpKind::Join {} => {
            let axis = to.rank() - 1;
            (c[axis], at(without(c, axis)))
        }
        OpKind::Split {} => {
            c[to.rank()] = result as u32;
            (0, at(c))
        }
        OpKind::Cat {} => (index / from[0], index % from[0]),
        // Row-major order stays.
        _ => (0, index),
    }
}

/// The sizes before, along and after an axis: element `[a, b, c]` has index `(a * size + b) * after + c`.
pub(crate) fn around(ty: Type, axis: usize) -> (usize, usize, usize) {
    let Some(shape) = ty.shape() else { return (1, 1, 1) };
    let product = |dims: &[u32]| dims.iter().map(|d| *d as usize).product();
    (product(&shape[..axis]), shape[axis] as usize, product(&shape[axis + 1..]))
}
