//! What kernels can call of Python, of `triton` and of `math`, on constants.

use std::rc::Rc;

use rtc_source::{Code, Diagnostic};

use super::{Args, Builtin, program, row};
use crate::attrs::type_predicate;
use crate::const_eval::{self, as_float, as_int};
use crate::cx::{Arg, Cx, R};
use crate::types::TyVal;
use crate::values::{Const, Val};

pub(super) const TABLE: &[Builtin] = &[
    program::RANGE,
    row("len", &["obj"], |cx, args| {
        let arg = args.arg(0);
        match &arg.val {
            Val::Tuple(t) => Ok(Val::int(t.items.len() as i128)),
            Val::Dict(d) => Ok(Val::int(d.len() as i128)),
            Val::Const(Const::Str(s)) => Ok(Val::int(s.chars().count() as i128)),
            Val::Tensor(t) if t.shape.rank() > 0 => Ok(Val::int(i128::from(t.shape[0]))),
            other => {
                let text = other.describe();
                let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, format!("{text} has no length"))
                    .help("`len` works on tuples, dictionaries and strings; a block's sizes are in `.shape`");
                cx.fail(d)
            }
        }
    }),
    row("int", &["x?"], |cx, args| {
        number(cx, args, |c| {
            as_int(c)
                .map(Const::Int)
                .or_else(|| as_float(c).filter(|x| x.is_finite()).map(|x| Const::Int(x.trunc() as i128)))
                .or_else(|| match c {
                    Const::Str(s) => s.trim().parse().ok().map(Const::Int),
                    _ => None,
                })
        })
    }),
    row("float", &["x?"], |cx, args| {
        number(cx, args, |c| match c {
            Const::Str(s) => parse_float(s).map(Const::Float),
            other => as_float(other).map(Const::Float),
        })
    }),
    row("bool", &["x?"], |cx, args| number(cx, args, |c| Some(Const::Bool(const_eval::truth(c))))),
    row("str", &["x"], |_, args| Ok(Val::str(&args.arg(0).val.to_string()))),
    row("print", &["prefix", "*args", "hex?"], |cx, args| {
        let callee = super::language("device_print").map(Val::Builtin);
        let mut positional = vec![args.arg(0)];
        positional.extend(args.rest.iter().cloned());
        match callee {
            Some(callee) => cx.call_positional(&callee, positional, args.span),
            None => Ok(Val::NONE),
        }
    }),
    row("min", &["*args"], |cx, args| extremum(cx, args, "minimum", |a, b| b < a)),
    row("max", &["*args"], |cx, args| extremum(cx, args, "maximum", |a, b| b > a)),
    row("abs", &["x"], |cx, args| match &args.arg(0).val {
        Val::Const(c) => match (as_int(c), as_float(c)) {
            (Some(i), _) => Ok(Val::int(i.abs())),
            (None, Some(x)) => Ok(Val::Const(Const::Float(x.abs()))),
            _ => cx.const_arg(&args.arg(0), "the argument of `abs`").map(Val::Const),
        },
        _ => match super::language("abs") {
            Some(b) => cx.call_positional(&Val::Builtin(b), vec![args.arg(0)], args.span),
            None => Ok(Val::Error),
        },
    }),
    row("isinstance", &["obj", "class_or_tuple"], |_, args| {
        let (obj, class) = (args.arg(0), args.arg(1));
        Ok(Val::bool(is_instance(&obj, &class)))
    }),
    row("hasattr", &["obj", "name"], |cx, args| {
        let (obj, name) = (args.arg(0), args.arg(1));
        let Const::Str(name) = cx.const_arg(&name, &args.what(1))? else { return Ok(Val::bool(false)) };
        let span = args.span;
        Ok(Val::bool(cx.quietly(|cx| cx.attribute(&obj, &name, span)).is_ok()))
    }),
    row("getattr", &["obj", "name", "default?"], |cx, args| {
        let (obj, name) = (args.arg(0), args.arg(1));
        let Const::Str(name) = cx.const_arg(&name, &args.what(1))? else {
            return cx.error(Code::TYPE_MISMATCH, name.span, "the name of an attribute must be a string", "");
        };
        let span = args.span;
        match args.vals[2].clone() {
            None => cx.attribute(&obj, &name, span),
            Some(default) => match cx.quietly(|cx| cx.attribute(&obj, &name, span)) {
                Ok(found) => Ok(found),
                Err(_) => Ok(default.val),
            },
        }
    }),
    row("list", &["items?"], sequence),
    row("tuple", &["items?"], sequence),
    row("__bit_length", &["self"], |cx, args| match as_int(&cx.const_arg(&args.arg(0), "the number")?) {
        Some(i) => Ok(Val::int(i128::from(128 - i.unsigned_abs().leading_zeros()))),
        None => Ok(Val::int(0)),
    }),
];

pub(super) const TRITON: &[Builtin] = &[
    row("cdiv", &["x", "y"], |cx, args| {
        let (x, y) = (cx.int_of(&args.arg(0), &args.what(0))?, cx.int_of(&args.arg(1), &args.what(1))?);
        if y == 0 {
            return cx.error(Code::BAD_VALUE, args.span, "division by zero", "");
        }
        Ok(Val::int((x + y - 1).div_euclid(y)))
    }),
    row("next_power_of_2", &["n"], |cx, args| {
        let n = cx.int_of(&args.arg(0), &args.what(0))?;
        Ok(Val::int(const_eval::next_power_of_2(n)))
    }),
];

macro_rules! math_rows {
    ($($name:literal),*) => { &[$(row($name, &["x", "y?"], |cx, args| python_math(cx, args, $name))),*] };
}

pub(super) const MATH: &[Builtin] = math_rows!(
    "sqrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "floor", "ceil", "pow", "fabs",
    "isnan", "isinf", "trunc", "erf", "gcd", "log1p", "expm1", "asin", "acos", "atan", "atan2", "sinh", "cosh", "fmod",
    "copysign", "isqrt"
);

macro_rules! predicate_rows {
    ($($name:literal),*) => { &[$(row($name, &["self"], |_, args| type_test(args, $name))),*] };
}

pub(super) const TYPE_METHODS: &[Builtin] = predicate_rows!(
    "is_fp8",
    "is_fp8e4nv",
    "is_fp8e4b8",
    "is_fp8e4b15",
    "is_fp8e5",
    "is_fp8e5b16",
    "is_fp16",
    "is_bf16",
    "is_fp32",
    "is_fp64",
    "is_int1",
    "is_int8",
    "is_int16",
    "is_int32",
    "is_int64",
    "is_uint8",
    "is_uint16",
    "is_uint32",
    "is_uint64",
    "is_floating",
    "is_standard_floating",
    "is_int_signed",
    "is_int_unsigned",
    "is_int",
    "is_bool",
    "is_ptr",
    "is_block",
    "is_const",
    "is_void",
    "get_block_shapes"
);

fn type_test<'a>(args: &Args<'a>, name: &str) -> R<Val<'a>> {
    match (&args.arg(0).val, name) {
        (Val::Type(TyVal::Block(_, shape)), "get_block_shapes") => Ok(crate::attrs::shape_tuple(*shape)),
        (Val::Type(t), _) => Ok(Val::bool(type_predicate(*t, name))),
        _ => Ok(Val::bool(false)),
    }
}

/// A conversion of a constant.
fn number<'a>(cx: &mut Cx<'a>, args: &Args<'a>, f: impl Fn(&Const) -> Option<Const>) -> R<Val<'a>> {
    let Some(arg) = args.vals[0].clone() else { return Ok(Val::int(0)) };
    if let Val::Tensor(t) = &arg.val {
        let d = Diagnostic::error(
            Code::EXPECTED_CONSTEXPR,
            arg.span,
            format!("`{}` works on compile-time values only", args.name),
        )
        .primary(format!("this is {t}"))
        .help(match args.name {
            "int" => "write `x.to(tl.int32)` to convert a run-time value",
            "float" => "write `x.to(tl.float32)` to convert a run-time value",
            _ => "write `x.to(dtype)` to convert a run-time value",
        });
        return cx.fail(d);
    }
    let c = cx.const_arg(&arg, &args.what(0))?;
    match f(&c) {
        Some(result) => Ok(Val::Const(result)),
        None => {
            let message = format!("`{}` cannot convert {}", args.name, Val::Const(c).describe());
            cx.error(Code::BAD_VALUE, arg.span, message, "")
        }
    }
}

fn parse_float(text: &str) -> Option<f64> {
    let lower = text.trim().to_ascii_lowercase();
    match lower.trim_start_matches('+') {
        "inf" | "infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        "nan" | "-nan" => Some(f64::NAN),
        other => other.replace('_', "").parse().ok(),
    }
}

/// Python's `min` and `max`: of constants a constant, else `tl.minimum` and `tl.maximum` in a chain.
fn extremum<'a>(cx: &mut Cx<'a>, args: &Args<'a>, name: &str, better: fn(f64, f64) -> bool) -> R<Val<'a>> {
    let items: Vec<Arg<'a>> = match &args.rest[..] {
        [only] => match &only.val {
            Val::Tuple(t) => t.items.iter().map(|v| Arg::new(v.clone(), only.span)).collect(),
            _ => args.rest.clone(),
        },
        _ => args.rest.clone(),
    };
    if items.len() < 2 && !(items.len() == 1 && args.rest.len() == 1 && matches!(args.rest[0].val, Val::Tuple(_))) {
        let help = format!("for the {name} of a block write `tl.{}(x, axis)`", args.name);
        return cx.error(
            Code::WRONG_ARGUMENTS,
            args.span,
            format!("`{}` needs at least two arguments", args.name),
            &help,
        );
    }
    let constants: Option<Vec<&Const>> = items
        .iter()
        .map(|a| match &a.val {
            Val::Const(c) if as_float(c).is_some() => Some(c),
            _ => None,
        })
        .collect();
    if let Some(constants) = constants {
        let mut best = constants[0];
        for c in &constants[1..] {
            let is_better = match (as_int(best), as_int(c)) {
                (Some(a), Some(b)) => {
                    if args.name == "min" {
                        b < a
                    } else {
                        b > a
                    }
                }
                _ => better(as_float(best).unwrap_or(f64::NAN), as_float(c).unwrap_or(f64::NAN)),
            };
            if is_better {
                best = c;
            }
        }
        return Ok(Val::Const(best.clone()));
    }
    let Some(callee) = super::language(name) else { return Ok(Val::Error) };
    let mut items = items.into_iter();
    let Some(mut result) = items.next() else { return Ok(Val::Error) };
    for item in items {
        let val = cx.call_positional(&Val::Builtin(callee), vec![result, item], args.span)?;
        result = Arg::new(val, args.span);
    }
    Ok(result.val)
}

/// Whether a value is an instance of what the front end calls by this class.
fn is_instance<'a>(obj: &Arg<'a>, class: &Arg<'a>) -> bool {
    match &class.val {
        Val::Tuple(t) => t.items.iter().any(|c| is_instance(obj, &Arg::new(c.clone(), class.span))),
        Val::Class(class, _) => {
            matches!(&obj.val, Val::Tuple(t) if t.class.is_some_and(|(c, _)| std::ptr::eq(c, *class)))
        }
        Val::Record(record) => {
            matches!(&obj.val, Val::Tuple(t) if t.fields.as_ref().is_some_and(|f| Rc::ptr_eq(f, &record.fields)))
        }
        Val::Type(TyVal::Constexpr) => obj.val.is_constant(),
        Val::Builtin(b) => match b.name {
            "tensor" => matches!(obj.val, Val::Tensor(_)),
            "tuple" | "list" => matches!(obj.val, Val::Tuple(_)),
            "int" => matches!(obj.val, Val::Const(Const::Int(_) | Const::Bool(_))),
            "float" => matches!(obj.val, Val::Const(Const::Float(_))),
            "bool" => matches!(obj.val, Val::Const(Const::Bool(_))),
            "str" => matches!(obj.val, Val::Const(Const::Str(_))),
            "constexpr" => obj.val.is_constant(),
            "pointer_type" => matches!(obj.val, Val::Type(TyVal::Elem(e)) if e.ptr().is_some()),
            "block_type" => matches!(obj.val, Val::Type(TyVal::Block(..))),
            "constexpr_type" => matches!(obj.val, Val::Type(TyVal::Constexpr)),
            "dtype" => matches!(obj.val, Val::Type(_)),
            "tensor_descriptor" => matches!(obj.val, Val::Descriptor(_)),
            _ => false,
        },
        _ => false,
    }
}

fn sequence<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    match args.vals[0].clone() {
        None => Ok(Val::tuple(Vec::new())),
        Some(arg) => match &arg.val {
            Val::Tuple(t) => Ok(Val::tuple(t.items.clone())),
            Val::Range(r) => Ok(Val::tuple(cx.range_items(r, arg.span)?)),
            other => cx.not_iterable(other, arg.span),
        },
    }
}

fn python_math<'a>(cx: &mut Cx<'a>, args: &Args<'a>, name: &str) -> R<Val<'a>> {
    if args.vals.iter().flatten().any(|a| matches!(a.val, Val::Tensor(_))) {
        // A module that calls itself `math` may mean the language's.
        let symbol: rtc_syntax::ast::Symbol = name.into();
        if let Some(callee) = cx.module_member(&crate::resolve::ModuleRef::Language, &symbol)? {
            return cx.call_positional(&callee, args.vals.iter().flatten().cloned().collect(), args.span);
        }
    }
    let mut constants = Vec::new();
    for (i, arg) in args.vals.iter().enumerate() {
        if let Some(arg) = arg {
            constants.push(cx.const_arg(arg, &args.what(i))?);
        }
    }
    match const_eval::math(name, &constants) {
        Ok(c) => Ok(Val::Const(c)),
        Err(why) => cx.error(Code::BAD_VALUE, args.span, format!("`math.{name}`: {why}"), ""),
    }
}
