//! The requirements of `wgmma` dots on types, layouts and buffers, and their split into instructions.

use rtc_layout::{Layout, MatrixDescriptor};

use crate::{Kernel, Op, OpKind, Scalar, Shape, Type, Value};

/// How a dot `[M, K]` times `[K, N]` is made of instructions m64nNkK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MmaForm {
    /// Columns of an instruction.
    pub n: u32,
    /// Elements of K of an instruction.
    pub k: u32,
    /// Warps along M and N.
    pub warps: [u32; 2],
    /// Instructions of a warp group along M and N.
    pub repeats: [u32; 2],
    /// Instructions along K.
    pub steps: u32,
    /// How the left operand lies in shared memory; `None` if it is in registers.
    pub lhs: Option<MatrixDescriptor>,
    /// How the right operand lies in shared memory.
    pub rhs: MatrixDescriptor,
}

impl MmaForm {
    /// The form of an `mma` or `mma_async`; why it has none.
    pub fn of(kernel: &Kernel, op: Op) -> Result<MmaForm, String> {
        let Some([lhs, rhs, acc]) = kernel.dot_operands(op) else { return Err("needs three operands".into()) };
        let (Some(a), Some(c)) = (operand_shape(kernel.value_type(lhs)), kernel.value_type(acc).shape()) else {
            return Err("has no shapes".into());
        };
        let bits = kernel.value_type(lhs).elem().map_or(0, |elem| elem.bits());
        let layout = kernel.layout_of(acc).ok_or("the accumulator has no layout")?;
        let sums = kernel.value_type(acc).elem().map_or(32, |elem| elem.bits());
        let form = AccumulatorForm::within(layout, widest_instruction(sums, kernel.register_limit()));
        let form = form.ok_or("the accumulator has not the layout of `wgmma`")?;
        let AccumulatorForm { n, warps, rows } = &form;
        let (n, warps) = (*n, *warps);
        if !kernel.group_of(op).first.is_multiple_of(4) {
            return Err("the warps of `wgmma` begin at a multiple of four".into());
        }
        let k = 256 / bits;
        if a[1] < k {
            return Err(format!("K is {}, but an instruction takes {k} of it", a[1]));
        }
        let in_memory = |value: Value, k_axis: usize| -> Result<MatrixDescriptor, String> {
            let ty = kernel.value_type(value).as_shared().ok_or("the right operand must be in shared memory")?;
            let descriptor = MatrixDescriptor::of(&kernel.slot_layout(ty), bits, k_axis);
            let descriptor = descriptor.ok_or_else(|| format!("`wgmma` cannot read {}", Type::Shared(ty)))?;
            let (has, needs) = (kernel.place_alignment(value), descriptor.align());
            if !has.is_multiple_of(needs) {
                return Err(format!("an operand lies at a multiple of {has} bytes, not of {needs}"));
            }
            Ok(descriptor)
        };
        let rhs = in_memory(rhs, 0)?;
        let lhs = match kernel.layout_of(lhs) {
            None if rows.is_some() => return Err("rows in another order need a left operand in registers".into()),
            None => Some(in_memory(lhs, 1)?),
            Some(layout) if form.takes(layout, bits) => None,
            Some(_) => return Err("the left operand has not the layout of `wgmma`".into()),
        };
        let repeats = [c[0] / (16 * warps[0]), c[1] / (n * warps[1])];
        Ok(MmaForm { n, k, warps, repeats, steps: a[1] / k, lhs, rhs })
    }
}

/// How an accumulator is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccumulatorForm {
    /// Columns of an instruction.
    pub n: u32,
    /// Warps along M and N.
    pub warps: [u32; 2],
    /// Which bit of a row's number each bit is that the instructions count by, if not the same one.
    pub rows: Option<Vec<u32>>,
}

impl AccumulatorForm {
    /// The form of a layout with the widest instructions, if it is that of an accumulator, perhaps with rows in another order.
    pub fn of(layout: &Layout) -> Option<AccumulatorForm> {
        AccumulatorForm::among(layout, MOST_COLUMNS)
    }

    /// The form whose instructions have at most `most` columns, or the form for any.
    fn within(layout: &Layout, most: u32) -> Option<AccumulatorForm> {
        AccumulatorForm::among(layout, most).or_else(|| AccumulatorForm::of(layout))
    }

    fn among(layout: &Layout, most: u32) -> Option<AccumulatorForm> {
        let &[m, columns] = layout.shape() else { return None };
        let fits = |n: u32, warps: [u32; 2]| m >= 16 * warps[0] && columns >= n * warps[1];
        let all = || {
            (3..=most.ilog2()).rev().map(|log| 1u32 << log).flat_map(|n| {
                let grids = (2..=layout.warps().trailing_zeros()).map(|bits| [1 << bits, layout.warps() >> bits]);
                grids.map(move |warps| (n, warps)).filter(|(n, warps)| fits(*n, *warps))
            })
        };
        let plain = |(n, warps): (u32, [u32; 2])| Layout::wgmma(&[m, columns], n, warps);
        if let Some((n, warps)) = all().find(|form| plain(*form) == *layout) {
            return Some(AccumulatorForm { n, warps, rows: None });
        }
        all().find_map(|(n, warps)| {
            let rows = layout.rows_of(&plain((n, warps)))?;
            Some(AccumulatorForm { n, warps, rows: Some(rows) })
        })
    }

    /// Whether a left operand with elements of `bits` bits lies in registers as such a dot takes it.
    pub fn takes(&self, lhs: &Layout, bits: u32) -> bool {
        let &[m, _] = lhs.shape() else { return false };
        let fits = m >= 16 * self.warps[0] && lhs.warps() == self.warps[0] * self.warps[1];
        let plain = || Layout::wgmma_operand(lhs.shape(), bits, self.warps);
        let taken = || self.rows.as_ref().map_or_else(plain, |rows| plain().with_rows(rows));
        fits && *lhs == taken()
    }
}

/// The most columns of an instruction.
const MOST_COLUMNS: u32 = 256;

/// Registers that the assembler needs beside the sums of one instruction.
pub const BESIDE_SUMS: u32 = 26;

/// The most columns of an instruction for a thread of `registers` registers: sums can be spilled between instructions only.
pub fn widest_instruction(sum_bits: u32, registers: u32) -> u32 {
    // An instruction has 64 rows, for the 128 threads of four warps.
    let fits = |columns: &u32| columns * sum_bits / 64 + BESIDE_SUMS <= registers;
    (4..=MOST_COLUMNS.ilog2()).rev().map(|log| 1 << log).find(fits).unwrap_or(8)
}

/// The sizes of an operand: a tile, or a slot of a buffer.
pub(crate) fn operand_shape(ty: Type) -> Option<Shape> {
    ty.shape().or_else(|| ty.as_shared().map(|shared| shared.shape))
}

/// Which element types `wgmma` has.
pub(crate) fn mma_elements(lhs: Scalar, rhs: Scalar, acc: Scalar) -> bool {
    let has = !matches!(lhs, Scalar::F64 | Scalar::F8E4B15) && rhs != Scalar::F8E4B15;
    has && crate::layout_rules::dot_elements(lhs, rhs, acc)
}

impl Kernel {
    /// The known alignment of a buffer's address.
    pub fn place_alignment(&self, value: Value) -> u32 {
        let (Some(op), Some(ty)) = (self.def_op(value), self.value_type(value).as_shared()) else { return 1 };
        let source = self.op(op).operands.first().copied();
        let inner = source.map_or(1 << 30, |source| self.place_alignment(source));
        let step = match self.kind(op) {
            OpKind::AllocShared { align, .. } => *align,
            OpKind::Slot {} => match source.and_then(|ring| self.value_type(ring).as_shared()) {
                // The only slot is where the ring is.
                Some(ring) if ring.slots == 1 => 0,
                Some(ring) => ring.slot_stride() as u32,
                None => 1,
            },
            OpKind::SharedSlice { offsets, shape } => {
                let whole = source.and_then(|source| self.value_type(source).as_shared());
                let start = whole.and_then(|whole| self.slot_layout(whole).slice(offsets, shape));
                start.map_or(1, |(start, _)| start * ty.elem.bytes())
            }
            _ => 0,
        };
        1 << (inner | step).trailing_zeros().min(30)
    }
}
