//! Values as polynomials of constants, program ids, loop indices, indices in the tile and arguments.
//!
//! ```text
//! %offsets = pid * 64 + arange(0, 64)                     64*program(0) + d0
//! %a + offsets[:, None] * stride + k[None, :]             %a + 64*program(0)*%stride + d0*%stride + d1
//! ptr += 32 * stride in a loop                            start + 32*round*%stride
//! (pid * 64 + arange(0, 64)) % n                          the remainder as one symbol, which knows what it is of
//! ```
//!
//! Integers wrap, so an [`AffineForm`] records what it equals: the value itself if nothing overflows, which the ranges
//! prove; otherwise its low bits. A scalar without further information is a symbol, a tile without further information
//! has no form. Forms are computed on demand, once each; loop-carried values are derived from their start and step, so
//! that no loop is iterated.

use cranelift_entity::SecondaryMap;
use indexmap::IndexSet;
use smallvec::SmallVec;

use super::interval::Interval;
use super::poly::{Poly, Symbol};
use super::ranges::{Ranges, Wraps, is_integer, width};
use crate::{Block, Elem, Kernel, Literal, Op, OpKind, Type, Value, ValueDef, view};

/// A value as a sum of products.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AffineForm {
    /// For pointers: what the offset is added to, an argument or another scalar pointer.
    pub pointer: Option<Value>,
    /// The sum; for pointers the offset in elements.
    pub poly: Poly,
    /// How many low bits of the value, or of a pointer's offset in bytes, the polynomial represents.
    pub bits: u32,
    /// If never, the sum is the value as a signed number, or the pointer. Otherwise some integer that it was computed from
    /// may have wrapped around, and only the low bits are known.
    pub wraps: Wraps,
}

/// A remainder of tiles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wrap {
    /// The dividend.
    pub dividend: AffineForm,
    /// By what; the same for the whole tile.
    pub divisor: AffineForm,
    /// Whether it has the sign of the dividend.
    pub signed: bool,
    /// From where to where it goes.
    pub interval: [i128; 2],
}

/// The forms of values of a kernel.
pub struct Affine<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) ranges: &'k Ranges<'k>,
    forms: SecondaryMap<Value, State>,
    wraps: IndexSet<Wrap>,
    /// Whether a scalar that may have wrapped on its way is a symbol of its own.
    exact: bool,
}

#[derive(Clone, Default)]
enum State {
    #[default]
    New,
    /// Being computed: a request for it now is a cycle.
    Open,
    Done(Option<Box<AffineForm>>),
}

impl<'k> Affine<'k> {
    /// Nothing is computed yet.
    pub fn new(kernel: &'k Kernel, ranges: &'k Ranges<'k>) -> Affine<'k> {
        Affine { kernel, ranges, forms: SecondaryMap::new(), wraps: IndexSet::new(), exact: false }
    }

    /// The same; a scalar integer that may overflow is a symbol of its own, so that forms are valid regardless of its
    /// value.
    /// hold whatever it is.
    pub fn exact(kernel: &'k Kernel, ranges: &'k Ranges<'k>) -> Affine<'k> {
        Affine { exact: true, ..Affine::new(kernel, ranges) }
    }

    /// The kernel.
    pub fn kernel(&self) -> &'k Kernel {
        self.kernel
    }

    /// The form of an integer, a pointer or a tile of such; `None` for a tile that is no such sum.
    pub fn of(&mut self, value: Value) -> Option<AffineForm> {
        let mut stack = vec![value];
        while let Some(top) = stack.last().copied() {
            match self.forms[top] {
                State::Done(_) => {
                    stack.pop();
                }
                State::New => {
                    self.forms[top] = State::Open;
                    let asked = self.asks(top);
                    stack.extend(asked.into_iter().filter(|v| matches!(self.forms[*v], State::New)));
                }
                State::Open => {
                    let (form, own) = (self.make(top), self.opaque(top));
                    let wraps = |form: &AffineForm| form.wraps == Wraps::Possible && form.pointer.is_none();
                    let form = form.filter(|form| !(self.exact && own.is_some() && wraps(form))).or(own);
                    self.forms[top] = State::Done(form.map(Box::new));
                    stack.pop();
                }
            }
        }
        self.known(value)
    }

    /// The remainder behind a symbol.
    pub fn wrap(&self, number: u32) -> &Wrap {
        &self.wraps[number as usize]
    }

    /// From where to where a symbol goes.
    pub fn range(&self, symbol: Symbol) -> Interval {
        let grid = |axis: u8| if axis == 0 { (1 << 31) - 1 } else { (1 << 16) - 1 };
        match symbol {
            Symbol::Dim(_) => Interval::new(0, i128::from(crate::MAX_TILE_ELEMENTS) - 1),
            Symbol::Round(op) => Interval::new(0, (self.rounds(op) - 1).max(0)),
            Symbol::Rounds(op) => Interval::new(0, self.rounds(op)),
            Symbol::Program(axis) => Interval::new(0, grid(axis) - 1),
            Symbol::Programs(axis) => Interval::new(1, grid(axis)),
            Symbol::Scalar(value) => self.ranges.of(value),
            Symbol::Wrap(number) => {
                let [low, high] = self.wrap(number).interval;
                Interval::new(low, high)
            }
        }
    }

    /// The names of symbols for printers: the dimension `d0`, the iteration `round(%index)`.
    pub fn symbol_name(&self, symbol: Symbol, name: &dyn Fn(Value) -> String) -> String {
        let index = |op: Op| name(self.kernel.block(self.kernel.op(op).blocks[0]).args[0]);
        match symbol {
            Symbol::Dim(axis) => format!("d{axis}"),
            Symbol::Round(op) => format!("round({})", index(op)),
            Symbol::Rounds(op) => format!("rounds({})", index(op)),
            Symbol::Program(axis) => format!("program({axis})"),
            Symbol::Programs(axis) => format!("programs({axis})"),
            Symbol::Scalar(value) => name(value),
            Symbol::Wrap(number) => {
                let wrap = self.wrap(number);
                format!(
                    "(({}) % {})",
                    self.poly_text(&wrap.dividend.poly, name),
                    self.poly_text(&wrap.divisor.poly, name)
                )
            }
        }
    }

    /// The text of a sum.
    pub fn poly_text(&self, poly: &Poly, name: &dyn Fn(Value) -> String) -> String {
        poly.print(&|symbol| self.symbol_name(symbol, name))
    }

    /// The text of a form.
    pub fn form_text(&self, form: &AffineForm, name: &dyn Fn(Value) -> String) -> String {
        let mut out = self.poly_text(&form.poly, name);
        if let Some(pointer) = form.pointer {
            out = if form.poly.value() == Some(0) { name(pointer) } else { format!("{} + {out}", name(pointer)) };
        }
        if form.wraps == Wraps::Never { out } else { format!("{out} in {} bits{}", form.bits, wraps_text(form.wraps)) }
    }

    /// The kernel with the forms of all integers and pointers that are no symbols of their own.
    pub fn print(kernel: &Kernel) -> String {
        let ranges = Ranges::new(kernel);
        let affine = std::cell::RefCell::new(Affine::new(kernel, &ranges));
        let text = |value: Value, name: &dyn Fn(Value) -> String| {
            let ty = kernel.value_type(value);
            let wanted = is_integer(ty) && width(ty) > 1 || matches!(ty.elem(), Some(Elem::Ptr(_)));
            let form = wanted.then(|| affine.borrow_mut().of(value))?;
            let affine = affine.borrow();
            match form {
                None => Some("no form".into()),
                Some(form) if Some(&form) == affine.opaque(value).as_ref() => None,
                Some(form) => Some(affine.form_text(&form, name)),
            }
        };
        super::annotated(kernel, &text, &|_, _| None)
    }

    /// The most iterations of a loop.
    fn rounds(&self, op: Op) -> i128 {
        let OpKind::ForRange { unsigned: false, .. } = self.kernel.kind(op) else { return i128::from(u64::MAX) };
        let range = view::ForRange::at(self.kernel, op);
        let [lower, upper, step] = [range.lower(), range.upper(), range.step()].map(|value| self.ranges.of(value));
        let step = step.low.max(1);
        ((upper.high - lower.low + step - 1) / step).max(0)
    }

    /// The form that a value has been found to have; in a circle, of a value of its own.
    pub(super) fn known(&self, value: Value) -> Option<AffineForm> {
        match &self.forms[value] {
            State::Done(form) => form.as_deref().cloned(),
            State::New | State::Open => self.opaque(value),
        }
    }

    /// A scalar as a symbol.
    pub(super) fn opaque(&self, value: Value) -> Option<AffineForm> {
        let ty = self.kernel.value_type(value);
        let Type::Scalar(elem) = ty else { return None };
        match elem {
            Elem::Ptr(_) => {
                Some(AffineForm { pointer: Some(value), poly: Poly::default(), bits: 64, wraps: Wraps::Never })
            }
            Elem::Num(s) if s.is_int() => Some(whole(Poly::symbol(Symbol::Scalar(value)), s.bits())),
            Elem::Num(_) => None,
        }
    }

    /// The values whose forms make that of `value`.
    fn asks(&self, value: Value) -> SmallVec<[Value; 4]> {
        match self.kernel.value(value).def {
            ValueDef::Result(op, _) => {
                let data = self.kernel.op(op);
                match &data.kind {
                    OpKind::AddI {} | OpKind::SubI {} | OpKind::MulI {} | OpKind::ShlI {} | OpKind::AddPtr {} => {
                        data.operands.clone()
                    }
                    OpKind::RemSI {} | OpKind::RemUI {} if self.kernel.value_type(value).shape().is_some() => {
                        data.operands.clone()
                    }
                    OpKind::ExtSI { .. } | OpKind::ExtUI { .. } | OpKind::TruncI { .. } => data.operands.clone(),
                    kind if kind.forwards().is_some() => data.operands.clone(),
                    OpKind::ForRange { .. } => self.moved(value).map(|m| m.values()).unwrap_or_default(),
                    _ => SmallVec::new(),
                }
            }
            ValueDef::Arg(block, index) => match self.counted(block) {
                Some(op) if index == 0 => {
                    let range = view::ForRange::at(self.kernel, op);
                    SmallVec::from_slice(&[range.lower(), range.upper(), range.step()])
                }
                Some(_) => self.moved(value).map(|m| m.values()).unwrap_or_default(),
                None => SmallVec::new(),
            },
        }
    }

    /// The `for_range` that a block is the body of.
    fn counted(&self, block: Block) -> Option<Op> {
        let op = self.kernel.block(block).parent?;
        matches!(self.kernel.kind(op), OpKind::ForRange { .. }).then_some(op)
    }

    /// The result for an operation, given the forms of the operands that `asks` names.
    fn make(&mut self, value: Value) -> Option<AffineForm> {
        let kernel = self.kernel;
        let op = match kernel.value(value).def {
            ValueDef::Result(op, _) => op,
            ValueDef::Arg(block, 0) if self.counted(block).is_some() => return self.counter(self.counted(block)?),
            ValueDef::Arg(block, _) => {
                self.counted(block)?;
                return self.carried(value, Symbol::Round);
            }
        };
        let data = kernel.op(op);
        let ty = kernel.value_type(value);
        let bits = width(ty);
        if is_integer(ty) && bits == 1 {
            return None;
        }
        let source = |affine: &Affine<'_>| affine.known(kernel.forwarded(op)?);
        let sides = |affine: &Affine<'_>| {
            let [l, r] = kernel.sides(op)?;
            Some((affine.known(l)?, affine.known(r)?))
        };
        match &data.kind {
            OpKind::Constant { value: Literal::Int(i) } if is_integer(ty) => {
                let unused = 64 - bits;
                Some(whole(Poly::constant(((i << unused) >> unused).into()), bits))
            }
            OpKind::ProgramId { axis } => Some(whole(Poly::symbol(Symbol::Program(*axis as u8)), bits)),
            OpKind::NumPrograms { axis } => Some(whole(Poly::symbol(Symbol::Programs(*axis as u8)), bits)),
            OpKind::Arange { start, end } => {
                // A dimension of one element can become one of many, along which nothing changes.
                let place = if end - start == 1 { Poly::default() } else { Poly::symbol(Symbol::Dim(0)) };
                let poly = place.plus(&Poly::constant((*start).into()), 1)?;
                Some(whole(poly, bits))
            }
            OpKind::Splat {} | OpKind::ConvertLayout {} | OpKind::Hint { .. } => source(self),
            OpKind::Unsplat {} => {
                let form = source(self)?;
                Some(self.with_dims(form, &|_| None))
            }
            OpKind::ExpandDims { axis } => {
                let (form, new) = (source(self)?, *axis as u8);
                Some(self.with_dims(form, &|d| Some(if d >= new { d + 1 } else { d })))
            }
            OpKind::Broadcast {} => {
                let from = kernel.value_type(view::Broadcast::at(kernel, op).source()).shape()?;
                let form = source(self)?;
                Some(self.with_dims(form, &|d| (from[d as usize] != 1).then_some(d)))
            }
            OpKind::Trans { order } => {
                let form = source(self)?;
                Some(self.with_dims(form, &|d| order.iter().position(|o| *o == u32::from(d)).map(|i| i as u8)))
            }
            OpKind::Reshape { reorder: false } => {
                let (from, to) = (kernel.value_type(view::Reshape::at(kernel, op).source()).shape()?, ty.shape()?);
                let long = |shape: crate::Shape| {
                    (0..shape.rank()).filter(|i| shape[*i] != 1).map(|i| (i as u8, shape[i])).collect::<Vec<_>>()
                };
                let (from, to) = (long(from), long(to));
                let same = from.len() == to.len() && from.iter().zip(&to).all(|(f, t)| f.1 == t.1);
                let form = source(self).filter(|_| same)?;
                let place = |d: u8| from.iter().position(|f| f.0 == d).map(|i| to[i].0);
                Some(self.with_dims(form, &place))
            }
            OpKind::ExtSI { .. } => {
                let narrow = view::ExtSI::at(kernel, op).value();
                self.known(narrow).filter(|_| width(kernel.value_type(narrow)) > 1).map(|form| widened(form, bits))
            }
            OpKind::ExtUI { .. } => {
                let narrow = view::ExtUI::at(kernel, op).value();
                let form = self.known(narrow)?;
                let sign = self.ranges.of(narrow).low < 0;
                Some(if sign { AffineForm { wraps: Wraps::Possible, ..form } } else { widened(form, bits) })
            }
            OpKind::TruncI { .. } => {
                let wide = view::TruncI::at(kernel, op).value();
                let form = self.known(wide)?;
                let fits = self.ranges.of(wide).fits(bits);
                // Of a number about which nothing more is known, the narrow form has a range.
                if fits && form.poly == Poly::symbol(Symbol::Scalar(wide)) {
                    return None;
                }
                let wraps = if fits { form.wraps } else { Wraps::Possible };
                Some(AffineForm { bits: form.bits.min(bits), wraps, ..form })
            }
            OpKind::AddI {} => {
                let (l, r) = sides(self)?;
                self.computed(op, l.poly.plus(&r.poly, 1)?, &l, &r)
            }
            OpKind::SubI {} => {
                let (l, r) = sides(self)?;
                self.computed(op, l.poly.plus(&r.poly, -1)?, &l, &r)
            }
            OpKind::MulI {} => {
                let (l, r) = sides(self)?;
                self.computed(op, l.poly.times(&r.poly)?, &l, &r)
            }
            OpKind::ShlI {} => {
                let (l, r) = sides(self)?;
                let count = r.poly.value().and_then(|c| u32::try_from(c).ok()).filter(|c| *c < bits)?;
                self.computed(op, l.poly.times(&Poly::constant(1 << count))?, &l, &r)
            }
            OpKind::AddPtr {} => {
                let sum = view::AddPtr::at(kernel, op);
                let (pointer, offset) = (self.known(sum.pointer())?, self.known(sum.offset())?);
                let poly = pointer.poly.plus(&offset.poly, 1)?;
                Some(moved_pointer(pointer, poly, &offset))
            }
            OpKind::RemSI {} | OpKind::RemUI {} if ty.shape().is_some() => {
                let (dividend, divisor) = sides(self)?;
                let local = |s: Symbol| matches!(s, Symbol::Dim(_) | Symbol::Wrap(_));
                if divisor.poly.mentions(local) {
                    return None;
                }
                let interval = self.ranges.of(value);
                let signed = matches!(data.kind, OpKind::RemSI {});
                let wrap = Wrap { dividend, divisor, signed, interval: [interval.low, interval.high] };
                Some(whole(Poly::symbol(self.intern(wrap)), bits))
            }
            OpKind::ForRange { .. } => self.carried(value, Symbol::Rounds),
            _ => None,
        }
    }

    /// The form of a sum or product.
    fn computed(&self, op: Op, poly: Poly, l: &AffineForm, r: &AffineForm) -> Option<AffineForm> {
        let ty = self.kernel.value_type(self.kernel.result(op, 0));
        let bits = width(ty).min(l.bits).min(r.bits);
        let wraps =
            if self.proven(&poly, ty, bits) { Wraps::Never } else { l.wraps.max(r.wraps).max(self.ranges.wraps(op)) };
        Some(AffineForm { pointer: None, poly, bits, wraps })
    }

    /// Whether a sum with all bits known stays within the type.
    pub(super) fn proven(&self, poly: &Poly, ty: Type, bits: u32) -> bool {
        let size = |d: u8| ty.shape().map_or(1, |s| i128::from(s[d as usize]));
        let range = |symbol: Symbol| match symbol {
            Symbol::Dim(d) => Interval::new(0, size(d) - 1),
            symbol => self.range(symbol),
        };
        bits == width(ty) && poly.interval(range).fits(bits)
    }

    /// A form in other dimensions; those without a place are 0.
    pub(super) fn with_dims(&mut self, form: AffineForm, place: &dyn Fn(u8) -> Option<u8>) -> AffineForm {
        let poly = form.poly.mapped(|symbol| match symbol {
            Symbol::Dim(d) => place(d).map(Symbol::Dim),
            Symbol::Wrap(number) => {
                let wrap = self.wrap(number).clone();
                let dividend = self.with_dims(wrap.dividend, place);
                Some(self.intern(Wrap { dividend, ..wrap }))
            }
            symbol => Some(symbol),
        });
        AffineForm { poly, ..form }
    }

    fn intern(&mut self, wrap: Wrap) -> Symbol {
        Symbol::Wrap(self.wraps.insert_full(wrap).0 as u32)
    }
}

/// The printed text of an overflow.
pub(super) fn wraps_text(wraps: Wraps) -> &'static str {
    match wraps {
        Wraps::Never => "",
        Wraps::Unexpected => ", which may wrap in huge launches",
        Wraps::Possible => ", which may wrap",
    }
}

/// A form that is the whole value.
pub(super) fn whole(poly: Poly, bits: u32) -> AffineForm {
    AffineForm { pointer: None, poly, bits, wraps: Wraps::Never }
}

/// The same number in more bits; if it may have wrapped, these are not known.
fn widened(form: AffineForm, bits: u32) -> AffineForm {
    if form.wraps == Wraps::Never { AffineForm { bits, ..form } } else { form }
}

/// A pointer at another offset, by which it was moved.
pub(super) fn moved_pointer(pointer: AffineForm, poly: Poly, by: &AffineForm) -> AffineForm {
    // All bits of a 64-bit offset count; a narrower one is extended and must not have wrapped.
    let whole = by.bits == 64 || by.wraps == Wraps::Never;
    let bits = if whole { pointer.bits } else { pointer.bits.min(by.bits) };
    let wraps = if whole { pointer.wraps } else { pointer.wraps.max(by.wraps) };
    AffineForm { poly, bits, wraps, ..pointer }
}
