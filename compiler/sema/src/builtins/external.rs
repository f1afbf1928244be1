//! `libdevice.NAME` as a call of NVIDIA's library of functions, where the user gives that library.
//!
//! The names and signatures stand in the standard library's table. Arguments fit a signature exactly; a Python number
//! takes the type that the other arguments ask for.

use std::collections::HashMap;
use std::sync::OnceLock;

use rtc_ir::{OpKind, Predicate, Text};
use rtc_source::{Code, Diagnostic};

use super::{Args, Builtin, row};
use crate::cx::{Cx, R};
use crate::spec::DType;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Const, Tensor, Val};

/// One signature of a function.
struct Signature {
    arguments: Vec<DType>,
    result: DType,
    symbol: &'static str,
}

struct Function {
    builtin: Builtin,
    signatures: Vec<Signature>,
}

/// The function of the library by that name.
pub(crate) fn external(name: &str) -> Option<&'static Builtin> {
    table().get(name).map(|function| &function.builtin)
}

fn table() -> &'static HashMap<&'static str, Function> {
    const PARAMETERS: &[&[&str]] = &[&[], &["x"], &["x", "y"], &["x", "y", "z"], &["x", "y", "z", "t"]];
    static TABLE: OnceLock<HashMap<&'static str, Function>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: HashMap<&'static str, Function> = HashMap::new();
        for line in rtc_stdlib::LIBDEVICE_FUNCTIONS.lines() {
            let words: Vec<&'static str> = line.split(' ').collect();
            let [name, arguments @ .., "->", result, symbol] = &words[..] else { continue };
            let arguments: Option<Vec<DType>> = arguments.iter().map(|word| dtype(word)).collect();
            let (Some(arguments), Some(result)) = (arguments, dtype(result)) else { continue };
            let Some(parameters) = PARAMETERS.get(arguments.len()) else { continue };
            let function = table
                .entry(name)
                .or_insert_with(|| Function { builtin: row(name, parameters, call), signatures: Vec::new() });
            function.signatures.push(Signature { arguments, result, symbol });
        }
        table
    })
}

/// A type as the table spells it.
fn dtype(word: &str) -> Option<DType> {
    Some(match word {
        "i1" => DType::UInt1,
        "i32" => DType::Int32,
        "i64" => DType::Int64,
        "u32" => DType::UInt32,
        "u64" => DType::UInt64,
        "f32" => DType::Fp32,
        "f64" => DType::Fp64,
        _ => return None,
    })
}

fn call<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let list: Vec<_> = (0..args.vals.len()).map(|i| args.arg(i)).collect();
    let Some(function) = table().get(args.name) else {
        return cx.error(Code::INTERNAL, args.span, format!("the table has no `{}`", args.name), "");
    };
    let fits = |signature: &&Signature| {
        list.iter().zip(&signature.arguments).all(|(arg, dtype)| match &arg.val {
            Val::Tensor(t) => t.elem == ElemTy::Num(*dtype),
            Val::Const(Const::Int(_)) => true,
            Val::Const(Const::Float(_)) => !dtype.is_integer(),
            _ => false,
        })
    };
    let Some(signature) = function.signatures.iter().find(fits) else {
        let known: Vec<String> = function.signatures.iter().map(|s| words(&s.arguments)).collect();
        let mut d = Diagnostic::error(
            Code::TYPE_MISMATCH,
            args.span,
            format!("`libdevice.{}` takes {}", args.name, known.join(" or ")),
        );
        for arg in &list {
            d = d.label(arg.span, format!("this is {}", arg.val.describe()));
        }
        return cx.fail(d.help("cast with `.to(dtype)`"));
    };
    let mut shape = scalar_shape();
    let mut tensors: Vec<Tensor> = Vec::with_capacity(list.len());
    for (arg, dtype) in list.iter().zip(&signature.arguments) {
        let t = match &arg.val {
            Val::Const(c) => cx.const_as(c, ElemTy::Num(*dtype), scalar_shape())?,
            _ => cx.tensor(arg, "an argument")?,
        };
        shape = cx.common((Tensor { shape, ..t }, args.span), (t, arg.span), "as arguments of a function")?;
        tensors.push(t);
    }
    let mut values = Vec::with_capacity(tensors.len());
    for t in tensors {
        values.push(cx.broadcast_to(t, shape)?.value);
    }
    // The library gives truth as a number.
    let truth = signature.result == DType::UInt1;
    let elem = if truth { ElemTy::I32 } else { ElemTy::Num(signature.result) };
    let symbol = Text::from(format!("__nv_{}", signature.symbol).as_str());
    let to = cx.ir_elem(elem)?;
    let op = cx.build(OpKind::ExternCall { symbol, to }, &[], &[], &values, &[], &[])?;
    let result = Tensor { value: cx.kernel.result(op, 0), elem, shape };
    if !truth {
        return Ok(Val::Tensor(result));
    }
    let zero = cx.const_as(&Const::Int(0), elem, shape)?;
    let value = cx.emit(OpKind::CmpI { predicate: Predicate::Ne }, &[result.value, zero.value])?;
    Ok(Val::Tensor(Tensor { value, elem: ElemTy::I1, shape }))
}

fn words(arguments: &[DType]) -> String {
    let names: Vec<String> = arguments.iter().map(|d| ElemTy::Num(*d).to_string()).collect();
    format!("({})", names.join(", "))
}
