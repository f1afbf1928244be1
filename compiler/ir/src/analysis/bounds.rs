//! Masks as bounds: which mask is which conjunction of `offset < bound` or `offset >= bound`, each along one dimension.
//!
//! ```text
//! (m[:, None] < M) & (k[None, :] < K - 32 * round)      d0: 64*program(0) + d0 < %M,  d1: d1 < %K - 32*round
//! ```

use super::affine::{Affine, AffineForm};
use super::poly::{Poly, Symbol};
use super::ranges::Wraps;
use crate::{Kernel, Literal, Op, OpKind, Predicate, Value, view};

/// Masks with more comparisons are not analysed.
const MAX_PARTS: usize = 32;

/// On which side of its bound an offset lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundSide {
    /// `offset < bound`.
    Below,
    /// `offset >= bound`.
    AtLeast,
}

/// A comparison of offsets with a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The dimension of the mask along which the offsets change; `None` if the condition is the same for the whole
    /// tile.
    pub axis: Option<usize>,
    /// The offsets: integers.
    pub offset: Poly,
    /// On which side of the bound they lie.
    pub side: BoundSide,
    /// The bound, which is the same for the whole tile.
    pub bound: Poly,
    /// Whether an integer used in the comparison can overflow; if so, offset and bound represent low bits only.
    pub wraps: Wraps,
    /// The comparison.
    pub op: Op,
}

/// A mask as a conjunction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// Comparisons with a bound.
    pub bounds: Vec<Bound>,
    /// Other conditions.
    pub others: Vec<Value>,
}

impl Mask {
    /// The bounds along a dimension.
    pub fn along(&self, axis: usize) -> impl Iterator<Item = &Bound> {
        self.bounds.iter().filter(move |b| b.axis == Some(axis))
    }
}

/// A part of a conjunction: a condition, and for each of its dimensions that of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The condition.
    pub value: Value,
    /// The dimension of the conjunction.
    pub axes: Vec<usize>,
}

/// The conditions that a mask is a conjunction of; what only gives them another shape is gone through.
pub fn conjunction(kernel: &Kernel, mask: Value) -> Vec<Part> {
    let rank = |value: Value| kernel.value_type(value).shape().map_or(0, |s| s.rank());
    let mut work = vec![Part { value: mask, axes: (0..rank(mask)).collect() }];
    let mut out = Vec::new();
    while let Some(part) = work.pop() {
        let Some(op) = kernel.def_op(part.value).filter(|_| out.len() + work.len() < MAX_PARTS) else {
            out.push(part);
            continue;
        };
        let data = kernel.op(op);
        let below = |i: usize, axes: Vec<usize>| Part { value: data.operands[i], axes };
        match &data.kind {
            OpKind::AndI {} => work.extend([below(1, part.axes.clone()), below(0, part.axes)]),
            OpKind::Broadcast {} | OpKind::ConvertLayout {} | OpKind::Hint { .. } => work.push(below(0, part.axes)),
            OpKind::Splat {} => work.push(below(0, Vec::new())),
            OpKind::ExpandDims { axis } => {
                let mut axes = part.axes;
                axes.remove(*axis as usize);
                work.push(below(0, axes));
            }
            OpKind::Trans { order } => {
                let mut axes = part.axes.clone();
                order.iter().zip(&part.axes).for_each(|(from, axis)| axes[*from as usize] = *axis);
                work.push(below(0, axes));
            }
            OpKind::Constant { value: Literal::Int(i) } if i & 1 == 1 => {}
            _ => out.push(part),
        }
    }
    out
}

impl Affine<'_> {
    /// The comparison of a mask.
    pub fn bounds(&mut self, mask: Value) -> Mask {
        let mut out = Mask::default();
        for part in conjunction(self.kernel, mask) {
            let found = self.comparison(&part);
            if found.is_empty() {
                out.others.push(part.value);
            }
            out.bounds.extend(found);
        }
        out
    }

    /// One comparison as bounds; none if it is something else.
    fn comparison(&mut self, part: &Part) -> Vec<Bound> {
        let kernel = self.kernel;
        let Some(op) = kernel.def_op(part.value) else { return Vec::new() };
        let OpKind::CmpI { predicate } = kernel.kind(op) else { return Vec::new() };
        let sides = view::CmpI::at(kernel, op);
        let (Some(l), Some(r)) = (self.of(sides.lhs()), self.of(sides.rhs())) else { return Vec::new() };
        let (l, r) = (self.placed(&l, part), self.placed(&r, part));
        let local = |form: &AffineForm| self.axes_of(&form.poly);
        let (offset, bound, predicate) = match (&local(&l)[..], &local(&r)[..]) {
            (_, []) => (l, r, *predicate),
            ([], _) => (r, l, mirrored(*predicate)),
            _ => return Vec::new(),
        };
        let axes = self.axes_of(&offset.poly);
        if axes.len() > 1 {
            return Vec::new();
        }
        let wraps = offset.wraps.max(bound.wraps);
        let make = |side: BoundSide, bound: Poly| Bound {
            axis: axes.first().copied(),
            offset: offset.poly.clone(),
            side,
            bound,
            wraps,
            op,
        };
        let next = || bound.poly.plus(&Poly::constant(1), 1);
        // The bits of an unsigned number are those of a signed one if both are not negative; for the offset this is
        // part of the result.
        let bound_is_positive = || bound.poly.interval(|symbol| self.range(symbol)).low >= 0;
        let zero = || make(BoundSide::AtLeast, Poly::default());
        let found = match predicate {
            Predicate::Lt => vec![Some(make(BoundSide::Below, bound.poly.clone()))],
            Predicate::Le => vec![next().map(|b| make(BoundSide::Below, b))],
            Predicate::Ge => vec![Some(make(BoundSide::AtLeast, bound.poly.clone()))],
            Predicate::Gt => vec![next().map(|b| make(BoundSide::AtLeast, b))],
            Predicate::Ult if bound_is_positive() => {
                vec![Some(zero()), Some(make(BoundSide::Below, bound.poly.clone()))]
            }
            Predicate::Ule if bound_is_positive() => vec![Some(zero()), next().map(|b| make(BoundSide::Below, b))],
            _ => vec![None],
        };
        found.into_iter().collect::<Option<Vec<Bound>>>().unwrap_or_default()
    }

    /// A form in the dimensions of the whole mask.
    fn placed(&mut self, form: &AffineForm, part: &Part) -> AffineForm {
        let axes = part.axes.clone();
        self.with_dims(form.clone(), &|d| axes.get(d as usize).map(|axis| *axis as u8))
    }

    /// The dimensions along which a sum changes.
    pub fn axes_of(&self, poly: &Poly) -> Vec<usize> {
        let mut out = Vec::new();
        for symbol in poly.terms().iter().flat_map(|t| &t.symbols) {
            match symbol {
                Symbol::Dim(d) => out.push(*d as usize),
                Symbol::Wrap(number) => out.extend(self.axes_of(&self.wrap(*number).dividend.poly)),
                _ => {}
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// The bounds of the masks of all accesses, and where these accesses go, as comments in the kernel.
    pub fn print_accesses(kernel: &Kernel) -> String {
        let ranges = super::Ranges::new(kernel);
        let affine = std::cell::RefCell::new(Affine::new(kernel, &ranges));
        let text = |op: Op, name: &dyn Fn(Value) -> String| {
            let (OpKind::Load { .. } | OpKind::Store { .. }) = kernel.kind(op) else { return None };
            let mut affine = affine.borrow_mut();
            let mask = kernel.mask(op).map(|mask| affine.bounds(mask)).unwrap_or_default();
            let address = affine.address(kernel.pointer(op)?, Some(&mask));
            let mut lines = vec![match &address {
                Some(address) => address.print(&affine, name),
                None => "no address".into(),
            }];
            for bound in &mask.bounds {
                let axis = bound.axis.map_or("all".to_string(), |d| format!("d{d}"));
                let sign = if bound.side == BoundSide::Below { "<" } else { ">=" };
                let [offset, limit] = [&bound.offset, &bound.bound].map(|p| affine.poly_text(p, name));
                let wraps = super::affine::wraps_text(bound.wraps);
                lines.push(format!("{axis}: {offset} {sign} {limit}{wraps}"));
            }
            lines.extend(mask.others.iter().map(|value| format!("and {}", name(*value))));
            Some(lines.join("; "))
        };
        super::annotated(kernel, &|_, _| None, &text)
    }
}

/// The predicate with its sides exchanged.
fn mirrored(predicate: Predicate) -> Predicate {
    match predicate {
        Predicate::Lt => Predicate::Gt,
        Predicate::Le => Predicate::Ge,
        Predicate::Gt => Predicate::Lt,
        Predicate::Ge => Predicate::Le,
        Predicate::Ult => Predicate::Ugt,
        Predicate::Ule => Predicate::Uge,
        Predicate::Ugt => Predicate::Ult,
        Predicate::Uge => Predicate::Ule,
        Predicate::Eq => Predicate::Eq,
        Predicate::Ne => Predicate::Ne,
    }
}
