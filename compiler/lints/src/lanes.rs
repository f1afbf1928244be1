//! `missing-other`: lanes that a mask left out of a load take part in a reduction.
//!
//! A load with a mask and without `other` gives 0 in the other lanes. Followed forward, such a lane is 0 as long as it is
//! multiplied, cast or added to another such lane; after `exp`, or after a mean was subtracted, it is anything. A `where`
//! ends the search: the user chose. Sums of zeros are right; maxima of zeros, and sums of anything, are not, unless the mask
//! is the same all along the reduced axis.

use std::cell::OnceCell;
use std::collections::HashSet;

use cranelift_entity::SecondaryMap;
use rtc_ir::analysis::{AxisInfos, axis_info};
use rtc_ir::{Block, Kernel, Literal, Loc, Op, OpKind, Padding, Traits, Value, regions, view};
use rtc_source::{Code, Diagnostic};

use super::{About, NESTING, text};

/// The values of lanes that were not loaded. Each load without `other` is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    /// The value in the source.
    Defined,
    /// 0, because the source says so.
    Zero,
    /// 0, because nothing was said.
    ZeroOf(Op),
    /// Anything.
    OpenOf(Op),
}

impl Lanes {
    fn join(self, other: Lanes) -> Lanes {
        match (self, other) {
            (Lanes::OpenOf(op), _) | (_, Lanes::OpenOf(op)) => Lanes::OpenOf(op),
            (Lanes::ZeroOf(op), _) | (_, Lanes::ZeroOf(op)) => Lanes::ZeroOf(op),
            (Lanes::Zero, Lanes::Zero) => Lanes::Zero,
            _ => Lanes::Defined,
        }
    }

    fn is_zero(self) -> bool {
        matches!(self, Lanes::Zero | Lanes::ZeroOf(_))
    }

    fn load(self) -> Option<Op> {
        match self {
            Lanes::ZeroOf(op) | Lanes::OpenOf(op) => Some(op),
            Lanes::Defined | Lanes::Zero => None,
        }
    }

    /// The lanes after a function that is not 0 at 0.
    fn opened(self) -> Lanes {
        self.load().map_or(Lanes::Defined, Lanes::OpenOf)
    }
}

pub(super) fn check(about: &About<'_>) -> Vec<(Diagnostic, Loc)> {
    let kernel = about.kernel;
    let open = |op: &Op| view::Load::of(kernel, *op).is_some_and(|l| l.mask().is_some() && l.other().is_none());
    if !about.sites.accesses.iter().any(|(op, access)| !access.store && open(op)) {
        return Vec::new();
    }
    let mut search = Search {
        about,
        kernel,
        infos: OnceCell::new(),
        lanes: SecondaryMap::with_default(Lanes::Defined),
        found: Vec::new(),
        nesting: 0,
    };
    search.block(kernel.body());
    search.found
}

struct Search<'c, 'a> {
    about: &'c About<'a>,
    kernel: &'a Kernel,
    /// Computed for the first mask.
    infos: OnceCell<AxisInfos>,
    lanes: SecondaryMap<Value, Lanes>,
    found: Vec<(Diagnostic, Loc)>,
    nesting: u32,
}

impl Search<'_, '_> {
    fn block(&mut self, block: Block) {
        for op in self.kernel.ops(block) {
            self.op(op);
        }
    }

    fn op(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        match &data.kind {
            OpKind::Load { .. } => {
                let load = view::Load::at(kernel, op);
                let lanes = match (load.mask(), load.other()) {
                    (Some(_), None) if self.about.sites.accesses.contains_key(&op) => Lanes::ZeroOf(op),
                    (Some(_), Some(other)) => self.lanes[other],
                    _ => Lanes::Defined,
                };
                self.lanes[data.results[0]] = lanes;
            }
            // Elements outside are defined as 0 in the source, as by descriptors.
            OpKind::DescLoad {} | OpKind::DescGather {} if kernel.desc(op).is_some_and(|d| gives_zeros(kernel, d)) => {
                self.lanes[data.results[0]] = Lanes::Zero;
            }
            OpKind::BlockLoad { check, padding: Padding::Zero, .. } if !check.is_empty() => {
                self.lanes[data.results[0]] = Lanes::Zero;
            }
            OpKind::Reduce { axis } => self.combined(op, *axis),
            OpKind::Scan { axis, .. } => self.combined(op, *axis),
            kind if !regions::flow(kind).is_empty() => self.nested(op),
            _ => {
                if let [result] = data.results[..] {
                    self.lanes[result] = self.transfer(op);
                }
            }
        }
    }

    fn nested(&mut self, op: Op) {
        let kernel = self.kernel;
        let slots = regions::slots(kernel, op);
        for slot in slots.iter().filter(|slot| slot.sources[0].0 == op) {
            let entry = slot.values(kernel).next().map_or(Lanes::Defined, |value| self.lanes[value]);
            slot.targets.iter().for_each(|target| self.lanes[*target] = entry);
        }
        let depth = u32::from(regions::is_loop(kernel.kind(op)));
        self.nesting += depth;
        for _ in 0..if depth == 0 || self.nesting > NESTING { 1 } else { 2 } {
            kernel.op(op).blocks.iter().for_each(|block| self.block(*block));
            for slot in &slots {
                let lanes = slot.values(kernel).map(|value| self.lanes[value]).reduce(Lanes::join);
                slot.targets.iter().for_each(|target| self.lanes[*target] = lanes.unwrap_or(Lanes::Defined));
            }
        }
        self.nesting -= depth;
    }

    fn transfer(&self, op: Op) -> Lanes {
        let data = self.kernel.op(op);
        let lanes = |i: usize| self.lanes[data.operands[i]];
        match &data.kind {
            OpKind::Constant { value: Literal::Int(0) } => Lanes::Zero,
            OpKind::Constant { value: Literal::Float(bits) } if f64::from_bits(*bits) == 0.0 => Lanes::Zero,
            OpKind::Constant { .. } | OpKind::Select {} => Lanes::Defined,
            // A truth value as a number is a mask to multiply by.
            OpKind::UIToFp { .. } | OpKind::ExtUI { .. } if lanes(0) == Lanes::Defined => {
                let ty = self.kernel.value_operand(op).map(|value| self.kernel.value_type(value));
                let narrow = ty.and_then(|ty| ty.elem()?.num()).is_some_and(|s| s.bits() == 1);
                if narrow { Lanes::Zero } else { Lanes::Defined }
            }
            OpKind::MulF {} | OpKind::MulI {} | OpKind::AndI {} => match (lanes(0), lanes(1)) {
                (l, r) if l.is_zero() || r.is_zero() => l.load().or(r.load()).map_or(Lanes::Zero, Lanes::ZeroOf),
                (l, r) => l.join(r),
            },
            OpKind::DivF {} | OpKind::DivFRn {} | OpKind::DivFApprox {} if lanes(0).is_zero() => {
                match lanes(1).load() {
                    Some(load) => Lanes::OpenOf(load),
                    None => lanes(0),
                }
            }
            OpKind::AddF {}
            | OpKind::SubF {}
            | OpKind::AddI {}
            | OpKind::SubI {}
            | OpKind::MaxNum {}
            | OpKind::Maximum {}
            | OpKind::MinNum {}
            | OpKind::Minimum {} => match (lanes(0), lanes(1)) {
                (l, r) if l.is_zero() && r.is_zero() => l.join(r),
                (l, r) => l.join(r).opened(),
            },
            OpKind::Splat {}
            | OpKind::CastF { .. }
            | OpKind::FpToSI { .. }
            | OpKind::FpToUI { .. }
            | OpKind::SIToFp { .. }
            | OpKind::UIToFp { .. }
            | OpKind::ExtSI { .. }
            | OpKind::ExtUI { .. }
            | OpKind::TruncI { .. }
            | OpKind::Bitcast { .. }
            | OpKind::NegF {}
            | OpKind::AbsF {}
            | OpKind::AbsI {}
            | OpKind::Sqrt { .. }
            | OpKind::SqrtRn {}
            | OpKind::SinApprox {}
            | OpKind::TanhApprox {}
            | OpKind::ConvertLayout {}
            | OpKind::Hint { .. } => lanes(0),
            kind if kind.spec().traits.has(Traits::ELEMENTWISE) => {
                data.operands.iter().map(|v| self.lanes[*v]).fold(Lanes::Defined, Lanes::join).opened()
            }
            // In another shape the lanes are not followed.
            _ => Lanes::Defined,
        }
    }

    /// A reduction or scan: reports what it should not have seen.
    fn combined(&mut self, op: Op, axis: u32) {
        let kernel = self.kernel;
        let neutral = zero_is_neutral(kernel, kernel.op(op).blocks[0]);
        for value in kernel.variadic(op) {
            let lanes = self.lanes[*value];
            let Some(load) = lanes.load() else { continue };
            if lanes.is_zero() && neutral {
                continue;
            }
            let Some(mask) = kernel.mask(load) else { continue };
            if self.is_one(mask, axis as usize) {
                continue;
            }
            self.found.push((self.diagnostic(op, load, lanes.is_zero()), kernel.op(load).loc));
            return;
        }
    }

    /// Whether the elements along an axis are all equal.
    fn is_one(&self, value: Value, axis: usize) -> bool {
        let size = self.kernel.value_type(value).shape().and_then(|shape| shape.get(axis).copied()).unwrap_or(1);
        let infos = self.infos.get_or_init(|| axis_info(self.kernel));
        infos.axis(value, axis).constancy >= u64::from(size)
    }

    fn diagnostic(&self, op: Op, load: Op, zero: bool) -> Diagnostic {
        let (about, kernel) = (self.about, self.kernel);
        let place = |op: Op| kernel.loc(kernel.op(op).loc).span.unwrap_or_default();
        let access = &about.sites.accesses[&load];
        let span = place(load);
        let mask = access.mask.and_then(|m| text(about, m)).unwrap_or("mask");
        let mut d = Diagnostic::warning(
            Code::MISSING_OTHER,
            span,
            "a `load` without `other` leaves lanes that a reduction counts",
        )
        .primary(format!("where `{mask}` is false the lanes are 0"));
        if place(op) != span {
            let what = if zero { "0 takes part here" } else { "what became of the 0 takes part here" };
            d = d.label(place(op), what);
        }
        if zero {
            d.help(
                "pass the neutral element: `other=-float(\"inf\")` for a maximum, `other=float(\"inf\")` for a minimum",
            )
        } else {
            d.help(format!("put the neutral element there before reducing: `tl.where({mask}, x, 0.0)`"))
        }
    }
}

/// Whether combining with 0 changes nothing: sums, disjunctions.
fn zero_is_neutral(kernel: &Kernel, combine: Block) -> bool {
    kernel.ops(combine).all(|op| {
        let kind = kernel.kind(op);
        kind.spec().traits.has(Traits::TERMINATOR)
            || matches!(
                kind,
                OpKind::AddF {} | OpKind::AddI {} | OpKind::OrI {} | OpKind::XorI {} | OpKind::CastF { .. }
            )
    })
}

/// Whether what a descriptor gives outside of its tensor is 0.
fn gives_zeros(kernel: &Kernel, desc: Value) -> bool {
    let (mut seen, mut work) = (HashSet::new(), vec![desc]);
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        let sources = regions::sources(kernel, value);
        if !sources.is_empty() {
            work.extend(sources);
        } else if view::MakeDesc::defining(kernel, value).is_none_or(|made| made.nan().is_some()) {
            return false;
        }
    }
    true
}
