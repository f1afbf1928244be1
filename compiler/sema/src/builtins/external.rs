//! Functions of libraries: `libdevice.NAME` as a call of NVIDIA's library, if the user provides it, and
//! `extern_elementwise`, which names a function for each type.
//!
//! The names and signatures are in the standard library's table. Arguments must match a signature exactly; a Python
//! number gets the type that the other arguments require.

use std::collections::HashMap;
use std::sync::OnceLock;

use rtc_ir::{OpKind, Predicate, Text};
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::Symbol;

use super::{Args, Row, row};
use crate::cx::Cx;
use crate::declared::Builtin;
use crate::emitter::R;
use crate::modules::ModuleRef;
use crate::spec::DType;
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Arg, Const, Tensor, Val};

pub(super) const TABLE: &[Row] = &[row("extern_elementwise", extern_elementwise)];

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
                .or_insert_with(|| Function { builtin: Builtin::external(name, parameters), signatures: Vec::new() });
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

pub(super) fn call<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    let list: Vec<_> = args.all();
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
    let mut tensors: Vec<(Tensor, Span)> = Vec::with_capacity(list.len());
    for (arg, dtype) in list.iter().zip(&signature.arguments) {
        let t = match &arg.val {
            Val::Const(c) => cx.const_as(c, ElemTy::Num(*dtype), scalar_shape())?,
            _ => cx.tensor(arg, "an argument")?,
        };
        tensors.push((t, arg.span));
    }
    // The library returns booleans as integers.
    let truth = signature.result == DType::UInt1;
    let elem = if truth { ElemTy::I32 } else { ElemTy::Num(signature.result) };
    let result = cx.external_call(&format!("__nv_{}", signature.symbol), &tensors, elem, args.span)?;
    if !truth {
        return Ok(Val::Tensor(result));
    }
    let zero = cx.const_as(&Const::Int(0), elem, result.shape)?;
    let value = cx.emit(OpKind::CmpI { predicate: Predicate::Ne }, &[result.value, zero.value])?;
    Ok(Val::Tensor(Tensor { value, elem: ElemTy::I1, ..result }))
}

/// A function for these types, as the dictionary of a call names it.
struct Choice {
    symbol: Symbol,
    result: ElemTy,
}

fn extern_elementwise<'a>(cx: &mut Cx<'a>, args: &Args<'a>) -> R<Val<'a>> {
    args.ignore("lib_name");
    args.ignore("lib_path");
    args.ignore("_semantic");
    let operands = super::memory::one_or_more(args.arg("args"));
    let mut tensors: Vec<(Tensor, Span)> = Vec::with_capacity(operands.len());
    for arg in &operands {
        tensors.push((cx.tensor(arg, "an argument of a function")?, arg.span));
    }
    let Choice { symbol, result } = cx.choice(args, &tensors)?;
    let known = symbol.strip_prefix("__nv_").and_then(|name| {
        let mut all = table().iter().flat_map(|(name, f)| f.signatures.iter().map(move |s| (*name, s)));
        all.find(|(_, s)| s.symbol == name && s.arguments.len() == tensors.len())
    });
    if cx.target.external_libdevice {
        if known.is_none() && !args.bool(cx, "is_pure")? {
            let message = "functions with effects cannot be called";
            return cx.error(
                Code::UNSUPPORTED,
                args.arg("is_pure").span,
                message,
                "only pure ones, with `is_pure=True`",
            );
        }
        return cx.external_call(&symbol, &tensors, result, args.span).map(Val::Tensor);
    }
    let Some((name, signature)) = known else {
        let message = format!("the standard library has no function `{symbol}`");
        let help = "name a file of bitcode that has it: `--libdevice FILE.bc`";
        return cx.error(Code::UNSUPPORTED, args.arg("arg_type_symbol_dict").span, message, help);
    };
    let fits = tensors.iter().zip(&signature.arguments).all(|((t, _), dtype)| t.elem == ElemTy::Num(*dtype));
    let declared = ElemTy::Num(signature.result);
    if !fits || (declared != result && declared != ElemTy::I1) {
        let message = format!("`{symbol}` is a function of {} to {declared}", words(&signature.arguments));
        let here: Vec<String> = tensors.iter().map(|(t, _)| t.elem.to_string()).collect();
        let d = Diagnostic::error(Code::TYPE_MISMATCH, args.arg("arg_type_symbol_dict").span, message)
            .primary(format!("named here for ({}) to {result}", here.join(", ")));
        return cx.fail(d);
    }
    let Some(function) = cx.module_member(&ModuleRef::Libdevice, &name.into())? else {
        return cx.error(Code::INTERNAL, args.span, format!("the standard library lacks `libdevice.{name}`"), "");
    };
    let arguments = tensors.iter().map(|(t, span)| Arg::new(Val::Tensor(*t), *span)).collect();
    match cx.call_positional(&function, arguments, args.span)? {
        // The library returns booleans as integers.
        Val::Tensor(t) => Ok(Val::Tensor(cx.cast(t, result)?)),
        other => Ok(other),
    }
}

impl<'a> Cx<'a> {
    /// Which function the dictionary of `extern_elementwise` names for the types of the arguments.
    fn choice(&mut self, args: &Args<'a>, tensors: &[(Tensor, Span)]) -> R<Choice> {
        let arg = args.arg("arg_type_symbol_dict");
        let Val::Dict(entries) = &arg.val else {
            let text = arg.val.describe();
            let d = Diagnostic::error(
                Code::TYPE_MISMATCH,
                arg.span,
                format!("{} must be a dictionary", args.what("arg_type_symbol_dict")),
            )
            .primary(format!("this is {text}"))
            .help("write `{(tl.float32,): (\"name\", tl.float32)}`");
            return self.fail(d);
        };
        let items = |val: &Val<'a>| match val {
            Val::Tuple(t) => t.items.clone(),
            other => vec![other.clone()],
        };
        let mut known = Vec::new();
        for (key, value) in entries.iter() {
            let types = items(key)
                .into_iter()
                .map(|ty| self.type_of(&Arg::new(ty, arg.span), "a key of the dictionary"))
                .collect::<R<Vec<ElemTy>>>()?;
            if types.iter().copied().eq(tensors.iter().map(|(t, _)| t.elem)) {
                let [Val::Const(Const::Str(symbol)), result] = &items(value)[..] else {
                    let message = "a function is named by a pair: its name and the type of its result";
                    return self.error(Code::TYPE_MISMATCH, arg.span, message, "write `(\"name\", tl.float32)`");
                };
                let result = self.type_of(&Arg::new(result.clone(), arg.span), "the type of the result")?;
                return Ok(Choice { symbol: symbol.clone(), result });
            }
            let types: Vec<String> = types.iter().map(ElemTy::to_string).collect();
            known.push(format!("({})", types.join(", ")));
        }
        let mut d = Diagnostic::error(Code::TYPE_MISMATCH, args.span, "no function is named for these arguments");
        for (t, span) in tensors {
            d = d.label(*span, format!("this is {t}"));
        }
        self.fail(d.help(format!("functions are named for {}; cast with `.to(dtype)`", known.join(", "))))
    }

    /// A call of a library's function for each element.
    fn external_call(&mut self, symbol: &str, tensors: &[(Tensor, Span)], elem: ElemTy, span: Span) -> R<Tensor> {
        let mut shape = scalar_shape();
        for (t, at) in tensors {
            shape = self.common((Tensor { shape, ..*t }, span), (*t, *at), "as arguments of a function")?;
        }
        let mut values = Vec::with_capacity(tensors.len());
        for (t, _) in tensors {
            values.push(self.broadcast_to(*t, shape)?.value);
        }
        let to = self.ir_elem(elem)?;
        let op = self.build(OpKind::ExternCall { symbol: Text::from(symbol), to }, &[], &[], &values, &[], &[])?;
        Ok(Tensor { value: self.kernel.result(op, 0), elem, shape })
    }
}

fn words(arguments: &[DType]) -> String {
    let names: Vec<String> = arguments.iter().map(|d| ElemTy::Num(*d).to_string()).collect();
    format!("({})", names.join(", "))
}
