//! The ranges of integers in one launch, as polynomials of its integer arguments and the grid.
//!
//! [`super::Ranges`] has constants only; here `row * stride` ranges from `0` to `grid.0 * stride - stride`. Such an
//! answer depends on conditions, which are collected: that polynomials are not negative (`stride`, here), including
//! those that exclude overflow (`2147483647 - (grid.0 * stride - stride)`). A launch can check all of them.

use std::collections::HashMap;

use rtc_abi::{ParamType, ValueType};

use super::BoundSide;
use super::affine::Affine;
use super::poly::{Poly, Symbol};
use super::ranges::{Ranges, Wraps, width};
use super::sum::Sum;
use crate::{Block, Elem, Hidden, Kernel, Op, OpKind, Shape, Type, Value, ValueDef, regions, view};

/// Why nothing is known.
pub type Unknown = String;

/// From where to where a number goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRange {
    /// It is at least this,
    pub low: Sum,
    /// and at most this.
    pub high: Sum,
}

/// The step limit of all queries about one kernel.
const MAX_STEPS: u32 = 20_000;
/// Numbers that are computed from each other by more operations are given up.
const MAX_DEPTH: u32 = 40;

/// Finds spans.
pub struct LaunchRanges<'a, 'k> {
    kernel: &'k Kernel,
    ranges: &'a Ranges<'k>,
    /// The forms of values.
    pub affine: Affine<'a>,
    /// The polynomials that must not be negative for the answers since the last [`LaunchRanges::take_needs`].
    needs: Vec<Sum>,
    /// Values whose computation has been gone through since then.
    visited: Vec<Value>,
    /// The ranges of scalars that have been asked for, with their conditions: most are those of several addresses.
    scalars: HashMap<Value, (LaunchRange, Vec<Sum>)>,
    steps: u32,
    depth: u32,
}

fn is_signed(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Value(ValueType::Scalar(dtype)) if dtype.is_signed())
}

fn long<T>(sum: Option<T>) -> Result<T, Unknown> {
    sum.ok_or_else(|| "the sizes are sums of too many products".into())
}

impl<'a, 'k: 'a> LaunchRanges<'a, 'k> {
    /// For a kernel and its ranges.
    pub fn new(kernel: &'k Kernel, ranges: &'a Ranges<'k>) -> LaunchRanges<'a, 'k> {
        let affine = Affine::new(kernel, ranges);
        let (needs, visited, scalars) = (Vec::new(), Vec::new(), HashMap::new());
        LaunchRanges { kernel, ranges, affine, needs, visited, scalars, steps: 0, depth: 0 }
    }

    /// The conditions of all answers since the last call.
    pub fn take_needs(&mut self) -> Vec<Sum> {
        self.visited.clear();
        std::mem::take(&mut self.needs)
    }

    /// Conditions so far, to go back to by [`LaunchRanges::forget`].
    pub fn mark(&self) -> (usize, usize) {
        (self.needs.len(), self.visited.len())
    }

    /// Drops the conditions since a mark.
    pub fn forget(&mut self, (needs, visited): (usize, usize)) {
        self.needs.truncate(needs);
        self.visited.truncate(visited);
    }

    /// Notes that a sum must not be negative.
    pub fn need(&mut self, sum: Sum) -> Result<(), Unknown> {
        match sum.value() {
            Some(number) if number < 0 => Err("it would begin before the pointer, or wrap around".into()),
            Some(_) => Ok(()),
            // A launch without programs runs nothing.
            None if (0..3)
                .any(|axis| Some(&sum) == Sum::named(format!("grid.{axis}")).plus(&Sum::constant(1), -1).as_ref()) =>
            {
                Ok(())
            }
            None => {
                self.needs.push(sum);
                Ok(())
            }
        }
    }

    /// Assumptions of the kernel become conditions.
    pub fn assumed(&mut self, condition: Value) -> Result<(), Unknown> {
        let mask = self.affine.bounds(condition);
        if !mask.others.is_empty() {
            return Err("the kernel assumes what a launch cannot check".into());
        }
        for bound in mask.bounds {
            self.compared(bound.op)?;
            let (offset, limit) = (self.of_poly(&bound.offset, None)?, self.of_poly(&bound.bound, None)?);
            let need = match bound.side {
                BoundSide::Below => limit.low.plus(&offset.high, -1).and_then(|s| s.plus(&Sum::constant(1), -1)),
                BoundSide::AtLeast => offset.low.plus(&limit.high, -1),
            };
            self.need(long(need)?)?;
        }
        Ok(())
    }

    /// Makes sure that both sides of a comparison are the numbers that their forms say.
    pub fn compared(&mut self, op: Op) -> Result<(), Unknown> {
        for index in 0..2 {
            self.exact(self.kernel.operand(op, index))?;
        }
        Ok(())
    }

    /// Makes sure that an integer is the number that its form says: that it does not wrap, nor what it is computed from
    /// where that is widened.
    pub fn exact(&mut self, value: Value) -> Result<(), Unknown> {
        self.computed_from(value)?;
        let ty = self.kernel.value_type(value);
        let form = self.affine.of(value).ok_or("an index is no sum of products")?;
        let bits = width(ty);
        if form.wraps == Wraps::Never && form.bits == bits {
            return Ok(());
        }
        let span = self.of_poly(&form.poly, ty.shape())?;
        let most = Sum::constant((1i128 << (bits - 1)) - 1);
        // For 64 bits, the least number is given up so that the sum can be written.
        let room = if bits == 64 { most.clone() } else { Sum::constant(1i128 << (bits - 1)) };
        self.need(long(most.plus(&span.high, -1))?)?;
        self.need(long(room.plus(&span.low, 1))?)
    }

    /// Goes through what an integer or a pointer is computed from, as far as forms follow it: wherever bits are added to a
    /// number, it must be exact.
    pub fn computed_from(&mut self, value: Value) -> Result<(), Unknown> {
        self.step()?;
        if self.visited.contains(&value) {
            return Ok(());
        }
        self.visited.push(value);
        let kernel = self.kernel;
        if self.affine.of(value).is_some_and(|form| form.poly == Poly::symbol(Symbol::Scalar(value))) {
            // No form follows what it is computed from; `of_scalar` does.
            return Ok(());
        }
        let op = match kernel.value(value).def {
            ValueDef::Result(op, _) => op,
            ValueDef::Arg(block, _) => return self.handed(value, block),
        };
        let data = kernel.op(op);
        let operands = &data.operands;
        match &data.kind {
            OpKind::AddPtr {} => {
                let sum = view::AddPtr::at(kernel, op);
                self.computed_from(sum.pointer())?;
                self.exact(sum.offset())
            }
            OpKind::AddI {} | OpKind::SubI {} | OpKind::MulI {} | OpKind::ShlI {} => {
                operands.iter().try_for_each(|v| self.computed_from(*v))
            }
            OpKind::ExtSI { .. } => self.exact(view::ExtSI::at(kernel, op).value()),
            OpKind::ExtUI { .. } => {
                let narrow = view::ExtUI::at(kernel, op).value();
                self.exact(narrow)?;
                self.not_negative(narrow)
            }
            OpKind::RemSI {} | OpKind::RemUI {} if kernel.value_type(value).shape().is_some() => {
                operands.iter().try_for_each(|v| self.exact(*v))
            }
            OpKind::TruncI { .. } => self.computed_from(view::TruncI::at(kernel, op).value()),
            _ if let Some(source) = kernel.forwarded(op) => self.computed_from(source),
            OpKind::ForRange { .. } => {
                regions::sources(kernel, value).into_iter().try_for_each(|v| self.computed_from(v))
            }
            _ => Ok(()),
        }
    }

    /// The range of a polynomial; `shape` is that of its tile.
    pub fn of_poly(&mut self, poly: &Poly, shape: Option<Shape>) -> Result<LaunchRange, Unknown> {
        self.step()?;
        let (mut low, mut high) = (Sum::default(), Sum::default());
        for term in poly.terms() {
            let spans = term
                .symbols
                .iter()
                .map(|s| self.of_symbol(*s, shape))
                .collect::<Result<Vec<LaunchRange>, Unknown>>()?;
            let exact = spans.iter().all(|span| span.low == span.high);
            if spans.len() > 1 && !exact {
                // Products grow with their factors where these are not negative.
                spans.iter().try_for_each(|span| self.need(span.low.clone()))?;
            }
            let product = |side: fn(&LaunchRange) -> &Sum| {
                spans.iter().try_fold(Sum::constant(1), |product, span| product.times(side(span)))
            };
            let (least, most) = (long(product(|s| &s.low))?, long(product(|s| &s.high))?);
            let (least, most) = if term.factor < 0 { (most, least) } else { (least, most) };
            low = long(low.plus(&least, term.factor))?;
            high = long(high.plus(&most, term.factor))?;
        }
        Ok(LaunchRange { low, high })
    }

    /// The span of a scalar integer.
    fn of_value(&mut self, value: Value) -> Result<LaunchRange, Unknown> {
        let form = self.affine.of(value).ok_or("an index is no sum of products")?;
        if form.poly == Poly::symbol(Symbol::Scalar(value)) {
            return self.of_scalar(value);
        }
        self.exact(value)?;
        self.of_poly(&form.poly, None)
    }

    fn of_symbol(&mut self, symbol: Symbol, shape: Option<Shape>) -> Result<LaunchRange, Unknown> {
        let one = Sum::constant(1);
        let grid = |axis: u8| Sum::named(format!("grid.{axis}"));
        let from_zero = |high: Sum| LaunchRange { low: Sum::default(), high };
        if matches!(symbol, Symbol::Program(_) | Symbol::Programs(_)) && self.kernel.persistent.is_some() {
            return Err("the kernel loops over programs by itself".into());
        }
        Ok(match symbol {
            Symbol::Dim(axis) => {
                let size = shape.map_or(1, |s| i128::from(s[axis as usize]));
                from_zero(Sum::constant(size - 1))
            }
            Symbol::Program(axis) => from_zero(long(grid(axis).plus(&one, -1))?),
            Symbol::Programs(axis) => LaunchRange { low: grid(axis), high: grid(axis) },
            Symbol::Round(op) => {
                let (length, step) = self.loop_length(op)?;
                from_zero(long(length.plus(&one, -1).and_then(|s| s.quotient(&step)))?)
            }
            Symbol::Rounds(op) => {
                let (length, step) = self.loop_length(op)?;
                let whole = length.plus(&step, 1).and_then(|s| s.plus(&one, -1)).and_then(|s| s.quotient(&step));
                from_zero(long(whole.and_then(|s| s.greater(&Sum::default())))?)
            }
            Symbol::Scalar(value) => self.deeper(|spans| spans.of_scalar(value))?,
            Symbol::Wrap(number) => {
                let wrap = self.affine.wrap(number).clone();
                let dividend = self.deeper(|spans| spans.of_poly(&wrap.dividend.poly, shape))?;
                let divisor = self.of_poly(&wrap.divisor.poly, None)?;
                self.need(dividend.low)?;
                self.need(long(divisor.low.plus(&one, -1))?)?;
                from_zero(long(divisor.high.plus(&one, -1))?)
            }
        })
    }

    /// From the lower to the upper bound of a loop at most, and its step at least.
    fn loop_length(&mut self, op: Op) -> Result<(Sum, Sum), Unknown> {
        let OpKind::ForRange { unsigned: false, .. } = self.kernel.kind(op) else {
            return Err("a loop counts without sign".into());
        };
        let range = view::ForRange::at(self.kernel, op);
        let bounds = [range.lower(), range.upper(), range.step()];
        let [lower, upper, step] = bounds.map(|value| self.deeper(|spans| spans.of_value(value)));
        let (lower, upper, step) = (lower?, upper?, step?);
        self.need(long(step.low.plus(&Sum::constant(1), -1))?)?;
        Ok((long(upper.high.plus(&lower.low, -1))?, step.low))
    }

    /// A scalar that is a symbol of its own.
    fn of_scalar(&mut self, value: Value) -> Result<LaunchRange, Unknown> {
        if let Some((range, needs)) = self.scalars.get(&value) {
            self.needs.extend(needs.iter().cloned());
            return Ok(range.clone());
        }
        // All of its conditions are wanted, also those that the answer so far has already.
        let before = (std::mem::take(&mut self.needs), std::mem::take(&mut self.visited));
        let range = self.compute_scalar(value);
        let own = std::mem::replace(&mut self.needs, before.0);
        self.visited = before.1;
        self.needs.extend(own.iter().cloned());
        if let Ok(range) = &range {
            self.scalars.insert(value, (range.clone(), own));
        }
        range
    }

    fn compute_scalar(&mut self, value: Value) -> Result<LaunchRange, Unknown> {
        self.step()?;
        let kernel = self.kernel;
        let known = self.ranges.of(value);
        let bits = width(kernel.value_type(value));
        let by_number = |why: &str| match known.fits(bits.min(63) - 1) {
            true => Ok(LaunchRange { low: Sum::constant(known.low), high: Sum::constant(known.high) }),
            false => Err(why.to_owned()),
        };
        let op = match kernel.value(value).def {
            ValueDef::Result(op, _) => op,
            ValueDef::Arg(block, _) if block == kernel.body() => return self.of_param(value),
            ValueDef::Arg(..) => {
                return by_number(
                    "an index changes from one iteration of a loop to the next in a way that is not followed",
                );
            }
        };
        let data = kernel.op(op);
        let one = Sum::constant(1);
        match &data.kind {
            OpKind::DivSI {} | OpKind::DivUI {} | OpKind::RemSI {} | OpKind::RemUI {} => {
                let [of, by] = kernel.sides(op).ok_or("a quotient without sides")?;
                let (of, by) = (self.deeper(|spans| spans.of_value(of))?, self.deeper(|spans| spans.of_value(by))?);
                self.need(of.low.clone())?;
                self.need(long(by.low.plus(&one, -1))?)?;
                if matches!(data.kind, OpKind::DivSI {} | OpKind::DivUI {}) {
                    let (low, high) = (of.low.quotient(&by.high), of.high.quotient(&by.low));
                    return Ok(LaunchRange { low: long(low)?, high: long(high)? });
                }
                Ok(LaunchRange {
                    low: Sum::default(),
                    high: long(by.high.plus(&one, -1).and_then(|s| s.lesser(&of.high)))?,
                })
            }
            OpKind::ShrSI {} => {
                let shift = view::ShrSI::at(kernel, op);
                let by = self.affine.of(shift.rhs()).and_then(|form| form.poly.value());
                let by = by.filter(|by| (0..bits as i128).contains(by)).ok_or("an index is shifted")?;
                let of = self.deeper(|spans| spans.of_value(shift.lhs()))?;
                let by = Sum::constant(1 << by);
                Ok(LaunchRange { low: long(of.low.quotient(&by))?, high: long(of.high.quotient(&by))? })
            }
            OpKind::MinSI {} | OpKind::MaxSI {} => {
                let [l, r] = kernel.sides(op).ok_or("an extremum without sides")?;
                let (l, r) = (self.deeper(|spans| spans.of_value(l))?, self.deeper(|spans| spans.of_value(r))?);
                let pick: fn(&Sum, &Sum) -> Option<Sum> =
                    if matches!(data.kind, OpKind::MinSI {}) { Sum::lesser } else { Sum::greater };
                Ok(LaunchRange { low: long(pick(&l.low, &r.low))?, high: long(pick(&l.high, &r.high))? })
            }
            OpKind::Select {} => {
                let select = view::Select::at(kernel, op);
                self.either(&[select.lhs(), select.rhs()])
            }
            OpKind::IfElse {} => self.either(&regions::sources(kernel, value)),
            OpKind::Load { .. } => by_number("an index is read from memory"),
            _ => by_number("an index is computed in a way that is not followed"),
        }
    }

    /// One of several values.
    fn either(&mut self, values: &[Value]) -> Result<LaunchRange, Unknown> {
        let mut out: Option<LaunchRange> = None;
        for value in values {
            let span = self.deeper(|spans| spans.of_value(*value))?;
            out = Some(match out {
                None => span,
                Some(out) => {
                    LaunchRange { low: long(out.low.lesser(&span.low))?, high: long(out.high.greater(&span.high))? }
                }
            });
        }
        out.ok_or_else(|| "an index comes from nowhere".into())
    }

    fn of_param(&self, value: Value) -> Result<LaunchRange, Unknown> {
        let param = self.kernel.params.iter().find(|p| p.value == value).ok_or("an index is no parameter")?;
        let name = match (&param.hidden, self.kernel.value_type(value)) {
            (Some(Hidden::Grid(axis)), _) => format!("grid.{axis}"),
            (None, Type::Scalar(Elem::Num(_))) if is_signed(&param.ty) => param.name.clone(),
            _ => return Err(format!("`{}` is no signed integer", param.name)),
        };
        // Names from sema can be read back; a kernel in tile IR may have any name.
        let readable = name.parse::<rtc_abi::Expr>().is_ok_and(|e| e.names() == [name.as_str()]);
        let sum = Sum::named(name.clone());
        if readable { Ok(LaunchRange { low: sum.clone(), high: sum }) } else { Err(format!("`{name}` is no name")) }
    }

    fn not_negative(&mut self, value: Value) -> Result<(), Unknown> {
        if self.ranges.of(value).low >= 0 {
            return Ok(());
        }
        let form = self.affine.of(value).ok_or("an index is no sum of products")?;
        let span = self.of_poly(&form.poly, self.kernel.value_type(value).shape())?;
        self.need(span.low)
    }

    /// The values that a loop passes to its block: the index, and loop-carried values.
    fn handed(&mut self, value: Value, block: Block) -> Result<(), Unknown> {
        let kernel = self.kernel;
        let Some(op) = kernel.block(block).parent else { return Ok(()) };
        if let (OpKind::ForRange { .. }, ValueDef::Arg(_, 0)) = (kernel.kind(op), kernel.value(value).def) {
            let range = view::ForRange::at(kernel, op);
            return [range.lower(), range.step()].into_iter().try_for_each(|value| self.exact(value));
        }
        regions::sources(kernel, value).into_iter().try_for_each(|v| self.computed_from(v))
    }

    fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Unknown>) -> Result<T, Unknown> {
        if self.depth > MAX_DEPTH {
            return Err("an index is computed by too many operations".into());
        }
        self.depth += 1;
        let out = run(self);
        self.depth -= 1;
        out
    }

    fn step(&mut self) -> Result<(), Unknown> {
        self.steps += 1;
        if self.steps > MAX_STEPS { Err("its addresses are computed by too many operations".into()) } else { Ok(()) }
    }
}
