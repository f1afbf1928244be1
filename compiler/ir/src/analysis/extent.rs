//! How many elements from each pointer argument a kernel accesses at most, as a polynomial of its integer arguments and
//! the grid.
//!
//! ```text
//! tl.load(x + pid * 64 + arange(0, 64), mask=offsets < n)      n elements of x
//! tl.load(x + pid * stride + arange(0, 64))                    64 + grid.0 * stride - stride; stride not negative
//! ```
//!
//! A mask helps if it compares a term of the address: with the address `stride * (start + d) + rest` and the mask
//! `start + d < n` the address is at most `stride * (n - 1) + rest`. Other terms are bounded by their
//! [`super::LaunchRanges`].

use rtc_abi::{Access, Expr};

use super::launch_range::{LaunchRanges, Unknown};
use super::poly::{Poly, Symbol, Term};
use super::ranges::Ranges;
use super::reach::{Reach, reach};
use super::sum::Sum;
use super::{Bound, BoundSide};
use crate::{Kernel, Op, OpKind, Shape, Value, view};

/// How far a kernel gets from a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many elements from the pointer on are accessed at most; 0 and less mean none.
    pub elements: Expr,
    /// The bound is valid in launches in which none of these is negative.
    pub needs: Vec<Expr>,
}

/// The accesses of a kernel to the memory of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamAccess {
    /// Whether it reads or writes; `None` if that is not known.
    pub access: Option<Access>,
    /// The extent, or why it is not known; `None` for parameters that are not pointers.
    pub extent: Option<Result<Extent, String>>,
}

/// The accesses of a kernel to the memory of each of its parameters.
pub fn touched(kernel: &Kernel) -> Vec<ParamAccess> {
    let (ranges, reach) = (Ranges::new(kernel), reach(kernel));
    let mut spans = LaunchRanges::new(kernel, &ranges);
    let assumed = assumptions(kernel, &mut spans);
    let one = |(number, param): (usize, &crate::Param)| {
        let extent = param.ty.is_pointer().then(|| extent(kernel, &mut spans, &reach, number, &assumed));
        ParamAccess { access: reach.access[number], extent }
    };
    kernel.params.iter().enumerate().map(one).collect()
}

/// The conditions that what the kernel assumes makes for every answer.
fn assumptions(kernel: &Kernel, spans: &mut LaunchRanges<'_, '_>) -> Result<Vec<Sum>, Unknown> {
    for op in crate::walk(kernel) {
        if let OpKind::Assume {} = kernel.kind(op) {
            spans.assumed(view::Assume::at(kernel, op).condition())?;
        }
    }
    Ok(spans.take_needs())
}

fn extent(
    kernel: &Kernel,
    spans: &mut LaunchRanges<'_, '_>,
    reach: &Reach,
    number: usize,
    assumed: &Result<Vec<Sum>, Unknown>,
) -> Result<Extent, Unknown> {
    if let Some(why) = reach.lost[number].or(reach.elsewhere) {
        return Err(why.into());
    }
    let mut needs = assumed.clone()?;
    let mut highs = Vec::new();
    for op in &reach.uses[number] {
        let outcome = access(kernel, spans, *op, number);
        needs.extend(spans.take_needs());
        highs.push(outcome?);
    }
    let needs = strongest(needs);
    let is_known = |name: &str| is_never_negative(name, &needs);
    let mut most: Vec<Sum> = Vec::new();
    for high in highs {
        let below = |l: &Sum, r: &Sum| r.plus(l, -1).is_some_and(|d| d.is_never_negative(is_known));
        if !most.iter().any(|m| below(&high, m)) {
            most.retain(|m| !below(m, &high));
            most.push(high);
        }
    }
    let most = most.into_iter().try_fold(None, |all: Option<Sum>, one| match all {
        None => Some(Some(one)),
        Some(all) => all.greater(&one).map(Some),
    });
    let most = most.ok_or("the sizes are sums of too many products")?;
    let written =
        |sum: &Sum| sum.print().parse::<Expr>().map_err(|error| format!("its size cannot be written: {error}"));
    Ok(Extent {
        elements: most.map_or(Ok(Expr::from(0)), |sum| written(&sum))?,
        needs: needs.iter().map(written).collect::<Result<_, _>>()?,
    })
}

/// The conditions without those that follow from others.
fn strongest(mut needs: Vec<Sum>) -> Vec<Sum> {
    needs.sort();
    needs.dedup();
    let mut out: Vec<Sum> = needs.clone();
    for need in &needs {
        let others: Vec<Sum> = out.iter().filter(|other| *other != need).cloned().collect();
        let follows = |from: &Sum| {
            let rest = need.plus(from, -1);
            rest.is_some_and(|rest| rest.is_never_negative(|name| is_never_negative(name, &others)))
        };
        if others.iter().any(follows) || follows(&Sum::default()) {
            out = others;
        }
    }
    out
}

/// Whether a named number is at least 0 if none of `needs` is negative.
fn is_never_negative(name: &str, needs: &[Sum]) -> bool {
    let sum = Sum::named(name);
    let is_grid = ["grid.0", "grid.1", "grid.2"].contains(&name);
    is_grid || needs.iter().any(|need| sum.plus(need, -1).and_then(|d| d.value()).is_some_and(|d| d >= 0))
}

/// How many elements from a parameter on an access touches at most.
fn access(kernel: &Kernel, spans: &mut LaunchRanges<'_, '_>, op: Op, number: usize) -> Result<Sum, Unknown> {
    let is_bulk = matches!(kernel.kind(op), OpKind::CopyBulk {} | OpKind::BlockLoad { .. } | OpKind::BlockStore { .. });
    let pointer = kernel.pointer(op).filter(|_| !is_bulk).ok_or("it is accessed by copies of whole tiles")?;
    let form = spans.affine.of(pointer).ok_or_else(|| no_form(kernel, pointer))?;
    if form.pointer != Some(kernel.params[number].value) {
        return Err("which pointer is used is decided while the kernel runs".into());
    }
    spans.computed_from(pointer)?;
    let shape = kernel.value_type(pointer).shape();
    let bounds = bounds(kernel, spans, op, kernel.mask(op));

    let low = bounded(spans, &form.poly, shape, &bounds, RangeEnd::Low)?;
    spans.need(low)?;
    let high = bounded(spans, &form.poly, shape, &bounds, RangeEnd::High)?;
    high.plus(&Sum::constant(1), 1).ok_or_else(|| "the sizes are sums of too many products".into())
}

/// Why an address is no sum of products.
fn no_form(kernel: &Kernel, pointer: Value) -> Unknown {
    let (mut work, mut seen) = (vec![pointer], 0);
    while let Some(value) = work.pop() {
        let Some(op) = kernel.def_op(value) else { continue };
        seen += 1;
        match kernel.kind(op) {
            OpKind::Load { .. } => return "an index is read from memory".into(),
            _ if seen < 200 => work.extend(kernel.op(op).operands.iter().rev()),
            _ => break,
        }
    }
    "an address is no sum of products".into()
}

/// The comparisons that hold wherever the access touches memory: those of its mask, and of the branches and loops around it.
fn bounds(kernel: &Kernel, spans: &mut LaunchRanges<'_, '_>, op: Op, mask: Option<Value>) -> Vec<Bound> {
    let mut conditions: Vec<Value> = mask.into_iter().collect();
    let (mut block, mut loops) = (kernel.op(op).parent, Vec::new());
    while let Some((inside, around)) = block.and_then(|b| Some((b, kernel.block(b).parent?))) {
        match kernel.kind(around) {
            OpKind::IfElse {} if kernel.op(around).blocks[0] == inside => {
                conditions.push(view::IfElse::at(kernel, around).condition());
            }
            OpKind::ForRange { unsigned: false, .. } => loops.extend(counted(kernel, spans, around)),
            _ => {}
        }
        block = kernel.op(around).parent;
    }
    let compared = conditions.into_iter().flat_map(|condition| spans.affine.bounds(condition).bounds);
    let mut found: Vec<Bound> = compared.collect();
    found.extend(loops);
    found.retain(|bound| {
        let mark = spans.mark();
        let exact = spans.compared(bound.op);
        if exact.is_err() {
            spans.forget(mark);
        }
        exact.is_ok()
    });
    found
}

/// The index of a loop is below its upper bound.
fn counted(kernel: &Kernel, spans: &mut LaunchRanges<'_, '_>, op: Op) -> Option<Bound> {
    let index = kernel.block(kernel.op(op).blocks[0]).args[0];
    let (offset, bound) = (spans.affine.of(index)?, spans.affine.of(view::ForRange::at(kernel, op).upper())?);
    let wraps = offset.wraps.max(bound.wraps);
    Some(Bound { axis: None, offset: offset.poly, side: BoundSide::Below, bound: bound.poly, wraps, op })
}

#[derive(Clone, Copy, PartialEq)]
enum RangeEnd {
    Low,
    High,
}

/// The least or the greatest number that a sum can be.
fn bounded(
    spans: &mut LaunchRanges<'_, '_>,
    poly: &Poly,
    shape: Option<Shape>,
    bounds: &[Bound],
    side: RangeEnd,
) -> Result<Sum, Unknown> {
    let mark = spans.mark();
    let natural = |spans: &mut LaunchRanges<'_, '_>| {
        let span = spans.of_poly(poly, shape)?;
        Ok(if side == RangeEnd::Low { span.low } else { span.high })
    };
    if side == RangeEnd::Low
        && let Ok(low) = natural(spans)
        && low.value().is_some_and(|low| low >= 0)
    {
        return Ok(low);
    }
    spans.forget(mark);
    // Without the bounds of loops, steps that divide the bound are seen.
    let is_loop = |bound: &&Bound| matches!(spans.affine.kernel().kind(bound.op), OpKind::ForRange { .. });
    let masked: Vec<Bound> = bounds.iter().filter(|b| !is_loop(b)).cloned().collect();
    let mut found: Option<Sum> = None;
    for bounds in [&masked[..], bounds] {
        let mark = spans.mark();
        match compared(spans, poly, shape, bounds, side) {
            Ok(sum) => {
                found = match found {
                    None => Some(sum),
                    Some(other) if side == RangeEnd::High => other.lesser(&sum).or(Some(other)),
                    Some(other) => other.greater(&sum).or(Some(other)),
                }
            }
            Err(_) => spans.forget(mark),
        }
    }
    found.map_or_else(|| natural(spans), Ok)
}

/// The same with comparisons: `by * offset + rest` with `offset < bound` is below `by * bound + rest`.
fn compared(
    spans: &mut LaunchRanges<'_, '_>,
    poly: &Poly,
    shape: Option<Shape>,
    bounds: &[Bound],
    side: RangeEnd,
) -> Result<Sum, Unknown> {
    let mut poly = poly.clone();
    for bound in bounds {
        let Some((by, negative)) = multiple(&poly, bound) else { continue };
        // The upper bound of the sum follows from the upper bound of the offset, or, with a negative factor, from the
        // lower one.
        let upward = (side == RangeEnd::High) != negative;
        if upward != (bound.side == BoundSide::Below) {
            continue;
        }
        let mark = spans.mark();
        if !by.terms().iter().flat_map(|term| &term.symbols).all(|s| not_negative(spans, *s, shape)) {
            spans.forget(mark);
            continue;
        }
        let last = if upward { bound.bound.plus(&Poly::constant(1), -1) } else { Some(bound.bound.clone()) };
        let moved = last.and_then(|last| last.plus(&bound.offset, -1)).and_then(|by_how| by_how.times(&by));
        match moved.and_then(|moved| poly.plus(&moved, 1)) {
            Some(moved) => poly = moved,
            None => spans.forget(mark),
        }
    }
    let span = spans.of_poly(&poly, shape)?;
    Ok(if side == RangeEnd::Low { span.low } else { span.high })
}

/// The factor of a bound's offset in a sum, and whether it is negative: the factors have one sign.
fn multiple(poly: &Poly, bound: &Bound) -> Option<(Poly, bool)> {
    let place = |symbol: &&Symbol| match (bound.axis, symbol) {
        (Some(axis), Symbol::Dim(d)) => axis == usize::from(*d),
        (None, Symbol::Program(_) | Symbol::Round(_)) => true,
        _ => false,
    };
    let symbols = bound.offset.terms().iter().flat_map(|term| &term.symbols);
    let pivot = |symbol: &Symbol| {
        let each = bound.offset.split(*symbol)?.0.value().filter(|each| *each != 0)?;
        let by = poly.split(*symbol)?.0;
        (!by.terms().is_empty()).then_some((each, by))
    };
    let (each, by) = symbols.filter(place).find_map(pivot)?;
    let parts: Option<Vec<Term>> = by
        .terms()
        .iter()
        .map(|t| (t.factor % each == 0).then(|| Term { symbols: t.symbols.clone(), factor: t.factor / each }))
        .collect();
    let parts = parts.filter(|parts| !parts.is_empty())?;
    let negative = parts[0].factor < 0;
    let same = parts.iter().all(|t| (t.factor < 0) == negative);
    let sum = parts.iter().try_fold(Poly::default(), |sum, t| sum.plus(&Poly::term(t.clone()), 1))?;
    same.then_some((sum, negative))
}

fn not_negative(spans: &mut LaunchRanges<'_, '_>, symbol: Symbol, shape: Option<Shape>) -> bool {
    let alone = Poly::symbol(symbol);
    spans.of_poly(&alone, shape).and_then(|span| spans.need(span.low)).is_ok()
}

/// The kernel with what it touches, as comments.
pub fn print(kernel: &Kernel) -> String {
    let mut out = String::new();
    for (param, touched) in kernel.params.iter().zip(touched(kernel)) {
        let Some(extent) = touched.extent else { continue };
        let access = match touched.access {
            Some(Access::Read) => "read",
            Some(Access::Write) => "written",
            Some(Access::ReadWrite) => "read and written",
            None => "unknown",
        };
        let text = match extent {
            Ok(Extent { elements, needs }) => {
                let needs: Vec<String> = needs.iter().map(|need| format!("\n//     if {need} >= 0")).collect();
                format!("{elements} elements{}", needs.concat())
            }
            Err(why) => format!("no extent: {why}"),
        };
        out.push_str(&format!("// %{}: {access}, {text}\n", param.name));
    }
    out + &crate::text::print(kernel)
}
