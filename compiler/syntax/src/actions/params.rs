//! Parameter lists: the marks `*` and `/` give the parameters around them their kinds.

use super::{Checked, refuse};
use crate::ast::{Expr, Ident, Param, ParamKind};
use lalrpop_util::ParseError;
use rtc_source::{Code, Diagnostic, Span};

/// An entry of a parameter list.
pub(crate) enum ParamItem {
    Param(Param),
    Star(Span),
    Slash(Span),
}

impl ParamItem {
    /// `name: annotation = default`.
    pub(crate) fn plain(span: Span, name: Ident, annotation: Option<Expr>, default: Option<Expr>) -> ParamItem {
        ParamItem::Param(Param { span, kind: ParamKind::Positional, name, annotation, default })
    }

    /// `*name` or `**name`.
    pub(crate) fn starred(span: Span, kind: ParamKind, name: Ident, annotation: Option<Expr>) -> ParamItem {
        ParamItem::Param(Param { span, kind, name, annotation, default: None })
    }
}

/// Gives every parameter its kind by the marks around it.
pub(crate) fn params<'s>(items: Vec<ParamItem>) -> Checked<'s, Vec<Param>> {
    let mut params: Vec<Param> = Vec::with_capacity(items.len());
    let mut star: Option<Span> = None;
    let mut slash = false;
    let mut default: Option<Span> = None;
    let mut bare_star: Option<Span> = None;
    for item in items {
        if let Some(Param { kind: ParamKind::KwArgs, span, .. }) = params.last() {
            return Err(refuse(*span, "no parameter may follow `**`"));
        }
        match item {
            ParamItem::Star(span) if star.is_some() => return Err(refuse(span, "a second `*` among the parameters")),
            ParamItem::Star(span) => {
                star = Some(span);
                bare_star = Some(span);
            }
            ParamItem::Slash(span) if slash || star.is_some() || params.is_empty() => {
                return Err(refuse(
                    span,
                    "`/` may stand only once among the parameters, after the first and before `*`",
                ));
            }
            ParamItem::Slash(_) => {
                slash = true;
                params.iter_mut().for_each(|param| param.kind = ParamKind::PositionalOnly);
            }
            ParamItem::Param(mut param) => {
                match param.kind {
                    ParamKind::VarArgs if star.is_some() => {
                        return Err(refuse(param.span, "a second `*` among the parameters"));
                    }
                    ParamKind::VarArgs => star = Some(param.span),
                    ParamKind::KwArgs => {}
                    _ if star.is_some() => param.kind = ParamKind::KeywordOnly,
                    _ if param.default.is_some() => default = Some(param.span),
                    _ => {
                        if let Some(earlier) = default {
                            let text =
                                format!("parameter `{}` has no default but follows one that has", param.name.text);
                            let diagnostic = Diagnostic::error(Code::SYNTAX, param.span, text)
                                .label(earlier, "this one has a default")
                                .help("give it a default too, or move it before the ones with defaults");
                            return Err(ParseError::User { error: Box::new(diagnostic) });
                        }
                    }
                }
                if param.kind == ParamKind::KeywordOnly {
                    bare_star = None;
                }
                if let Some(earlier) = params.iter().find(|earlier| earlier.name.text == param.name.text) {
                    let text = format!("two parameters are named `{}`", param.name.text);
                    let diagnostic = Diagnostic::error(Code::SYNTAX, param.name.span, text)
                        .label(earlier.name.span, "the first one");
                    return Err(ParseError::User { error: Box::new(diagnostic) });
                }
                params.push(param);
            }
        }
    }
    match bare_star {
        Some(span) => Err(refuse(span, "a parameter must follow `*`")),
        None => Ok(params),
    }
}
