//! Masks of a loop's body that hold in all places while the index of the loop is small.

use rtc_ir::analysis::{Affine, Poly, Ranges};
use rtc_ir::{Elem, Kernel, Op, OpKind, Predicate, Type, Value, regions, view};

/// `scale * index + reach < bound`, where the bound is the sum of some scalars: the mask holds everywhere while that is so, or
/// nowhere.
pub(super) struct Guard {
    pub(super) mask: Value,
    pub(super) holds: bool,
    pub(super) scale: i64,
    pub(super) reach: i64,
    pub(super) bound: Vec<Value>,
    /// The sum of the scalars and so much more is computed in 32 bits.
    pub(super) rise: i64,
}

impl Guard {
    /// Whether the bound is this scalar and nothing more.
    pub(super) fn is_below(&self, upper: Value) -> bool {
        self.bound[..] == [upper] && self.rise == 0
    }

    /// By how much the bound exceeds what is below it at an index, if that is always the same.
    fn room(&self, affine: &mut Affine<'_>, index: Value) -> Option<i128> {
        let index = affine.of(index)?.poly.times(&Poly::constant(self.scale.into()))?;
        let mut room = Poly::constant(-i128::from(self.reach)).plus(&index, -1)?;
        for value in &self.bound {
            room = room.plus(&affine.of(*value)?.poly, 1)?;
        }
        room.value()
    }

    /// Whether the bound as the kernel computes it might exceed 32 bits.
    pub(super) fn may_wrap(&self) -> bool {
        self.bound.len() > 1 || !self.bound.is_empty() && self.rise > 0
    }
}

/// Elements of a thread that a mask chooses from, at least, where loops with dots are split. With fewer, such as in decoding,
/// an iteration is short, and the second loop has to wait for its first operands.
const LEAST_SELECTED: u64 = 32;

/// The scalars of a sum, at most.
const MOST_VALUES: usize = 3;

/// `scale * index + r + the sum of values`, `r` in `least..=most`.
#[derive(Clone, Default)]
struct GuardForm {
    scale: i64,
    least: i64,
    most: i64,
    values: Vec<Value>,
}

/// The guards of a loop's body that hold in a first part of its iterations: comparisons of the index and a range of
/// numbers with a value from outside of the loop.
pub(super) fn of_loop(kernel: &Kernel, op: Op) -> Vec<Guard> {
    let body = kernel.op(op).blocks[0];
    kernel.ops(body).filter_map(|inner| of_comparison(kernel, op, inner, true)).collect()
}

/// The guards that decide branches of a loop's body, such as one for the tile that is cut off by the end, and those of masks that
/// hold as long.
pub(super) fn of_branches(kernel: &Kernel, op: Op) -> Vec<Guard> {
    let body = kernel.op(op).blocks[0];
    let branches = kernel.ops(body).filter(|inner| matches!(kernel.kind(*inner), OpKind::IfElse {}));
    let conditions = branches.filter_map(|branch| kernel.def_op(view::IfElse::at(kernel, branch).condition()));
    let decides = |inner: Op| [true, false].into_iter().find_map(|holds| of_comparison(kernel, op, inner, holds));
    let mut guards: Vec<Guard> = Vec::new();
    for guard in conditions.filter_map(decides) {
        if guards.iter().all(|known| known.mask != guard.mask) {
            guards.push(guard);
        }
    }
    let as_long = |mask: &Guard| {
        guards.iter().all(|guard| guard.mask != mask.mask)
            && guards
                .iter()
                .any(|guard| (mask.scale, &mask.bound, mask.rise) == (guard.scale, &guard.bound, guard.rise))
    };
    let masks: Vec<Guard> = of_loop(kernel, op).into_iter().filter(as_long).collect();
    guards.extend(masks);
    guards
}

/// The guard under which a comparison in a loop's body holds, or does not hold.
fn of_comparison(kernel: &Kernel, op: Op, inner: Op, holds: bool) -> Option<Guard> {
    let OpKind::CmpI { predicate } = kernel.kind(inner) else { return None };
    let index = kernel.block(kernel.op(op).blocks[0]).args[0];
    let from_zero = rtc_ir::constant_bits(kernel, view::ForRange::at(kernel, op).lower())
        .is_some_and(|bits| bits as u32 as i32 >= 0);
    let sides = view::CmpI::at(kernel, inner);
    let (small, large, equal) = match (predicate, holds) {
        (Predicate::Lt, true) | (Predicate::Ge, false) => (sides.lhs(), sides.rhs(), 0),
        (Predicate::Gt, true) | (Predicate::Le, false) => (sides.rhs(), sides.lhs(), 0),
        (Predicate::Le, true) | (Predicate::Gt, false) => (sides.lhs(), sides.rhs(), 1),
        (Predicate::Ge, true) | (Predicate::Lt, false) => (sides.rhs(), sides.lhs(), 1),
        _ => return None,
    };
    let side = |value: Value| form(kernel, value, index, op);
    let (small, large) = (side(small)?, side(large)?);
    let scale = small.scale - large.scale;
    // In 32 bits the sides are what they are without them: they lie between 0 and the bound. (A scale of one needs no
    // start from zero on the side of the range: from the least integer on, the sum with a number that is not negative
    // fits up to the bound.)
    let fits = small.least >= 0 && (from_zero || (small.scale == 1 && large.scale == 0));
    // The bound is a sum of values, or a constant, and a range of numbers.
    let suits = small.values.is_empty() && scale > 0 && small.scale >= 0 && large.scale <= 0 && fits;
    suits.then(|| Guard {
        mask: kernel.result(inner, 0),
        holds,
        scale,
        reach: small.most - large.least - equal,
        bound: large.values,
        rise: large.most.max(0),
    })
}

/// The guards whose masks alone choose between elements of tiles of floats, such as the scores of attention, and may hold in
/// the first iteration.
pub(super) fn of_selects(kernel: &Kernel, op: Op) -> Vec<Guard> {
    let mut guards = of_loop(kernel, op);
    if guards.is_empty() {
        return guards;
    }
    let ranges = Ranges::new(kernel);
    let mut affine = Affine::new(kernel, &ranges);
    let lower = view::ForRange::at(kernel, op).lower();
    guards.retain(|guard| guard.room(&mut affine, lower).is_none_or(|room| room > 0));
    let mut choosing = Vec::new();
    for inner in kernel.ops(kernel.op(op).blocks[0]).filter(|inner| selects_many(kernel, *inner)) {
        let mut masks = Vec::new();
        add_masks(kernel, view::Select::at(kernel, inner).condition(), &mut masks);
        if masks.iter().all(|mask| guards.iter().any(|guard| guard.mask == *mask)) {
            choosing.extend(masks);
        }
    }
    guards.retain(|guard| choosing.contains(&guard.mask));
    guards
}

/// Whether an operation chooses between so many elements of a thread that a loop without it is worth having.
pub(super) fn selects_many(kernel: &Kernel, op: Op) -> bool {
    let OpKind::Select {} = kernel.kind(op) else { return false };
    let result = kernel.value_type(kernel.result(op, 0));
    let elements = result.shape().map_or(0, |shape| shape.numel() / u64::from(kernel.group_of(op).threads()));
    elements >= LEAST_SELECTED && result.elem().is_some_and(Elem::is_float)
}

/// Adds the masks all of which a condition requires.
pub(super) fn add_masks(kernel: &Kernel, condition: Value, masks: &mut Vec<Value>) {
    let Some(op) = kernel.def_op(condition) else { return masks.push(condition) };
    match kernel.kind(op) {
        OpKind::AndI {} => {
            let both = view::AndI::at(kernel, op);
            add_masks(kernel, both.lhs(), masks);
            add_masks(kernel, both.rhs(), masks);
        }
        _ => match kernel.forwarded(op) {
            Some(value) => add_masks(kernel, value, masks),
            None => masks.push(condition),
        },
    }
}

/// A 32-bit integer or a tile of them as a linear form of the loop's index; `None` if it is not one.
fn form(kernel: &Kernel, value: Value, index: Value, of: Op) -> Option<GuardForm> {
    if value == index {
        return Some(GuardForm { scale: 1, ..GuardForm::default() });
    }
    if kernel.value_type(value).elem() != Some(Elem::I32) {
        return None;
    }
    if let Some(bits) = rtc_ir::constant_bits(kernel, value) {
        let number = i64::from(bits as u32 as i32);
        return Some(GuardForm { least: number, most: number, ..GuardForm::default() });
    }
    if let Type::Scalar(_) = kernel.value_type(value)
        && regions::is_outside(kernel, value, of)
    {
        return Some(GuardForm { values: vec![value], ..GuardForm::default() });
    }
    let op = kernel.def_op(value)?;
    let side = |at: usize| form(kernel, kernel.operand(op, at), index, of);
    match kernel.kind(op) {
        kind if kind.forwards().is_some() => side(0),
        OpKind::Arange { start, end } => Some(GuardForm { least: *start, most: end - 1, ..GuardForm::default() }),
        OpKind::AddI {} => side(0)?.plus(side(1)?, 1),
        OpKind::SubI {} => side(0)?.plus(side(1)?, -1),
        OpKind::MulI {} => {
            let (a, b) = (side(0)?, side(1)?);
            a.times(&b).or_else(|| b.times(&a))
        }
        OpKind::DivSI {} | OpKind::DivUI {} => side(0)?.over(&side(1)?),
        _ => None,
    }
}

impl GuardForm {
    fn plus(self, other: GuardForm, sign: i64) -> Option<GuardForm> {
        let (least, most) = if sign > 0 { (other.least, other.most) } else { (-other.most, -other.least) };
        let mut values = self.values;
        (sign > 0 || other.values.is_empty()).then_some(())?;
        values.extend(other.values);
        (values.len() <= MOST_VALUES).then_some(())?;
        Some(GuardForm {
            scale: self.scale.checked_add(sign * other.scale)?,
            least: self.least.checked_add(least)?,
            most: self.most.checked_add(most)?,
            values,
        })
    }

    /// The product with a constant that is not negative.
    fn times(&self, constant: &GuardForm) -> Option<GuardForm> {
        let factor = constant.constant().filter(|factor| *factor >= 0 && self.values.is_empty())?;
        Some(GuardForm {
            scale: self.scale.checked_mul(factor)?,
            least: self.least.checked_mul(factor)?,
            most: self.most.checked_mul(factor)?,
            values: Vec::new(),
        })
    }

    /// A range of numbers that are not negative divided by a constant.
    fn over(&self, constant: &GuardForm) -> Option<GuardForm> {
        let divisor = constant.constant().filter(|divisor| *divisor > 0)?;
        let is_range = self.scale == 0 && self.values.is_empty() && self.least >= 0;
        is_range.then(|| GuardForm { least: self.least / divisor, most: self.most / divisor, ..GuardForm::default() })
    }

    fn constant(&self) -> Option<i64> {
        (self.scale == 0 && self.values.is_empty() && self.least == self.most).then_some(self.least)
    }
}
