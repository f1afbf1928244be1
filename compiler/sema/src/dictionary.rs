//! Dictionaries: of constant keys, to be looked up while compiling.
//!
//! The reference has them in host code only; there they select constants, and say which function of a library fits
//! which types.

use std::rc::Rc;

use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{Comprehension, Expr};

use crate::emitter::R;
use crate::evaluator::Evaluator;
use crate::expr::equal;
use crate::values::Val;

impl<'a> Evaluator<'a> {
    /// `{key: value, ...}`; a repeated key keeps its first position and takes the last value.
    pub(crate) fn dictionary(&mut self, written: &'a [(Option<Expr>, Expr)]) -> R<Val<'a>> {
        let mut entries: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(written.len());
        for (key, value) in written {
            let Some(key) = key else {
                if self.host()
                    && let Val::Dict(more) = self.eval(value)?
                {
                    more.iter().for_each(|(key, value)| insert(&mut entries, key.clone(), value.clone()));
                    continue;
                }
                let message = "`**` in a dictionary does not work in kernels";
                return self.error(Code::UNSUPPORTED, value.span, message, "write the entries out");
            };
            let key = self.eval_arg(key)?;
            if !key.val.is_constant() || matches!(key.val, Val::Dict(_)) {
                let text = key.val.describe();
                let d = Diagnostic::error(Code::EXPECTED_CONSTEXPR, key.span, "the keys of a dictionary are constants")
                    .primary(format!("this is {text}"))
                    .help("take one of several values by `tl.where` or `if`");
                return self.fail(d);
            }
            let value = self.eval(value)?;
            insert(&mut entries, key.val, value);
        }
        Ok(Val::Dict(Rc::new(entries)))
    }

    /// `{key: value for ...}`, in host code.
    pub(crate) fn dictionary_comprehension(
        &mut self,
        (key, value): (&'a Expr, &'a Expr),
        generators: &'a [Comprehension],
        span: Span,
    ) -> R<Val<'a>> {
        let mut entries = Vec::new();
        self.comprehend(generators, span, &mut |cx| {
            let key = cx.eval(key)?;
            let value = cx.eval(value)?;
            insert(&mut entries, key, value);
            Ok(())
        })?;
        Ok(Val::Dict(Rc::new(entries)))
    }

    /// `dictionary[key]`.
    pub(crate) fn dictionary_entry(
        &mut self,
        entries: &[(Val<'a>, Val<'a>)],
        index: &'a Expr,
        span: Span,
    ) -> R<Val<'a>> {
        let key = self.eval_arg(index)?;
        let text = key.val.describe();
        if !key.val.is_constant() {
            let d =
                Diagnostic::error(Code::EXPECTED_CONSTEXPR, key.span, "the key of a dictionary must be a constexpr")
                    .primary(format!("this is {text}"))
                    .help("take one of several values by `tl.where` or `if`");
            return self.fail(d);
        }
        if let Some((_, value)) = entries.iter().find(|(known, _)| equal(known, &key.val)) {
            return Ok(value.clone());
        }
        let known: Vec<String> = entries.iter().take(8).map(|(key, _)| key.describe()).collect();
        let more = if entries.len() > known.len() { ", ..." } else { "" };
        let d = Diagnostic::error(Code::BAD_VALUE, span, "the dictionary has no such key")
            .label(key.span, format!("this is {text}"))
            .help(match entries {
                [] => "it is empty".into(),
                _ => format!("its keys are {}{more}", known.join(", ")),
            });
        self.fail(d)
    }
}

/// A repeated key keeps its first position and takes the last value.
fn insert<'a>(entries: &mut Vec<(Val<'a>, Val<'a>)>, key: Val<'a>, value: Val<'a>) {
    match entries.iter_mut().find(|(known, _)| equal(known, &key)) {
        Some(entry) => entry.1 = value,
        None => entries.push((key, value)),
    }
}
