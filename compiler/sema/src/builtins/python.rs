//! Functions of Python, `triton` and `math` that kernels can call on constants.

use std::rc::Rc;

use rtc_source::{Code, Diagnostic};

use super::{Args, Row, program, row};
use crate::const_eval::{self, as_float, as_int};
use crate::cx::Cx;
use crate::declared::{self, Builtin, Namespace};
use crate::emitter::R;
use crate::types::TyVal;
use crate::types::type_predicate;
use crate::values::{Arg, Const, Val};

pub(super) const TABLE: &[Row] = &[
    program::RANGE,
    row("len", |cx, args| {
        let arg = args.arg("obj");
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
    row("int", |cx, args| {
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
    row("float", |cx, args| {
        number(cx, args, |c| match c {
            Const::Str(s) => parse_float(s).map(Const::Float),
            other => as_float(other).map(Const::Float),
        })
    }),
    row("bool", |cx, args| number(cx, args, |c| Some(Const::Bool(const_eval::truth(c))))),
    row("str", |_, args| Ok(Val::str(&args.arg("x").val.to_string()))),
    row("print", super::debug::device_print),
    row("min", |cx, args| extremum(cx, args, |a, b| b < a)),
    row("max", |cx, args| extremum(cx, args, |a, b| b > a)),
    row("abs", |cx, args| match &args.arg("x").val {
        Val::Const(c) => match (as_int(c), as_float(c)) {
            (Some(i), _) => Ok(Val::int(i.abs())),
            (None, Some(x)) => Ok(Val::Const(Const::Float(x.abs()))),
            _ => cx.const_arg(&args.arg("x"), "the argument of `abs`").map(Val::Const),
        },
        _ => match language("abs") {
            Some(b) => cx.call_positional(&Val::Builtin(b), vec![args.arg("x")], args.span),
            None => Ok(Val::Error),
        },
    }),
    row("isinstance", |_, args| {
        let (obj, class) = (args.arg("obj"), args.arg("class_or_tuple"));
        Ok(Val::bool(is_instance(&obj, &class)))
    }),
    row("hasattr", |cx, args| {
        let (obj, name) = (args.arg("obj"), args.arg("name"));
        let Const::Str(name) = cx.const_arg(&name, &args.what("name"))? else { return Ok(Val::bool(false)) };
        let span = args.span;
        Ok(Val::bool(cx.attribute_if_any(&obj, &name, span).is_some()))
    }),
    row("getattr", |cx, args| {
        let (obj, name) = (args.arg("obj"), args.arg("name"));
        let Const::Str(name) = cx.const_arg(&name, &args.what("name"))? else {
            return cx.error(Code::TYPE_MISMATCH, name.span, "the name of an attribute must be a string", "");
        };
        let span = args.span;
        match args.passed("default") {
            None => cx.attribute(&obj, &name, span),
            Some(default) => Ok(cx.attribute_if_any(&obj, &name, span).unwrap_or(default.val)),
        }
    }),
    row("list", sequence),
    row("tuple", sequence),
];

pub(super) const TRITON: &[Row] = &[
    row("cdiv", |cx, args| {
        let (x, y) = (args.int(cx, "x")?, args.int(cx, "y")?);
        if y == 0 {
            return cx.error(Code::BAD_VALUE, args.span, "division by zero", "");
        }
        Ok(Val::int((x + y - 1).div_euclid(y)))
    }),
    row("next_power_of_2", |cx, args| {
        let n = args.int(cx, "n")?;
        Ok(Val::int(const_eval::next_power_of_2(n)))
    }),
];

pub(super) const MATH: &[Row] = &[
    row("sqrt", python_math),
    row("exp", python_math),
    row("exp2", python_math),
    row("log", python_math),
    row("log2", python_math),
    row("log10", python_math),
    row("sin", python_math),
    row("cos", python_math),
    row("tan", python_math),
    row("tanh", python_math),
    row("floor", python_math),
    row("ceil", python_math),
    row("pow", python_math),
    row("fabs", python_math),
    row("isnan", python_math),
    row("isinf", python_math),
    row("trunc", python_math),
    row("erf", python_math),
    row("gcd", python_math),
    row("log1p", python_math),
    row("expm1", python_math),
    row("asin", python_math),
    row("acos", python_math),
    row("atan", python_math),
    row("atan2", python_math),
    row("sinh", python_math),
    row("cosh", python_math),
    row("fmod", python_math),
    row("copysign", python_math),
    row("isqrt", python_math),
];

/// Methods of constants.
pub(super) const CONSTANT: &[Row] =
    &[row("bit_length", |cx, args| match as_int(&cx.const_arg(&args.arg("self"), "the number")?) {
        Some(i) => Ok(Val::int(i128::from(128 - i.unsigned_abs().leading_zeros()))),
        None => Ok(Val::int(0)),
    })];

/// Methods of types.
pub(super) const TYPE_METHODS: &[Row] = &[
    row("is_fp8", type_test),
    row("is_fp8e4nv", type_test),
    row("is_fp8e4b8", type_test),
    row("is_fp8e4b15", type_test),
    row("is_fp8e5", type_test),
    row("is_fp8e5b16", type_test),
    row("is_fp16", type_test),
    row("is_bf16", type_test),
    row("is_fp32", type_test),
    row("is_fp64", type_test),
    row("is_int1", type_test),
    row("is_int8", type_test),
    row("is_int16", type_test),
    row("is_int32", type_test),
    row("is_int64", type_test),
    row("is_uint8", type_test),
    row("is_uint16", type_test),
    row("is_uint32", type_test),
    row("is_uint64", type_test),
    row("is_floating", type_test),
    row("is_standard_floating", type_test),
    row("is_int_signed", type_test),
    row("is_int_unsigned", type_test),
    row("is_int", type_test),
    row("is_bool", type_test),
    row("is_ptr", type_test),
    row("is_block", type_test),
    row("is_const", type_test),
    row("is_void", type_test),
    row("get_block_shapes", type_test),
];

fn type_test<'a>(_: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let name = args.name;
    match (&args.arg("self").val, name) {
        (Val::Type(TyVal::Block(_, shape)), "get_block_shapes") => Ok(Val::sizes(*shape)),
        (Val::Type(t), _) => Ok(Val::bool(type_predicate(*t, name))),
        _ => Ok(Val::bool(false)),
    }
}

/// The function of the language by that name.
fn language(name: &str) -> Option<&'static Builtin> {
    declared::find(Namespace::Language, name)
}

/// A conversion of a constant.
fn number<'a>(cx: &mut Cx<'a>, args: &Args<'a>, f: impl Fn(&Const) -> Option<Const>) -> R<Val<'a>> {
    let arg = args.arg("x");
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
    let c = args.constant(cx, "x")?;
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
fn extremum<'a>(cx: &mut Cx<'a>, args: &Args<'a>, better: fn(f64, f64) -> bool) -> R<Val<'a>> {
    let name = if args.name == "min" { "minimum" } else { "maximum" };
    let given = args.rest("args");
    let items: Vec<Arg<'a>> = match given {
        [only] => match &only.val {
            Val::Tuple(t) => t.items.iter().map(|v| Arg::new(v.clone(), only.span)).collect(),
            _ => given.to_vec(),
        },
        _ => given.to_vec(),
    };
    if items.len() < 2 && !(items.len() == 1 && given.len() == 1 && matches!(given[0].val, Val::Tuple(_))) {
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
    let Some(callee) = language(name) else { return Ok(Val::Error) };
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
            // Values that the host passes.
            "TensorDescriptor" => {
                matches!(&obj.val, Val::Tuple(t) if t.fields.as_ref().is_some_and(|f| f.iter().any(|f| &**f == "block_shape")))
            }
            _ => false,
        },
        _ => false,
    }
}

fn sequence<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    match args.passed("items") {
        None => Ok(Val::tuple(Vec::new())),
        Some(arg) => match &arg.val {
            Val::Tuple(t) => Ok(Val::tuple(t.items.clone())),
            Val::Range(r) => Ok(Val::tuple(cx.range_items(r, arg.span)?)),
            other => cx.not_iterable(other, arg.span),
        },
    }
}

fn python_math<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let (name, given) = (args.name, args.all());
    if given.iter().any(|a| matches!(a.val, Val::Tensor(_))) {
        // A module that calls itself `math` may mean the language's.
        let symbol: rtc_syntax::ast::Symbol = name.into();
        if let Some(callee) = cx.module_member(&crate::modules::ModuleRef::Language, &symbol)? {
            return cx.call_positional(&callee, given, args.span);
        }
    }
    let mut constants = Vec::new();
    for arg in &given {
        constants.push(cx.const_arg(arg, &format!("an argument of `math.{name}`"))?);
    }
    match const_eval::math(name, &constants) {
        Ok(c) => Ok(Val::Const(c)),
        Err(why) => cx.error(Code::BAD_VALUE, args.span, format!("`math.{name}`: {why}"), ""),
    }
}
