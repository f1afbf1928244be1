//! Dots: `mma.sync` on fragments, or FMAs in each thread.

use std::collections::HashMap;

use rtc_ir::{DotKind, Elem, Op, Rounding, Scalar, view};
use rtc_layout::{Coord, Layout, MmaShape};

use super::{Lowering, memory::Words};
use crate::{
    emit::Value,
    error::{CodegenError, Result},
};

/// The three layouts of a dot.
struct Layouts<'a> {
    lhs: &'a Layout,
    rhs: &'a Layout,
    acc: &'a Layout,
}

impl Layouts<'_> {
    /// The size of the axis that is summed over.
    fn depth(&self) -> u32 {
        self.lhs.shape()[self.lhs.rank() - 1]
    }

    /// The starts of the fragments of an instruction of this shape along that axis.
    fn starts(&self, shape: MmaShape) -> Vec<u32> {
        let within = shape.operand_registers(0).trailing_zeros() as usize;
        let axis = self.lhs.rank() - 1;
        let bases = self.lhs.bases().register;
        let repeats: Vec<u32> = bases[within..].iter().map(|basis| basis[axis]).filter(|step| *step != 0).collect();
        let start = |number: u32| (0..repeats.len()).filter(|bit| number >> bit & 1 == 1).map(|bit| repeats[bit]).sum();
        (0..1 << repeats.len()).map(start).collect()
    }
}

/// How a fragment is handed to an instruction.
#[derive(Clone, Copy)]
enum Pack {
    /// Pairs of halves as vectors.
    Halves,
    /// 32-bit words.
    Words,
    /// As they are.
    Elements,
}

/// One `mma.sync` instruction.
pub(super) struct Instruction {
    shape: MmaShape,
    /// An intrinsic's name, or PTX after `mma.sync.aligned.`.
    name: String,
    is_intrinsic: bool,
    operands: Pack,
    accumulator: Pack,
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn dot(&self, op: Op, kind: DotKind) -> Result<()> {
        let dot = view::Dot::at(self.kernel, op);
        let layouts =
            Layouts { lhs: self.layout(dot.lhs())?, rhs: self.layout(dot.rhs())?, acc: self.layout(dot.acc())? };
        match kind {
            DotKind::Fma => self.dot_fma(op, &layouts),
            DotKind::FmaShared | DotKind::MmaF64 => self.dot_shared(op, kind),
            DotKind::MmaV2 => self.dot_mma(op, &layouts),
            DotKind::Unset => Err(CodegenError::lowering("`dot` without a chosen instruction")),
            DotKind::Wgmma => Err(CodegenError::lowering("`dot` by `wgmma` whose operands are not in shared memory")),
        }
    }

    fn dot_mma(&self, op: Op, layouts: &Layouts<'_>) -> Result<()> {
        let dot = view::Dot::at(self.kernel, op);
        let (lhs, rhs, acc) = (self.get(dot.lhs())?, self.get(dot.rhs())?, self.get(dot.acc())?);
        let (of_lhs, of_rhs, of_acc) = (self.elem(dot.lhs())?, self.elem(dot.rhs())?, self.elem(dot.acc())?);
        let instruction = self.instruction(of_lhs, of_rhs, of_acc)?;
        let shape = instruction.shape;
        let per_acc = shape.result_registers() as usize;
        let mut acc = acc.to_vec();
        let fragments: Vec<usize> = (0..acc.len()).step_by(per_acc).collect();
        // Each fragment of an operand is used for a whole row or column of accumulators: it is packed once.
        let (mut rows, mut columns) = (HashMap::new(), HashMap::new());
        for depth in layouts.starts(shape) {
            for first in &fragments {
                let place = layouts.acc.coords(*first as u32, 0, 0);
                let a = fragment(layouts.lhs, |rank| (rank - 1, depth), place, shape.operand_registers(0))?;
                let b = fragment(layouts.rhs, |rank| (rank - 2, depth), place, shape.operand_registers(1))?;
                let pack = instruction.operands;
                let row = rows.entry(a.start).or_insert_with(|| self.pack_fragment(of_lhs, &lhs[a], pack));
                let column = columns.entry(b.start).or_insert_with(|| self.pack_fragment(of_rhs, &rhs[b], pack));
                let operands = row.iter().chain(column.iter()).copied().collect();
                let accs = self.pack_fragment(of_acc, &acc[*first..first + per_acc], instruction.accumulator);
                let accs = self.multiply(&instruction, operands, accs);
                let accs = self.unpack_fragment(of_acc, &accs, instruction.accumulator);
                acc[*first..first + per_acc].copy_from_slice(&accs);
            }
        }
        // Of a tile smaller than an instruction registers hold copies: what uses the sums is then computed once.
        let copies = layouts.acc.copies().registers as usize;
        let sums = (0..acc.len()).map(|register| acc[register & !copies]).collect();
        self.define(op, sums);
        Ok(())
    }

    pub(super) fn instruction(&self, lhs: Elem, rhs: Elem, acc: Elem) -> Result<Instruction> {
        let unsupported = || CodegenError::lowering(format!("`mma.sync` of {lhs} and {rhs} into {acc}"));
        let (Elem::Num(a), Elem::Num(b), Elem::Num(c)) = (lhs, rhs, acc) else { return Err(unsupported()) };
        let intrinsic = |name: &str, operands, accumulator| Instruction {
            shape: MmaShape::for_bits(a.bits()),
            name: format!("llvm.nvvm.mma.{name}"),
            is_intrinsic: true,
            operands,
            accumulator,
        };
        Ok(match (a, b, c) {
            (Scalar::F16, Scalar::F16, Scalar::F32) => {
                intrinsic("m16n8k16.row.col.f32.f32", Pack::Halves, Pack::Elements)
            }
            (Scalar::F16, Scalar::F16, Scalar::F16) => {
                intrinsic("m16n8k16.row.col.f16.f16", Pack::Halves, Pack::Halves)
            }
            (Scalar::BF16, Scalar::BF16, Scalar::F32) => {
                intrinsic("m16n8k16.row.col.bf16", Pack::Words, Pack::Elements)
            }
            (Scalar::F32, Scalar::F32, Scalar::F32) => intrinsic("m16n8k8.row.col.tf32", Pack::Words, Pack::Elements),
            (Scalar::I8, Scalar::I8, Scalar::I32) => {
                intrinsic("m16n8k32.row.col.satfinite.s8", Pack::Words, Pack::Elements)
            }
            (Scalar::F64, Scalar::F64, Scalar::F64) => intrinsic("m8n8k4.row.col.f64", Pack::Elements, Pack::Elements),
            (Scalar::F8E4 | Scalar::F8E5, Scalar::F8E4 | Scalar::F8E5, Scalar::F32) => {
                let name = |scalar| if scalar == Scalar::F8E4 { "e4m3" } else { "e5m2" };
                Instruction {
                    shape: MmaShape::for_bits(8),
                    name: format!("m16n8k32.row.col.f32.{}.{}.f32", name(a), name(b)),
                    is_intrinsic: false,
                    operands: Pack::Words,
                    accumulator: Pack::Elements,
                }
            }
            _ => return Err(unsupported()),
        })
    }

    /// One instruction on packed operands and accumulators.
    pub(super) fn multiply(
        &self,
        instruction: &Instruction,
        operands: Vec<Value<'c>>,
        accs: Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let e = self.e;
        let fields: Vec<_> = accs.iter().map(|acc| crate::emit::type_of(*acc)).collect();
        let mut all = operands;
        all.extend_from_slice(&accs);
        if instruction.is_intrinsic {
            let whole = e.intrinsic(&instruction.name, &all, e.struct_type(&fields));
            return e.unpack_struct(whole, &fields);
        }
        let text = format!(
            "mma.sync.aligned.{} {{$0, $1, $2, $3}}, {{$4, $5, $6, $7}}, {{$8, $9}}, {{$10, $11, $12, $13}};",
            instruction.name
        );
        e.assembly(&text, "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f", &all, &fields, true)
    }

    fn pack_fragment(&self, elem: Elem, values: &[Value<'c>], pack: Pack) -> Vec<Value<'c>> {
        match pack {
            Pack::Elements => values.to_vec(),
            Pack::Halves => values.chunks(2).map(|pair| self.e.pack(pair)).collect(),
            Pack::Words => {
                let count = values.len() as u32 * elem.bits() / 32;
                self.to_words(elem, values, Words { bits: 32, count })
            }
        }
    }

    fn unpack_fragment(&self, elem: Elem, values: &[Value<'c>], pack: Pack) -> Vec<Value<'c>> {
        match pack {
            Pack::Halves => values.iter().flat_map(|pair| self.e.unpack(*pair, 2, self.element(elem))).collect(),
            Pack::Elements | Pack::Words => values.to_vec(),
        }
    }

    fn dot_fma(&self, op: Op, layouts: &Layouts<'_>) -> Result<()> {
        let dot = view::Dot::at(self.kernel, op);
        let elem = self.elem(dot.acc())?;
        let (lhs, rhs) = (self.widened(dot.lhs(), elem)?, self.widened(dot.rhs(), elem)?);
        let mut acc = self.get(dot.acc())?.to_vec();
        let rank = layouts.acc.rank();
        let elsewhere = || CodegenError::lowering("`dot` by FMA with operands held in other threads");
        for depth in 0..layouts.depth() {
            let at = |operand: &Layout, axis: usize| {
                let map = layouts.acc.register_map(operand, |mut coord: Coord| {
                    coord[axis] = depth;
                    coord
                });
                map.ok_or_else(elsewhere)
            };
            let (from_lhs, from_rhs) = (at(layouts.lhs, rank - 1)?, at(layouts.rhs, rank - 2)?);
            for (register, acc) in acc.iter_mut().enumerate() {
                let (a, b) = (lhs[from_lhs[register] as usize], rhs[from_rhs[register] as usize]);
                *acc = self.multiply_add(elem, a, b, *acc);
            }
        }
        self.define(op, acc);
        Ok(())
    }

    /// `a * b + sum`, rounded once.
    pub(super) fn multiply_add(&self, elem: Elem, a: Value<'c>, b: Value<'c>, acc: Value<'c>) -> Value<'c> {
        let e = self.e;
        if elem.is_int() { e.addi(e.muli(a, b), acc) } else { e.fma(a, b, acc) }
    }

    /// An operand's registers in the type of the accumulators.
    pub(super) fn widened(&self, operand: rtc_ir::Value, to: Elem) -> Result<Vec<Value<'c>>> {
        let (from, registers) = (self.elem(operand)?, self.get(operand)?);
        let (Elem::Num(from), Elem::Num(to)) = (from, to) else {
            return Err(CodegenError::lowering("`dot` of pointers"));
        };
        Ok(match (from.is_int(), to.is_int()) {
            (true, true) => registers.iter().map(|value| self.e.extsi(*value, self.element(to.into()))).collect(),
            (false, false) => self.cast_floats(&registers, from, to, Rounding::NearestEven),
            (true, false) | (false, true) => {
                return Err(CodegenError::lowering(format!("`dot` of {from} into {to}")));
            }
        })
    }
}

/// The registers of the operand's fragment for the accumulator's fragment at `place` and the given depth. `depth`
/// gives the operand's axis that is summed over, and the place along it.
fn fragment(
    layout: &Layout,
    depth: impl Fn(usize) -> (usize, u32),
    place: Coord,
    count: u32,
) -> Result<std::ops::Range<usize>> {
    let (axis, depth) = depth(layout.rank());
    let mut coord = place;
    coord[axis] = depth;
    let first = layout.find_register(coord, 0, 0).filter(|first| first.is_multiple_of(count));
    let first = first.ok_or_else(|| CodegenError::lowering(format!("`mma.sync` on an operand of layout {layout}")))?;
    Ok(first as usize..(first + count) as usize)
}
