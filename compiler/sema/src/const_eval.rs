//! Operators on constants, with Python's meaning: floor division, Python's remainder, true division, `**`.
//!
//! Integers are 128 bits wide; a result that does not fit is an error, not a wrong number. Nothing here builds
//! operations.

use std::cmp::Ordering;
use std::fmt;

use rtc_syntax::ast::{CmpOp, Operator, Symbol, UnaryOp};

/// A compile-time constant, with Python's types.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Const {
    Int(i128),
    Float(f64),
    Bool(bool),
    Str(Symbol),
    None,
    Ellipsis,
}

/// Python's `str`.
impl fmt::Display for Const {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Const::Int(i) => write!(f, "{i}"),
            Const::Float(x) => f.write_str(&float_text(*x)),
            Const::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            Const::Str(s) => f.write_str(s),
            Const::None => f.write_str("None"),
            Const::Ellipsis => f.write_str("..."),
        }
    }
}

/// Why an operator does not work on these constants: one plain sentence.
pub(crate) type Failure = String;

/// Python's `repr` of a float.
pub(crate) fn float_text(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.into();
    }
    let magnitude = x.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{x:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{x:?}")
}

/// Python's `bool(c)`.
pub(crate) fn truth(c: &Const) -> bool {
    match c {
        Const::Int(i) => *i != 0,
        Const::Float(x) => *x != 0.0,
        Const::Bool(b) => *b,
        Const::Str(s) => !s.is_empty(),
        Const::None => false,
        Const::Ellipsis => true,
    }
}

/// The integer value of an integer or boolean.
pub(crate) fn as_int(c: &Const) -> Option<i128> {
    match c {
        Const::Int(i) => Some(*i),
        Const::Bool(b) => Some(i128::from(*b)),
        _ => None,
    }
}

/// The float value of any number.
pub(crate) fn as_float(c: &Const) -> Option<f64> {
    match c {
        Const::Float(x) => Some(*x),
        other => as_int(other).map(|i| i as f64),
    }
}

/// `a op b`.
pub(crate) fn binary(op: Operator, a: &Const, b: &Const) -> Result<Const, Failure> {
    if let (Const::Str(x), Operator::Add, Const::Str(y)) = (a, op, b) {
        return Ok(Const::Str(format!("{x}{y}").into()));
    }
    if let (Const::Str(text), Operator::Mult, Const::Int(n)) | (Const::Int(n), Operator::Mult, Const::Str(text)) =
        (a, op, b)
    {
        let count = usize::try_from(*n).unwrap_or(0);
        if count.saturating_mul(text.len()) > 1 << 16 {
            return Err("the string gets too long".into());
        }
        return Ok(Const::Str(text.repeat(count).into()));
    }
    if let (Const::Bool(x), Const::Bool(y)) = (a, b) {
        match op {
            Operator::BitAnd => return Ok(Const::Bool(x & y)),
            Operator::BitOr => return Ok(Const::Bool(x | y)),
            Operator::BitXor => return Ok(Const::Bool(x ^ y)),
            _ => {}
        }
    }
    match (as_int(a), as_int(b)) {
        (Some(x), Some(y)) => integers(op, x, y),
        _ => match (as_float(a), as_float(b)) {
            (Some(x), Some(y)) => floats(op, x, y),
            _ => Err(format!("Python has no `{}` for {} and {}", op.symbol(), kind(a), kind(b))),
        },
    }
}

fn integers(op: Operator, x: i128, y: i128) -> Result<Const, Failure> {
    let wide = |r: Option<i128>| r.map(Const::Int).ok_or_else(|| "the integer does not fit in 128 bits".to_string());
    let nonzero = || if y == 0 { Err("cannot divide by zero".to_string()) } else { Ok(()) };
    match op {
        Operator::Add => wide(x.checked_add(y)),
        Operator::Sub => wide(x.checked_sub(y)),
        Operator::Mult => wide(x.checked_mul(y)),
        Operator::MatMult => Err("Python has no `@` for integers".into()),
        Operator::Div => {
            nonzero()?;
            Ok(Const::Float(x as f64 / y as f64))
        }
        Operator::FloorDiv => {
            nonzero()?;
            wide(x.checked_div_euclid(y).map(|_| floor_div(x, y)))
        }
        Operator::Mod => {
            nonzero()?;
            wide(x.checked_rem(y).map(|r| if r != 0 && (r < 0) != (y < 0) { r + y } else { r }))
        }
        Operator::Pow if y < 0 => floats(op, x as f64, y as f64),
        Operator::Pow => wide(u32::try_from(y).ok().and_then(|y| x.checked_pow(y))),
        Operator::LShift if y < 0 => Err("negative shift count".into()),
        Operator::LShift if x == 0 => Ok(Const::Int(0)),
        Operator::LShift => wide(u32::try_from(y).ok().filter(|y| *y < 127).and_then(|y| x.checked_mul(1i128 << y))),
        Operator::RShift if y < 0 => Err("negative shift count".into()),
        Operator::RShift => Ok(Const::Int(x >> u32::try_from(y).unwrap_or(127).min(127))),
        Operator::BitOr => Ok(Const::Int(x | y)),
        Operator::BitXor => Ok(Const::Int(x ^ y)),
        Operator::BitAnd => Ok(Const::Int(x & y)),
    }
}

fn floor_div(x: i128, y: i128) -> i128 {
    let q = x / y;
    if x % y != 0 && (x < 0) != (y < 0) { q - 1 } else { q }
}

fn floats(op: Operator, x: f64, y: f64) -> Result<Const, Failure> {
    let nonzero = || if y == 0.0 { Err("cannot divide by zero".to_string()) } else { Ok(()) };
    Ok(Const::Float(match op {
        Operator::Add => x + y,
        Operator::Sub => x - y,
        Operator::Mult => x * y,
        Operator::Div => {
            nonzero()?;
            x / y
        }
        Operator::FloorDiv => {
            nonzero()?;
            ((x - python_rem(x, y)) / y).round()
        }
        Operator::Mod => {
            nonzero()?;
            python_rem(x, y)
        }
        Operator::Pow if x == 0.0 && y < 0.0 => return Err("0.0 to a negative power".into()),
        Operator::Pow => x.powf(y),
        _ => return Err(format!("Python has no `{}` for floats", op.symbol())),
    }))
}

fn python_rem(x: f64, y: f64) -> f64 {
    let r = x % y;
    if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
}

/// `op a`.
pub(crate) fn unary(op: UnaryOp, a: &Const) -> Result<Const, Failure> {
    let unknown = || format!("Python has no unary `{}` for {}", op.symbol(), kind(a));
    match op {
        UnaryOp::Not => Ok(Const::Bool(!truth(a))),
        UnaryOp::UAdd | UnaryOp::USub => match a {
            Const::Float(x) => Ok(Const::Float(if op == UnaryOp::USub { -x } else { *x })),
            other => {
                let x = as_int(other).ok_or_else(unknown)?;
                Ok(Const::Int(if op == UnaryOp::USub { x.checked_neg().ok_or_else(unknown)? } else { x }))
            }
        },
        UnaryOp::Invert => as_int(a).map(|x| Const::Int(!x)).ok_or_else(unknown),
    }
}

/// `a op b` for the six orderings; `is` and `in` are the caller's.
pub(crate) fn compare(op: CmpOp, a: &Const, b: &Const) -> Result<bool, Failure> {
    let equal = equal(a, b);
    let order = match (a, b) {
        (Const::Str(x), Const::Str(y)) => Some(x.cmp(y)),
        _ => match (as_int(a), as_int(b)) {
            (Some(x), Some(y)) => Some(x.cmp(&y)),
            _ => match (as_float(a), as_float(b)) {
                (Some(x), Some(y)) => x.partial_cmp(&y),
                _ if matches!(op, CmpOp::Eq | CmpOp::NotEq) => None,
                _ => return Err(format!("Python cannot order {} and {}", kind(a), kind(b))),
            },
        },
    };
    Ok(match op {
        CmpOp::Eq => equal,
        CmpOp::NotEq => !equal,
        CmpOp::Lt => order == Some(Ordering::Less),
        CmpOp::LtE => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        CmpOp::Gt => order == Some(Ordering::Greater),
        CmpOp::GtE => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn => return Err("is not an ordering".into()),
    })
}

/// Python's `==`.
pub(crate) fn equal(a: &Const, b: &Const) -> bool {
    match (as_int(a), as_int(b)) {
        (Some(x), Some(y)) => x == y,
        _ => match (as_float(a), as_float(b)) {
            (Some(x), Some(y)) => x == y,
            _ => a == b,
        },
    }
}

/// The Python type of a constant.
pub(crate) fn kind(c: &Const) -> &'static str {
    match c {
        Const::Int(_) => "int",
        Const::Float(_) => "float",
        Const::Bool(_) => "bool",
        Const::Str(_) => "str",
        Const::None => "None",
        Const::Ellipsis => "Ellipsis",
    }
}

/// `math.name(args)`.
pub(crate) fn math(name: &str, args: &[Const]) -> Result<Const, Failure> {
    if name == "gcd" || name == "isqrt" {
        let ints: Option<Vec<i128>> = args.iter().map(as_int).collect();
        let ints = ints.ok_or("needs integers")?;
        return match (name, ints.as_slice()) {
            ("isqrt", [x]) if *x >= 0 => Ok(Const::Int(integer_root(*x))),
            ("gcd", [x, y]) => {
                Ok(Const::Int(rtc_ir::greatest_common_divisor(x.unsigned_abs(), y.unsigned_abs()) as i128))
            }
            _ => Err("was called with the wrong arguments".into()),
        };
    }
    let floats: Option<Vec<f64>> = args.iter().map(as_float).collect();
    let floats = floats.ok_or("needs numbers")?;
    let whole = |x: f64| {
        if x.is_finite() { Ok(Const::Int(x as i128)) } else { Err(format!("cannot convert {x} to an integer")) }
    };
    let result = match (name, floats.as_slice()) {
        ("sqrt" | "log" | "log2" | "log10", [x]) if *x < 0.0 || (*x == 0.0 && name != "sqrt") => {
            return Err(format!("is not defined for {}", float_text(*x)));
        }
        ("sqrt", [x]) => x.sqrt(),
        ("exp", [x]) => x.exp(),
        ("exp2", [x]) => x.exp2(),
        ("expm1", [x]) => x.exp_m1(),
        ("log", [x]) => x.ln(),
        ("log", [x, base]) => x.ln() / base.ln(),
        ("log2", [x]) => x.log2(),
        ("log10", [x]) => x.log10(),
        ("log1p", [x]) => x.ln_1p(),
        ("sin", [x]) => x.sin(),
        ("cos", [x]) => x.cos(),
        ("tan", [x]) => x.tan(),
        ("asin", [x]) => x.asin(),
        ("acos", [x]) => x.acos(),
        ("atan", [x]) => x.atan(),
        ("atan2", [x, y]) => x.atan2(*y),
        ("sinh", [x]) => x.sinh(),
        ("cosh", [x]) => x.cosh(),
        ("tanh", [x]) => x.tanh(),
        ("fabs", [x]) => x.abs(),
        ("pow", [x, y]) => x.powf(*y),
        ("fmod", [x, y]) => x % y,
        ("copysign", [x, y]) => x.copysign(*y),
        ("floor", [x]) => return as_int(&args[0]).map_or_else(|| whole(x.floor()), |i| Ok(Const::Int(i))),
        ("ceil", [x]) => return as_int(&args[0]).map_or_else(|| whole(x.ceil()), |i| Ok(Const::Int(i))),
        ("trunc", [x]) => return as_int(&args[0]).map_or_else(|| whole(x.trunc()), |i| Ok(Const::Int(i))),
        ("isnan", [x]) => return Ok(Const::Bool(x.is_nan())),
        ("isinf", [x]) => return Ok(Const::Bool(x.is_infinite())),
        _ => return Err("was called with the wrong arguments".into()),
    };
    Ok(Const::Float(result))
}

fn integer_root(x: i128) -> i128 {
    let mut root = (x as f64).sqrt() as i128;
    while root.checked_mul(root).is_none_or(|square| square > x) {
        root -= 1;
    }
    while (root + 1).checked_mul(root + 1).is_some_and(|square| square <= x) {
        root += 1;
    }
    root
}

/// `triton.next_power_of_2(n)`: by smearing 64 bits, so 0 gives 0.
pub(crate) fn next_power_of_2(n: i128) -> i128 {
    if n <= 0 {
        return 0;
    }
    let mut power = 1;
    while power < n {
        power *= 2;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(op: Operator, a: i128, b: i128) -> Const {
        binary(op, &Const::Int(a), &Const::Int(b)).unwrap()
    }

    #[test]
    fn division_is_pythons() {
        assert_eq!(int(Operator::FloorDiv, -7, 2), Const::Int(-4));
        assert_eq!(int(Operator::Mod, -7, 2), Const::Int(1));
        assert_eq!(int(Operator::FloorDiv, 7, -2), Const::Int(-4));
        assert_eq!(int(Operator::Mod, 7, -2), Const::Int(-1));
        assert_eq!(int(Operator::Div, 7, 2), Const::Float(3.5));
        assert_eq!(binary(Operator::FloorDiv, &Const::Float(-7.0), &Const::Int(2)), Ok(Const::Float(-4.0)));
        assert!(binary(Operator::Mod, &Const::Int(1), &Const::Int(0)).is_err());
    }

    #[test]
    fn nothing_overflows() {
        // Results beyond 128 bits are refused.
        let floor = |a: i128, b: i128| {
            let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
            let is_between = rest != 0 && (rest < 0) != (b < 0);
            Some((quotient - i128::from(is_between), if is_between { rest + b } else { rest }))
        };
        let exact = |op, a: i128, b: i128| match op {
            Operator::Add => a.checked_add(b),
            Operator::Mult => a.checked_mul(b),
            Operator::Pow => a.checked_pow(b.try_into().ok()?),
            Operator::LShift => (0..127).contains(&b).then(|| a << b).filter(|shifted| shifted >> b == a),
            Operator::FloorDiv => floor(a, b).map(|(quotient, _)| quotient),
            _ => floor(a, b).map(|(_, rest)| rest),
        };
        let mut held = 0;
        for op in [Operator::Add, Operator::Mult, Operator::Pow, Operator::LShift, Operator::FloorDiv, Operator::Mod] {
            for a in [i128::MIN, i128::MAX, -1, 0, 1, 5] {
                for b in [i128::MIN, i128::MAX, -1, 1, 3, 126, 127, 128] {
                    match (binary(op, &Const::Int(a), &Const::Int(b)), exact(op, a, b)) {
                        (Ok(Const::Int(found)), Some(exact)) => {
                            assert_eq!(found, exact, "{op:?} {a} {b}");
                            held += 1;
                        }
                        // A negative power is a float; a small base has every power, zero every shift.
                        (Ok(Const::Float(_)), None) => assert!(op == Operator::Pow && b < 0, "{op:?} {a} {b}"),
                        (Ok(Const::Int(found)), None) => {
                            assert!((-1..=1).contains(&a) && found.abs() <= 1, "{op:?} {a} {b}")
                        }
                        (Err(_), None) => {}
                        (found, exact) => panic!("{op:?} {a} {b}: {found:?} instead of {exact:?}"),
                    }
                }
            }
        }
        assert!(held > 100, "{held}");
    }

    #[test]
    fn floats_print_as_in_python() {
        for (x, text) in [(1.0, "1.0"), (0.1, "0.1"), (1e-7, "1e-07"), (1e16, "1e+16"), (-2.5e300, "-2.5e+300")] {
            assert_eq!(float_text(x), text);
        }
    }

    #[test]
    fn powers_of_two() {
        assert_eq!([0, 1, 2, 3, 1000].map(next_power_of_2), [0, 1, 2, 4, 1024]);
        assert_eq!(integer_root(99), 9);
    }
}
