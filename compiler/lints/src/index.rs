//! `index-overflow` and `index-may-overflow`: products in 32 bits on the way to an address.
//!
//! A value contributes to an address if it reaches the offset of an `addptr`, or of an equivalent operation, through
//! sums, products, selects, widening and loops. The result of `%`, `//`, `&`, a shift to the right or a hash is a new
//! number and is not followed.

use std::collections::HashMap;

use rtc_ir::analysis::{Growth, Interval, Ranges};
use rtc_ir::{Elem, Kernel, Loc, Op, Scalar, SourceOperand, Value, address_operands, linear_sources, walk};
use rtc_source::{Code, Diagnostic};

use super::{About, text};

/// From this factor on a program id or an argument times a constant is worth a word.
const LARGE: i128 = 1 << 17;

pub(super) fn check(about: &About<'_>) -> Vec<(Diagnostic, Loc)> {
    let kernel = about.kernel;
    if about.sites.products.is_empty() {
        return Vec::new();
    }
    let on_the_way = on_the_way(kernel);
    let ranges = Ranges::new(kernel);
    let mut found = Vec::new();
    for op in walk(kernel) {
        let Some(sides) = about.sites.products.get(&op) else { continue };
        let result = kernel.result(op, 0);
        let narrow = kernel.value_type(result).elem() == Some(Elem::Num(Scalar::I32));
        let Some(access) = on_the_way.get(&result).filter(|_| narrow) else { continue };
        let [l, r, ..] = kernel.op(op).operands[..] else { continue };
        let operands = [l, r].map(|side| ranges.growth(side));
        let signed = sides.iter().filter_map(|s| s.ty.as_ref()).all(|t| t.signed);
        if let Some(code) = verdict(operands, signed) {
            found.push((diagnostic(about, op, sides, operands, code, *access), kernel.op(op).loc));
        }
    }
    found
}

fn verdict([l, r]: [Growth; 2], signed: bool) -> Option<Code> {
    let product = l.interval.product(r.interval);
    if product.fits(32) || !signed && product.low >= 0 && product.high < 1 << 32 {
        return None;
    }
    match (l.factors, r.factors) {
        (0, 0) => Some(Code::INDEX_OVERFLOW),
        (1.., 1..) => Some(Code::INDEX_MAY_OVERFLOW),
        (0, _) if size(l.interval) >= LARGE => Some(Code::INDEX_MAY_OVERFLOW),
        (_, 0) if size(r.interval) >= LARGE => Some(Code::INDEX_MAY_OVERFLOW),
        _ => None,
    }
}

fn size(interval: Interval) -> i128 {
    interval.low.abs().max(interval.high.abs())
}

fn diagnostic(
    about: &About<'_>,
    op: Op,
    sides: &[SourceOperand; 2],
    ranges: [Growth; 2],
    code: Code,
    access: Op,
) -> Diagnostic {
    let span = about.kernel.loc(about.kernel.op(op).loc).span.unwrap_or_default();
    let result = about.kernel.value_type(about.kernel.result(op, 0));
    let ty = sides.iter().find_map(|s| s.ty.as_ref()).map_or("int32", |t| &t.elem);
    let what = match factors(about, sides) {
        Some([l, r]) => format!("`{l} * {r}`"),
        None => "this product".into(),
    };
    let (message, label) = match code {
        Code::INDEX_OVERFLOW => {
            let [l, r] = ranges;
            let product = l.interval.product(r.interval);
            let most = if product.high.abs() >= product.low.abs() { product.high } else { product.low };
            (format!("{what} does not fit in {ty}, and it becomes an address"), format!("reaches {most}"))
        }
        _ => (
            format!("{what} may not fit in {ty}, and it becomes an address"),
            "wraps around beyond 2147483647".to_string(),
        ),
    };
    let shape = result.shape().map_or(String::new(), |s| format!("{s:?}"));
    let mut d = Diagnostic::warning(code, span, message).primary(format!("{ty}{shape}: {label}"));
    for (side, range) in sides.iter().zip(ranges) {
        let (Some(t), range) = (&side.ty, range.interval) else { continue };
        let known = range.low > i128::from(i32::MIN) && range.high < i128::from(i32::MAX) - 1;
        let bounds = if known { format!(", {} to {}", range.low, range.high) } else { String::new() };
        d = d.label(side.span, format!("{t}{bounds}"));
    }
    let place = about.kernel.loc(about.kernel.op(access).loc).span;
    if let Some(place) = place.filter(|p| p.file != span.file || p.start > span.start || p.end < span.end) {
        d = d.label(place, "added to a pointer here");
    }
    d.help(help(about, sides))
}

/// Widens one factor: a scalar rather than a block, the left one rather than the right.
fn help(about: &About<'_>, sides: &[SourceOperand; 2]) -> String {
    let rank = |side: &SourceOperand| side.ty.as_ref().map_or(usize::MAX, |t| t.shape.rank().min(1));
    let first = rank(&sides[0]) <= rank(&sides[1]);
    let Some([l, r]) = factors(about, sides) else {
        return "cast one factor to 64 bits before multiplying: `.to(tl.int64)`".into();
    };
    let product = if first { format!("{l}.to(tl.int64) * {r}") } else { format!("{l} * {r}.to(tl.int64)") };
    format!("widen a factor before multiplying: `{product}`")
}

/// The factors as the user wrote them, in parentheses where they need them.
fn factors(about: &About<'_>, sides: &[SourceOperand; 2]) -> Option<[String; 2]> {
    let atom = |side: &SourceOperand| {
        let text = text(about, side.span)?;
        let plain = text.chars().all(|c| c.is_alphanumeric() || "_.[]: ,".contains(c))
            || text.ends_with(')') && !text.contains(' ');
        Some(if plain { text.to_owned() } else { format!("({text})") })
    };
    Some([atom(&sides[0])?, atom(&sides[1])?])
}

/// The values on the way to an address, each with the operation that it reaches.
fn on_the_way(kernel: &Kernel) -> HashMap<Value, Op> {
    let mut marked: HashMap<Value, Op> = HashMap::new();
    let mut work: Vec<(Value, Op)> = Vec::new();
    for op in walk(kernel) {
        work.extend(address_operands(kernel, op).iter().map(|value| (*value, op)));
    }
    while let Some((value, access)) = work.pop() {
        if marked.contains_key(&value) {
            continue;
        }
        marked.insert(value, access);
        work.extend(linear_sources(kernel, value).into_iter().map(|v| (v, access)));
    }
    marked
}
