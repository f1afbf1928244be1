//! How many registers of a thread a value takes.
//!
//! Elements of a tile that differ by constants share a register: an address with several constants behind it. So a tile of
//! indices, pointers or masks takes one for each part that differs by something else, as rows of a stride that is an argument.

use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{Elem, Kernel, Op, OpKind, Type, Value};

/// Registers of an element that is computed where it is used.
const ELEMENT: f64 = 0.5;

/// The registers of a thread for a tile, whatever it holds.
pub(crate) fn words_of_tile(kernel: &Kernel, value: Value) -> u32 {
    let bits = kernel.value_type(value).elem().map_or(32, |elem| elem.bits());
    kernel.layout_of(value).map_or(0, |layout| (layout.registers() * bits).div_ceil(32))
}

/// Gives the registers of the values of a kernel.
pub(crate) struct Words<'k> {
    kernel: &'k Kernel,
    infos: AxisInfos,
}

impl<'k> Words<'k> {
    pub fn new(kernel: &'k Kernel) -> Words<'k> {
        Words { kernel, infos: axis_info(kernel) }
    }

    /// The registers of a value.
    pub fn of(&self, value: Value) -> f64 {
        let kernel = self.kernel;
        if kernel.def_op(value).is_some_and(|op| {
            matches!(kernel.kind(op), OpKind::Constant { .. } | OpKind::AllocShared { .. }) || hands_on(kernel, op)
        }) {
            return 0.0;
        }
        let ty = kernel.value_type(value);
        match (ty, ty.elem()) {
            (Type::Shared(_), _) => 1.0,
            // Those of a bit are predicates.
            (Type::Scalar(Elem::Num(scalar)), _) if scalar.bits() == 1 => 0.0,
            (Type::Scalar(elem), _) => f64::from(elem.bits().div_ceil(32)),
            (Type::Tile(_), Some(Elem::Num(scalar))) if scalar.bits() == 1 => self.parts(value),
            (Type::Tile(_), Some(Elem::Num(scalar))) => {
                let bits = if scalar.bits() < 32 && !is_packed(kernel, value) { 32 } else { scalar.bits() };
                (self.parts(value) * f64::from(bits) / 32.0).max(1.0)
            }
            // An offset from a common base.
            (Type::Tile(_), Some(Elem::Ptr(_))) => self.parts(value),
            _ => 0.0,
        }
    }

    /// The registers of a value that is computed element by element where it is used.
    pub fn of_elements(&self, value: Value) -> f64 {
        self.of(value).min(ELEMENT)
    }

    /// How many elements of a thread do not differ from another one by a constant.
    pub fn parts(&self, value: Value) -> f64 {
        let kernel = self.kernel;
        if let Some(source) = kernel.def_op(value).and_then(|op| self.bits_of(op)) {
            return self.parts(source);
        }
        let Some(layout) = kernel.layout_of(value) else { return 1.0 };
        let in_run = |axis: usize, step: u64| {
            let of = self.infos.axis(value, axis);
            step < of.contiguity.max(of.constancy).max(of.strided.run)
        };
        let differs = |basis: &rtc_layout::Coord| {
            (0..layout.rank()).any(|axis| basis[axis] != 0 && !in_run(axis, u64::from(basis[axis])))
        };
        f64::from(1 << layout.bases().register.iter().filter(|basis| differs(basis)).count())
    }

    /// The integers of which an operation takes bits, or a quotient by a constant: elements that differ by a constant still do.
    fn bits_of(&self, op: Op) -> Option<Value> {
        let kernel = self.kernel;
        let takes = matches!(
            kernel.kind(op),
            OpKind::AndI {} | OpKind::OrI {} | OpKind::XorI {} | OpKind::ShrSI {} | OpKind::ShrUI {}
        );
        let divides =
            matches!(kernel.kind(op), OpKind::DivSI {} | OpKind::DivUI {} | OpKind::RemSI {} | OpKind::RemUI {});
        let is_index = kernel.value_type(kernel.result(op, 0)).elem().is_some_and(|elem| elem.bits() > 1);
        ((takes || divides) && is_index).then_some(())?;
        let [taken, by] = kernel.sides(op)?;
        self.infos.constant(by).map(|_| taken)
    }
}

/// Whether an operation gives registers of its operand another name.
pub(super) fn hands_on(kernel: &Kernel, op: Op) -> bool {
    kernel.kind(op).forwards().is_some() && !matches!(kernel.kind(op), OpKind::ConvertLayout {})
}

/// Whether narrow elements share registers: as loaded together, or as operands and casts have them.
fn is_packed(kernel: &Kernel, value: Value) -> bool {
    kernel.def_op(value).is_none_or(|op| match kernel.kind(op) {
        OpKind::Load { vector, .. } => vector.is_some_and(|elements| elements > 1),
        kind => matches!(kind, OpKind::ConvertLayout {} | OpKind::LocalLoad {} | OpKind::CastF { .. }),
    })
}
