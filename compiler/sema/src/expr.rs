//! Expressions.
//!
//! Constants stay constants as long as only constants take part; anything else builds operations at the end of the
//! current block, at the location of the expression.

use rtc_ir::OpKind;
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{BoolOp, CmpOp, Comprehension, Expr, ExprKind, FStringPart, Operator, Symbol};

use crate::const_eval;
use crate::counterparts;
use crate::emitter::{Fault, R};
use crate::evaluator::Evaluator;
use crate::frames::Gone;
use crate::suggest::suggest;
use crate::types::{ElemTy, TyVal};
use crate::values::{Arg, Const, Lambda, Tensor, Val};

/// A condition: known while compiling, or an `i1` at run time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    Static(bool),
    Dynamic(Tensor),
}

impl<'a> Evaluator<'a> {
    /// The value of an expression.
    pub(crate) fn eval(&mut self, expr: &'a Expr) -> R<Val<'a>> {
        self.deeper(expr.span, |cx| {
            cx.span = expr.span;
            let val = cx.eval_kind(expr)?;
            cx.note_fact(expr.span, &val);
            if matches!(val, Val::Error) { Err(Fault) } else { Ok(val) }
        })
    }

    /// The value of an expression, with its place.
    pub(crate) fn eval_arg(&mut self, expr: &'a Expr) -> R<Arg<'a>> {
        Ok(Arg::new(self.eval(expr)?, expr.span))
    }

    fn eval_kind(&mut self, expr: &'a Expr) -> R<Val<'a>> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, span),
            ExprKind::Int(i) => Ok(Val::int(*i)),
            ExprKind::BigInt(text) => self.error(
                Code::OUT_OF_RANGE,
                span,
                format!("the integer {text} is too large"),
                "integers of the language have at most 64 bits",
            ),
            ExprKind::Float(x) => Ok(Val::Const(Const::Float(*x))),
            ExprKind::Str(s) => Ok(Val::Const(Const::Str(s.clone()))),
            ExprKind::Bool(b) => Ok(Val::bool(*b)),
            ExprKind::None => Ok(Val::NONE),
            ExprKind::Ellipsis => Ok(Val::Const(Const::Ellipsis)),
            ExprKind::FString(parts) => self.f_string(parts).map(|s| Val::str(&s)),
            ExprKind::Tuple(items) | ExprKind::List(items) => self.display(items),
            ExprKind::BinOp { left, op, right } => {
                let (l, r) = (self.eval_arg(left)?, self.eval_arg(right)?);
                self.span = span;
                self.cx().binary(*op, &l, &r)
            }
            ExprKind::UnaryOp { op, operand } => {
                let operand = self.eval_arg(operand)?;
                self.span = span;
                self.cx().unary(*op, &operand)
            }
            ExprKind::BoolOp { op, values } => self.bool_op(*op, values, span),
            ExprKind::Compare { left, ops } => self.comparison(left, ops, span),
            ExprKind::Call { func, args } => self.eval_call(func, args, span),
            ExprKind::Attribute { value, attr } => {
                let value = self.eval_arg(value)?;
                self.span = span;
                self.attribute_of(&value, &attr.text, attr.span)
            }
            ExprKind::Subscript { value, index } => {
                let value = self.eval_arg(value)?;
                self.subscript(&value, index, span)
            }
            ExprKind::IfExp { test, body, orelse } => self.ternary(test, body, orelse, span),
            ExprKind::ListComp { element, generators } | ExprKind::GeneratorExp { element, generators } => {
                let list = matches!(expr.kind, ExprKind::ListComp { .. });
                if !list && !self.host() {
                    return self.error(
                        Code::UNSUPPORTED,
                        span,
                        "generator expressions do not work in kernels",
                        "write a list: `[... for ... in ...]`",
                    );
                }
                self.list_comprehension(element, generators, span)
            }
            ExprKind::Lambda { params, body } => {
                if self.host() {
                    let module = self.frame().module;
                    return Ok(Val::Lambda(Lambda { params, body, module }));
                }
                self.error(
                    Code::UNSUPPORTED,
                    span,
                    "`lambda` does not work in kernels",
                    "write a `@triton.jit` function at module level",
                )
            }
            ExprKind::Dict(entries) => self.dictionary(entries),
            ExprKind::Set(_) | ExprKind::SetComp { .. } => {
                self.error(Code::UNSUPPORTED, span, "sets do not work in kernels", "use a tuple")
            }
            ExprKind::DictComp { key, value, generators } if self.host() => {
                self.dictionary_comprehension((key, value), generators, span)
            }
            ExprKind::DictComp { .. } => {
                let message = "comprehensions of dictionaries do not work in kernels";
                self.error(Code::UNSUPPORTED, span, message, "write the entries out")
            }
            ExprKind::Slice { .. } => self.error(Code::UNSUPPORTED, span, "a slice can only stand in `[...]`", ""),
            ExprKind::Starred(_) => {
                self.error(Code::UNSUPPORTED, span, "`*` can only unpack the arguments of a call here", "")
            }
            ExprKind::NamedExpr { .. } => self.error(
                Code::UNSUPPORTED,
                span,
                "`:=` does not work in kernels",
                "assign the name in a statement before",
            ),
            ExprKind::Bytes(_) => self.error(Code::UNSUPPORTED, span, "bytes do not work in kernels", ""),
            ExprKind::Await(_) | ExprKind::Yield(_) | ExprKind::YieldFrom(_) => self.error(
                Code::UNSUPPORTED,
                span,
                "coroutines and generators do not work in kernels",
                "return a value, or store it to memory",
            ),
        }
    }

    /// The value of a name: a local, a global of its file, or a predefined name.
    fn name(&mut self, name: &Symbol, span: Span) -> R<Val<'a>> {
        if let Some(binding) = self.frame().scope.get(name) {
            return match binding.gone {
                None => Ok(binding.val.clone()),
                Some(gone) => {
                    let assigned = binding.span;
                    let (text, help) = match gone {
                        Gone::OneBranch => (
                            "assigned in one branch of an `if` only",
                            format!("give `{name}` a value before the `if`, or assign it in both branches"),
                        ),
                        Gone::LoopBody => {
                            ("assigned inside of the loop only", format!("give `{name}` a value before the loop"))
                        }
                    };
                    let d =
                        Diagnostic::error(Code::UNDEFINED_NAME, span, format!("`{name}` may not have a value here"))
                            .primary("used here")
                            .label(assigned, text)
                            .help(help);
                    self.fail(d)
                }
            };
        }
        let module = self.frame().module;
        if let Some(val) = self.global(module, name)? {
            return Ok(val);
        }
        let names = self.visible_names();
        let mut d = Diagnostic::error(Code::UNDEFINED_NAME, span, format!("the name `{name}` is not defined"))
            .primary("not found");
        let in_language = self.member_of(&crate::modules::ModuleRef::Language, name)?;
        let mut bound = Vec::new();
        if let Some(def) = self.frame().def {
            crate::bound_names::bound_names(&def.body, &mut bound);
        }
        if let Some((_, later)) = bound.iter().find(|(n, _)| *n == &**name) {
            d = d.label(*later, "it gets a value here").help(format!("give `{name}` a value before it is used"));
        } else if let Some(instead) = counterparts::of_python(name).or_else(|| counterparts::of_cuda(name)) {
            d = d.help(instead);
        } else if in_language.is_some() {
            d = d.help(format!("did you mean `tl.{name}`?")).edit(span, format!("tl.{name}"));
        } else if let Some(close) = suggest(name, names.iter().map(String::as_str)) {
            d = d.help(format!("did you mean `{close}`?")).edit(span, close);
        } else {
            d = d.help("pass the value as an argument, or define a global constant");
        }
        self.fail(d)
    }

    /// A tuple or list display; `*t` puts in the elements of a tuple.
    fn display(&mut self, items: &'a [Expr]) -> R<Val<'a>> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            if let ExprKind::Starred(inner) = &item.kind {
                match self.eval(inner)? {
                    Val::Tuple(t) => out.extend(t.items.iter().cloned()),
                    other => return self.not_iterable(&other, inner.span),
                }
                continue;
            }
            out.push(self.eval(item)?);
        }
        Ok(Val::tuple(out))
    }

    /// The condition of `if`, `while`, a ternary.
    pub(crate) fn condition(&mut self, arg: &Arg<'a>, what: &str) -> R<Condition> {
        match &arg.val {
            Val::Const(c @ (Const::Bool(_) | Const::Int(_) | Const::None)) => {
                Ok(Condition::Static(const_eval::truth(c)))
            }
            Val::Tensor(t) => {
                let mut t = *t;
                if t.shape.numel() > 1 {
                    let d = Diagnostic::error(
                        Code::BAD_CONDITION,
                        arg.span,
                        format!("the condition of {what} must be a scalar, not a block"),
                    )
                    .primary(format!("this is {t}"))
                    .help(
                        "write `tl.where(condition, x, y)`, pass `mask=condition` to `tl.load` and `tl.store`, or reduce the condition: \
                         `tl.max(c.to(tl.int32)) != 0`",
                    );
                    return self.fail(d);
                }
                if t.shape.rank() > 0 {
                    self.warn(
                        Code::BAD_CONDITION,
                        arg.span,
                        format!("the condition of {what} is a block with one element"),
                        "write `.item()` to make it a scalar",
                    );
                    t = self.to_scalar(t)?;
                }
                Ok(Condition::Dynamic(self.is_not_zero(t)?))
            }
            other if self.host() => {
                let val = other.clone();
                Ok(Condition::Static(self.truth(&val, arg.span)?))
            }
            other => {
                let text = other.describe();
                let d = Diagnostic::error(
                    Code::BAD_CONDITION,
                    arg.span,
                    format!("the condition of {what} must be a truth value, an integer or None, not {text}"),
                )
                .primary(format!("this is {text}"))
                .help("compare it: `x == ...` or `x is not None`");
                self.fail(d)
            }
        }
    }

    /// The element of a block with one element.
    #[allow(clippy::wrong_self_convention, reason = "it is the tensor that becomes a scalar, not the context")]
    fn bool_op(&mut self, op: BoolOp, values: &'a [Expr], span: Span) -> R<Val<'a>> {
        let and = op == BoolOp::And;
        let mut run_time: Vec<Arg<'a>> = Vec::new();
        let mut last = Val::NONE;
        for expr in values {
            let arg = self.eval_arg(expr)?;
            if let Val::Tensor(_) = arg.val {
                run_time.push(arg);
                continue;
            }
            let truth = self.truth(&arg.val, arg.span)?;
            if truth != and {
                return Ok(arg.val);
            }
            last = arg.val;
        }
        self.span = span;
        let mut rest = run_time.into_iter();
        let Some(mut result) = rest.next() else { return Ok(last) };
        if let (1, Val::Tensor(t)) = (values.len(), &result.val) {
            return Ok(Val::Tensor(*t));
        }
        for next in rest {
            let val = self.cx().logical(and, &result, &next)?;
            result = Arg::new(val, result.span.to(next.span));
        }
        Ok(result.val)
    }

    fn comparison(&mut self, left: &'a Expr, ops: &'a [(CmpOp, Expr)], span: Span) -> R<Val<'a>> {
        let mut l = self.eval_arg(left)?;
        let mut result: Option<Arg<'a>> = None;
        for (place, (op, right)) in ops.iter().enumerate() {
            let r = self.eval_arg(right)?;
            self.span = span;
            if let (Val::Tensor(_), Some(joined)) = (&r.val, joins_values(right).filter(|_| place + 1 < ops.len())) {
                let message = format!("`{joined}` binds more closely than the comparisons on both sides of it");
                let help = format!("put each comparison in parentheses: `(a < b) {joined} (c < d)`");
                self.warn(Code::PRECEDENCE, right.span, message, &help);
            }
            let one = self.compare_one(*op, &l, &r)?;
            let one = Arg::new(one, l.span.to(r.span));
            result = Some(match result {
                None => one,
                Some(before) => Arg::new(self.both(&before, &one)?, before.span.to(one.span)),
            });
            if let Some(Val::Const(Const::Bool(false))) = result.as_ref().map(|r| &r.val) {
                break;
            }
            l = r;
        }
        result.map(|r| r.val).ok_or(Fault)
    }

    /// The conjunction of two parts of a chained comparison.
    fn both(&mut self, a: &Arg<'a>, b: &Arg<'a>) -> R<Val<'a>> {
        match (&a.val, &b.val) {
            (Val::Const(c), other) | (other, Val::Const(c)) => {
                Ok(if const_eval::truth(c) { other.clone() } else { Val::bool(false) })
            }
            _ => match (&a.val, &b.val) {
                (Val::Tensor(x), Val::Tensor(y)) => {
                    let (x, y) = self.broadcast_pair((*x, a.span), (*y, b.span), "in a chained comparison")?;
                    Ok(Val::Tensor(self.each(OpKind::AndI {}, &[x.value, y.value], x)?))
                }
                _ => Err(Fault),
            },
        }
    }

    fn compare_one(&mut self, op: CmpOp, l: &Arg<'a>, r: &Arg<'a>) -> R<Val<'a>> {
        match op {
            CmpOp::Is => return Ok(Val::bool(l.val.identical(&r.val))),
            CmpOp::IsNot => return Ok(Val::bool(!l.val.identical(&r.val))),
            CmpOp::In | CmpOp::NotIn => {
                let found = match (&l.val, &r.val) {
                    (item, Val::Tuple(t)) if item.is_constant() && r.val.is_constant() => {
                        t.items.iter().any(|x| equal(item, x))
                    }
                    (item, Val::Dict(d)) if item.is_constant() => d.iter().any(|(key, _)| equal(item, key)),
                    (Val::Const(Const::Str(x)), Val::Const(Const::Str(y))) => y.contains(&**x),
                    _ => {
                        let span = self.span;
                        return self.error(
                            Code::UNSUPPORTED,
                            span,
                            format!("`{}` works on compile-time values only", op.symbol()),
                            "compare with each element: `(x == a) | (x == b)`",
                        );
                    }
                };
                return Ok(Val::bool(found == (op == CmpOp::In)));
            }
            _ => {}
        }
        if let (
            true,
            (Val::Tensor(_) | Val::Type(_), Val::Const(Const::Str(_)))
            | (Val::Const(Const::Str(_)), Val::Tensor(_) | Val::Type(_)),
        ) = (matches!(op, CmpOp::Eq | CmpOp::NotEq), (&l.val, &r.val))
        {
            let (a, b) = (l.val.describe(), r.val.describe());
            let message = format!("{a} and {b} are never equal");
            let help =
                "write a type, such as `tl.float32`; a text is compared with a `tl.constexpr` parameter that is one";
            self.warn(Code::BAD_CONDITION, l.span.to(r.span), message, help);
        }
        match (&l.val, &r.val) {
            (Val::Const(a), Val::Const(b)) => match const_eval::compare(op, a, b) {
                Ok(b) => Ok(Val::bool(b)),
                Err(why) => {
                    let span = self.span;
                    self.error(Code::TYPE_MISMATCH, span, why, "")
                }
            },
            (a, b) if matches!(op, CmpOp::Eq | CmpOp::NotEq) && (comparable(a) || comparable(b)) => {
                Ok(Val::bool(equal(a, b) == (op == CmpOp::Eq)))
            }
            _ => self.cx().compare(op, l, r),
        }
    }

    fn ternary(&mut self, test: &'a Expr, body: &'a Expr, orelse: &'a Expr, span: Span) -> R<Val<'a>> {
        let test = self.eval_arg(test)?;
        let condition = match self.condition(&test, "a ternary")? {
            Condition::Static(true) => return self.eval(body),
            Condition::Static(false) => return self.eval(orelse),
            Condition::Dynamic(t) => t,
        };
        let outer = self.block;
        let mut sides = Vec::with_capacity(2);
        for expr in [body, orelse] {
            let block = self.kernel.new_block();
            self.block = block;
            let side = self.eval(expr).and_then(|v| {
                self.span = expr.span;
                self.decay(v, expr.span)
            });
            self.block = outer;
            sides.push((block, side?, expr.span));
        }
        self.span = span;
        let [(then_block, a, a_span), (else_block, b, b_span)] = &sides[..] else { return Err(Fault) };
        if !a.same_type(b) {
            let d = Diagnostic::error(Code::CHANGED_TYPE, span, "the two sides of a ternary have different types")
                .label(*a_span, format!("this is {}", a.describe()))
                .label(*b_span, format!("this is {}", b.describe()))
                .help("cast one side, or write `tl.where(condition, x, y)`, which promotes");
            return self.fail(d);
        }
        let (mut va, mut vb) = (Vec::new(), Vec::new());
        a.flatten(&mut va);
        b.flatten(&mut vb);
        let types: Vec<_> = va.iter().map(|v| self.kernel.value_type(*v)).collect();
        for (block, values) in [(*then_block, &va), (*else_block, &vb)] {
            self.block = block;
            let built = self.build(OpKind::Yields {}, &[], &[], values, &[], &[]);
            self.block = outer;
            built?;
        }
        let op = self.build(OpKind::IfElse {}, &[condition.value], &[], &[], &[*then_block, *else_block], &types)?;
        let results: Vec<_> = self.kernel.op(op).results.to_vec();
        Ok(a.rebuild(&mut results.into_iter()))
    }

    fn list_comprehension(&mut self, element: &'a Expr, generators: &'a [Comprehension], span: Span) -> R<Val<'a>> {
        let mut out = Vec::new();
        self.comprehend(generators, span, &mut |cx| {
            out.push(cx.eval(element)?);
            Ok(())
        })?;
        Ok(Val::tuple(out))
    }

    /// Runs `each` for every combination that the `for` clauses of a comprehension give, the last clause fastest.
    pub(crate) fn comprehend(
        &mut self,
        generators: &'a [Comprehension],
        span: Span,
        each: &mut dyn FnMut(&mut Evaluator<'a>) -> R<()>,
    ) -> R<()> {
        let Some((generator, inner)) = generators.split_first() else { return each(self) };
        let items = match self.eval(&generator.iter)? {
            Val::Tuple(t) => t.items.clone(),
            Val::Dict(d) => d.iter().map(|(key, _)| key.clone()).collect(),
            Val::Range(r) => self.range_items(&r, generator.iter.span)?,
            other => return self.not_iterable(&other, generator.iter.span),
        };
        for item in items {
            self.step(span)?;
            self.assign_target(&generator.target, item, generator.iter.span)?;
            let mut keep = true;
            for test in &generator.ifs {
                let test = self.eval_arg(test)?;
                keep = keep && self.truth(&test.val, test.span)?;
            }
            if keep {
                self.comprehend(inner, span, each)?;
            }
        }
        Ok(())
    }

    /// The text of an f-string whose replacement fields are known while compiling.
    pub(crate) fn f_string(&mut self, parts: &'a [FStringPart]) -> R<String> {
        let mut text = String::new();
        for part in parts {
            match part {
                FStringPart::Text(t) => text.push_str(t),
                FStringPart::Hole { value, conversion, .. } => {
                    let val = self.eval(value)?;
                    match (&val, conversion) {
                        (Val::Const(Const::Str(s)), Some('r' | 'a')) => text.push_str(&format!("'{s}'")),
                        (val, _) => text.push_str(&val.to_string()),
                    }
                }
            }
        }
        Ok(text)
    }
}

/// Whether `==` on it is decided at compile time, regardless of the other side.
fn comparable(val: &Val<'_>) -> bool {
    match val {
        Val::Const(c) => matches!(c, Const::Str(_)),
        Val::Type(_) | Val::Function(_) | Val::Builtin(_) | Val::Class(..) | Val::Module(_) | Val::Opaque(_) => true,
        Val::Tuple(t) => t.items.iter().all(|v| v.is_constant()),
        _ => false,
    }
}

/// Python's `==` on values that are known while compiling.
pub(crate) fn equal(a: &Val<'_>, b: &Val<'_>) -> bool {
    match (a, b) {
        (Val::Const(x), Val::Const(y)) => const_eval::equal(x, y),
        (Val::Tuple(x), Val::Tuple(y)) => {
            x.items.len() == y.items.len() && x.items.iter().zip(&y.items).all(|(x, y)| equal(x, y))
        }
        (Val::Type(x), Val::Type(y)) => same_type(*x, *y),
        _ => a.identical(b),
    }
}

/// Equality of types; pointers compare with their constness.
fn same_type(x: TyVal, y: TyVal) -> bool {
    match (x, y) {
        (TyVal::Elem(ElemTy::Ptr(a)), TyVal::Elem(ElemTy::Ptr(b))) => a == b,
        _ => x == y,
    }
}

/// The symbol of `&` or `|` between two values, none of which is a literal.
fn joins_values(e: &Expr) -> Option<&'static str> {
    let ExprKind::BinOp { left, op: op @ (Operator::BitAnd | Operator::BitOr), right } = &e.kind else { return None };
    let is_number = |e: &Expr| matches!(e.kind, ExprKind::Int(_));
    (!is_number(left) && !is_number(right)).then(|| op.symbol())
}
