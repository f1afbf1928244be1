//! The arguments of a call of a built-in function, bound to the declared parameters and taken by their names.

use rtc_ir::Shape;
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{Ident, Symbol};

use crate::const_eval;
use crate::counterparts;
use crate::cx::Cx;
use crate::declared::{Builtin, Parameter, Signature};
use crate::emitter::R;
use crate::suggest::suggest;
use crate::types::ElemTy;
use crate::values::CallArgs;
use crate::values::{Arg, Const, Tensor, Val};

/// The arguments of a call of a built-in function. Parameters have the names of the declaration; a test compares the
/// names that a function uses with those that it declares.
pub(crate) struct Args<'a> {
    /// The name of the function.
    pub name: &'static str,
    /// The call.
    pub span: Span,
    /// Called as a method: the first argument is the receiver.
    pub method: bool,
    signature: &'static Signature,
    /// One entry per parameter.
    vals: Vec<Option<Arg<'a>>>,
    /// The arguments of the `*` parameter.
    rest: Vec<Arg<'a>>,
}

/// The parameters of a function.
fn expected(b: &Builtin) -> String {
    counterparts::of_arguments(b.name)
        .map_or_else(|| format!("its parameters are {}", b.signature.listed()), str::to_owned)
}

impl<'a> Args<'a> {
    /// Binds the arguments of a call as Python does.
    pub(crate) fn bind(cx: &mut Cx<'a>, b: &'static Builtin, call: CallArgs<'a>, span: Span) -> R<Args<'a>> {
        let signature = &b.signature;
        let parameters = &signature.parameters;
        let (mut vals, mut rest) = (vec![None; parameters.len()], Vec::new());
        let variadic = signature.rest();
        for (i, arg) in call.positional.into_iter().enumerate() {
            match variadic {
                Some(v) if i >= v => rest.push(arg),
                _ if i < parameters.len() => vals[i] = Some(arg),
                _ => {
                    let count = parameters.len();
                    return cx.error(
                        Code::WRONG_ARGUMENTS,
                        arg.span,
                        format!("`{}` takes at most {count} positional arguments", b.name),
                        &expected(b),
                    );
                }
            }
        }
        for (Ident { text: name, span: name_span }, arg) in call.named {
            match signature.position(&name) {
                Some(i) if parameters[i].is_rest => match &arg.val {
                    Val::Tuple(t) => rest.extend(t.items.iter().map(|v| Arg::new(v.clone(), arg.span))),
                    _ => rest.push(arg),
                },
                Some(i) if vals[i].is_some() => {
                    return cx.error(
                        Code::WRONG_ARGUMENTS,
                        name_span,
                        format!("`{}` got the argument `{name}` twice", b.name),
                        match (b.name, &*name) {
                            ("load", "mask") => {
                                "the second argument is the mask; write `tl.load(pointer + offsets, mask=mask)`"
                            }
                            _ => "pass it by position or by name, not both",
                        },
                    );
                }
                Some(i) => vals[i] = Some(arg),
                None => {
                    let mut named = counterparts::of_keyword(&name).iter().copied();
                    let close = named.find(|n| parameters.iter().any(|p| p.name == *n));
                    let message = format!("`{}` has no parameter `{name}`", b.name);
                    let d = Diagnostic::error(Code::WRONG_ARGUMENTS, name_span, message);
                    return cx.fail(match close.or_else(|| suggest(&name, parameters.iter().map(|p| p.name))) {
                        Some(close) => d.help(format!("did you mean `{close}`?")).edit(name_span, close),
                        None => d.help(expected(b)),
                    });
                }
            }
        }
        let needed = |p: &Parameter| p.default.is_none() && !p.is_rest;
        if let Some((parameter, _)) = parameters.iter().zip(&vals).find(|(p, val)| val.is_none() && needed(p)) {
            return cx.error(
                Code::WRONG_ARGUMENTS,
                span,
                format!("`{}` needs the argument `{}`", b.name, parameter.name),
                &expected(b),
            );
        }
        Ok(Args { name: b.name, span, method: call.method, signature, vals, rest })
    }

    /// The argument as it was passed, or the declared default.
    pub(crate) fn arg(&self, name: &str) -> Arg<'a> {
        let passed = self.passed(name);
        passed.or_else(|| Some(Arg::new(self.default(name)?, self.span))).unwrap_or(Arg::new(Val::Error, self.span))
    }

    /// The argument of the first parameter, where methods and functions that do the same name it differently.
    pub(crate) fn first(&self) -> Arg<'a> {
        self.vals.first().cloned().flatten().unwrap_or(Arg::new(Val::Error, self.span))
    }

    /// The argument, if it was passed.
    pub(crate) fn passed(&self, name: &str) -> Option<Arg<'a>> {
        self.borrowed(name).cloned()
    }

    fn borrowed(&self, name: &str) -> Option<&Arg<'a>> {
        self.vals.get(self.signature.position(name)?)?.as_ref()
    }

    /// The argument, unless it was left out or is `None`.
    pub(crate) fn given(&self, name: &str) -> Option<Arg<'a>> {
        self.borrowed(name).filter(|a| !a.val.is_none()).cloned()
    }

    /// The arguments of the `*` parameter.
    pub(crate) fn rest(&self, _name: &str) -> &[Arg<'a>] {
        &self.rest
    }

    /// The arguments that were passed, in the order of the parameters.
    pub(crate) fn all(&self) -> Vec<Arg<'a>> {
        self.vals.iter().flatten().cloned().collect()
    }

    /// The arguments of all parameters but one.
    pub(crate) fn all_but(&self, name: &str) -> Vec<Arg<'a>> {
        let except = self.signature.position(name);
        let others = self.vals.iter().enumerate().filter(|(i, _)| Some(*i) != except);
        others.filter_map(|(_, arg)| arg.clone()).collect()
    }

    /// Marks a parameter as accepted and without effect.
    pub(crate) fn ignore(&self, _name: &str) {}

    /// As messages name a parameter.
    pub(crate) fn what(&self, name: &str) -> String {
        let parameter = self.signature.position(name).map_or("", |i| self.signature.parameters[i].name);
        format!("`{parameter}` of `{}`", self.name)
    }

    fn default(&self, name: &str) -> Option<Val<'a>> {
        let parameter = &self.signature.parameters[self.signature.position(name)?];
        parameter.default.map(|default| Val::Const(default.constant()))
    }

    /// The argument, where `None` means the declared default.
    fn value(&self, name: &str) -> Arg<'a> {
        match self.given(name) {
            Some(arg) => arg,
            None => Arg::new(self.default(name).unwrap_or_else(|| self.arg(name).val), self.arg(name).span),
        }
    }

    /// A tensor; constants get their own type.
    pub(crate) fn tensor(&self, cx: &mut Cx<'a>, name: &str) -> R<Tensor> {
        if let Some(Arg { val: Val::Tensor(t), .. }) = self.borrowed(name) {
            return Ok(*t);
        }
        cx.tensor(&self.arg(name), &self.what(name))
    }

    /// A tensor, unless the argument was left out.
    pub(crate) fn optional_tensor(&self, cx: &mut Cx<'a>, name: &str) -> R<Option<Tensor>> {
        let given = self.borrowed(name).is_some_and(|a| !a.val.is_none());
        given.then(|| self.tensor(cx, name)).transpose()
    }

    /// A compile-time constant.
    pub(crate) fn constant(&self, cx: &mut Cx<'a>, name: &str) -> R<Const> {
        cx.const_arg(&self.arg(name), &self.what(name))
    }

    /// A compile-time integer.
    pub(crate) fn int(&self, cx: &mut Cx<'a>, name: &str) -> R<i128> {
        match self.value(name) {
            Arg { val: Val::Const(Const::Int(i)), .. } => Ok(i),
            arg => cx.int_of(&arg, &self.what(name)),
        }
    }

    /// A compile-time truth value.
    pub(crate) fn bool(&self, cx: &mut Cx<'a>, name: &str) -> R<bool> {
        match self.value(name) {
            Arg { val: Val::Const(c), .. } => Ok(const_eval::truth(&c)),
            arg => cx.const_arg(&arg, &self.what(name)).map(|c| const_eval::truth(&c)),
        }
    }

    /// A string; `None` stays.
    pub(crate) fn text(&self, cx: &mut Cx<'a>, name: &str) -> R<Option<Symbol>> {
        let arg = self.value(name);
        let other = match &arg.val {
            Val::Const(Const::Str(s)) => return Ok(Some(s.clone())),
            Val::Const(Const::None) => return Ok(None),
            _ => cx.const_arg(&arg, &self.what(name))?,
        };
        let message = format!("{} must be a string", self.what(name));
        let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, message);
        cx.fail(d.primary(format!("this is {}", Val::Const(other).describe())))
    }

    /// An element type.
    pub(crate) fn elem(&self, cx: &mut Cx<'a>, name: &str) -> R<ElemTy> {
        cx.type_of(&self.arg(name), &self.what(name))
    }

    /// A shape, given as a sequence.
    pub(crate) fn shape(&self, cx: &mut Cx<'a>, name: &str) -> R<Shape> {
        cx.shape_of(&self.arg(name), &self.what(name))
    }

    /// An axis of a block, counted from the end if it is negative.
    pub(crate) fn axis(&self, cx: &mut Cx<'a>, name: &str, rank: usize) -> R<usize> {
        cx.axis_of(&self.arg(name), rank, &self.what(name))
    }
}
