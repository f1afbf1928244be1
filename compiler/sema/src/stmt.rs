//! Statements.
//!
//! A list of statements runs to a [`Flow`]: on to the next statement, or out of the function. The IR has no jumps, so a
//! `return` under a run-time condition is structured: the statements after the `if` go into the branch that does not
//! return, or, where neither branch always returns, under a flag.
//!
//! A statement that fails binds the names it assigns to [`Val::Error`], and the next one goes on.

use rtc_ir::OpKind;
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{Expr, ExprKind, Operator, Stmt, StmtKind, Symbol};

use crate::emitter::R;
use crate::evaluator::Evaluator;
use crate::types::ElemTy;
use crate::values::{Const, Tensor, Val, is_constexpr};

/// The name that `advance` moves: `p` of `tl.advance(p, offsets)` and `p.advance(offsets)`.
fn advanced(call: &Expr) -> Option<&Symbol> {
    let ExprKind::Call { func, args } = &call.kind else { return None };
    match &func.kind {
        ExprKind::Attribute { value, .. } if value.as_name().is_some_and(|name| &**name == "tl") => {
            args.first()?.value.as_name()
        }
        ExprKind::Attribute { value, .. } => value.as_name(),
        _ => None,
    }
}

/// The return value of a function.
#[derive(Clone, Debug)]
pub(crate) struct Return<'a> {
    pub val: Val<'a>,
    pub span: Span,
}

/// How a list of statements ends.
#[derive(Clone, Debug)]
pub(crate) enum Flow<'a> {
    /// Execution continues after the list.
    Next,
    /// The function has returned.
    Returned(Return<'a>),
    /// It has returned if the flag is set at run time.
    Maybe(Tensor, Return<'a>),
    /// A static loop ends.
    Break,
    /// A static loop continues with its next iteration.
    Continue,
}

/// Statements still to be run: lists inside out, the innermost last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Todo<'a> {
    lists: Vec<&'a [Stmt]>,
}

impl<'a> Todo<'a> {
    pub(crate) fn new(list: &'a [Stmt]) -> Todo<'a> {
        Todo { lists: vec![list] }
    }

    /// Puts `list` before the others.
    pub(crate) fn push(&mut self, list: &'a [Stmt]) {
        if !list.is_empty() {
            self.lists.push(list);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lists.iter().all(|l| l.is_empty())
    }

    fn next(&mut self) -> Option<&'a Stmt> {
        loop {
            match self.lists.last_mut()?.split_first() {
                Some((first, rest)) => {
                    *self.lists.last_mut()? = rest;
                    return Some(first);
                }
                None => {
                    self.lists.pop();
                }
            }
        }
    }
}

impl<'a> Evaluator<'a> {
    /// A hint whose result is unused, such as the statement `tl.multiple_of(offsets, 16)`, applies to the value itself:
    /// the names that hold the value hold the hinted one from here on. This is not an assignment, so the enclosing code
    /// does not see a change.
    pub(crate) fn apply_hint(&mut self, hinted: Tensor) {
        let mut plain = hinted.value;
        while let Some(op) = self.kernel.def_op(plain)
            && matches!(self.kernel.kind(op), OpKind::Hint { .. })
        {
            plain = self.kernel.operand(op, 0);
        }
        for (_, binding) in self.frame_mut().scope.iter_mut() {
            if let Val::Tensor(held) = &mut binding.val
                && held.value == plain
            {
                held.value = hinted.value;
            }
        }
    }

    /// Runs statements. `tail` says that the function ends after them.
    pub(crate) fn exec(&mut self, mut todo: Todo<'a>, tail: bool) -> Flow<'a> {
        while let Some(stmt) = todo.next() {
            if self.fatal {
                break;
            }
            let flow = match &stmt.kind {
                StmtKind::If { test, body, orelse } => {
                    match self.exec_if(test, body, orelse, &mut todo, tail, stmt.span) {
                        Ok((flow, true)) => return flow,
                        Ok((flow, false)) => flow,
                        Err(_) => {
                            self.forget(std::slice::from_ref(stmt));
                            Flow::Next
                        }
                    }
                }
                _ => self.deeper(stmt.span, |cx| cx.exec_one(stmt)).unwrap_or_else(|_| {
                    self.forget(std::slice::from_ref(stmt));
                    Flow::Next
                }),
            };
            match flow {
                Flow::Next => {}
                Flow::Maybe(flag, ret) if !todo.is_empty() => {
                    return self.exec_unless(flag, ret, todo, tail, stmt.span);
                }
                other => return other,
            }
        }
        Flow::Next
    }

    /// Binds the names that statements assign to an erroneous value, so that their uses are not reported again.
    pub(crate) fn forget(&mut self, stmts: &'a [Stmt]) {
        let mut names = Vec::new();
        assigned(stmts, &mut names);
        for (name, span) in names {
            let name = name.clone();
            self.bind(&name, Val::Error, span);
        }
    }

    fn exec_one(&mut self, stmt: &'a Stmt) -> R<Flow<'a>> {
        self.span = stmt.span;
        if self.host() {
            self.step(stmt.span)?;
        }
        match &stmt.kind {
            StmtKind::Assign { targets, value } => {
                let val = self.eval(value)?;
                let val = self.assigned_value(val, value)?;
                for target in targets {
                    self.assign_target(target, val.clone(), value.span)?;
                }
            }
            StmtKind::AugAssign { target, op, value } => self.exec_aug_assign(target, *op, value, stmt.span)?,
            StmtKind::AnnAssign { target, annotation, value } => self.exec_ann_assign(target, annotation, value)?,
            StmtKind::Expr(expr) if self.host() && self.exec_list_method(expr)? => {}
            StmtKind::Expr(expr) => {
                let val = self.eval(expr)?;
                if let (Val::BlockPtr(_), ExprKind::Call { .. }) = (&val, &expr.kind) {
                    let message = "`advance` gives a moved pointer and leaves its argument as it is";
                    let mut d = Diagnostic::error(Code::UNUSED_RESULT, expr.span, message)
                        .help("assign the result: `ptr = tl.advance(ptr, offsets)`");
                    if let Some(pointer) = advanced(expr) {
                        d = d.edit(Span { end: expr.span.start, ..expr.span }, format!("{pointer} = "));
                    }
                    return self.fail(d);
                }
                if let Val::Tensor(hinted) = val {
                    self.apply_hint(hinted);
                }
            }
            StmtKind::Return(value) => return self.exec_return(value.as_ref(), stmt.span),
            StmtKind::For { target, iter, body, orelse } => {
                self.no_loop_else(orelse)?;
                return self.exec_for(target, iter, body, stmt.span);
            }
            StmtKind::While { test, body, orelse } => {
                self.no_loop_else(orelse)?;
                return self.exec_while(test, body, stmt.span);
            }
            StmtKind::Assert { test, msg } => self.exec_assert(test, msg.as_ref(), stmt.span)?,
            StmtKind::Pass => {}
            StmtKind::Break | StmtKind::Continue => return self.exec_jump(stmt),
            StmtKind::If { .. } => {}
            _ => return self.exec_refused(stmt),
        }
        Ok(Flow::Next)
    }

    /// `items.append(x)` and `items.extend(xs)` of a list in host code, which is a tuple here: the name gets a longer one.
    fn exec_list_method(&mut self, expr: &'a Expr) -> R<bool> {
        let ExprKind::Call { func, args } = &expr.kind else { return Ok(false) };
        let ExprKind::Attribute { value, attr } = &func.kind else { return Ok(false) };
        let (Some(name), [arg], "append" | "extend") = (value.as_name(), &args[..], &*attr.text) else {
            return Ok(false);
        };
        let Some(Val::Tuple(list)) = self.frame().scope.get(name).map(|b| b.val.clone()) else { return Ok(false) };
        let mut items = list.items.clone();
        match (&*attr.text, self.eval(&arg.value)?) {
            ("append", item) => items.push(item),
            ("extend", Val::Tuple(more)) => items.extend(more.items.iter().cloned()),
            _ => return Ok(false),
        }
        self.bind(name, Val::tuple(items), expr.span);
        Ok(true)
    }

    fn exec_refused(&mut self, stmt: &'a Stmt) -> R<Flow<'a>> {
        let (what, help) = match &stmt.kind {
            StmtKind::FunctionDef(def) => {
                self.bind(&def.name.text, Val::Error, stmt.span);
                ("a function inside of another", "move it to module level")
            }
            StmtKind::ClassDef(def) => {
                self.bind(&def.name.text, Val::Error, stmt.span);
                ("a class inside of a function", "move it to module level")
            }
            StmtKind::Import { .. } | StmtKind::ImportFrom { .. } => ("`import`", "move it to the top of the file"),
            StmtKind::Global(_) => {
                ("`global`", "globals cannot be changed by a kernel; reading them needs no declaration")
            }
            StmtKind::Nonlocal(_) => ("`nonlocal`", "return the new value and assign it where the function is called"),
            StmtKind::With { .. } => ("`with`", "write its statements without it"),
            StmtKind::Try { .. } => ("`try`", "kernels have no exceptions"),
            StmtKind::Raise { .. } => ("`raise`", "write `tl.static_assert` or `tl.device_assert`"),
            StmtKind::Delete(_) => ("`del`", "leave it out: values end with their last use"),
            StmtKind::Unreadable { why, .. } => {
                let d = (**why).clone();
                return self.fail(d);
            }
            _ => ("this statement", ""),
        };
        if self.host() && matches!(stmt.kind, StmtKind::Raise { .. }) {
            let span = stmt.span;
            return self.error(Code::STATIC_ASSERT, span, "a constexpr function raised an exception", "");
        }
        self.error(Code::UNSUPPORTED, stmt.span, format!("{what} does not work in kernels"), help)
    }

    fn no_loop_else(&mut self, orelse: &'a [Stmt]) -> R<()> {
        match orelse.first() {
            None => Ok(()),
            Some(first) => {
                let span = first.span;
                self.error(
                    Code::UNSUPPORTED,
                    span,
                    "`else` of a loop does not work in kernels",
                    "put the statements after the loop",
                )
            }
        }
    }

    fn exec_jump(&mut self, stmt: &'a Stmt) -> R<Flow<'a>> {
        let (word, flow) = match stmt.kind {
            StmtKind::Break => ("break", Flow::Break),
            _ => ("continue", Flow::Continue),
        };
        let frame = self.frame();
        if frame.static_loops > 0 && frame.branches == 0 {
            return Ok(flow);
        }
        let help = match word {
            "break" => "put the condition into `while`, or guard the body with `if`",
            _ => "guard the rest of the body with `if`",
        };
        let place = if frame.static_loops > 0 { "under a run-time condition" } else { "in a run-time loop" };
        self.error(Code::UNSUPPORTED, stmt.span, format!("`{word}` does not work {place}"), help)
    }

    /// The value that a plain assignment stores: constants become run-time values, except in host code.
    fn assigned_value(&mut self, val: Val<'a>, expr: &'a Expr) -> R<Val<'a>> {
        if self.host() {
            return Ok(val);
        }
        match &val {
            Val::Const(Const::Str(_)) | Val::Function(_) | Val::Builtin(_) | Val::Module(_) => {
                let text = val.describe();
                let d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    expr.span,
                    format!("{text} cannot be assigned to an ordinary variable"),
                )
                .primary(format!("this is {text}"))
                .help("declare the variable as a constant: `name: tl.constexpr = ...`");
                self.fail(d)
            }
            _ => {
                self.span = expr.span;
                self.decay(val, expr.span)
            }
        }
    }

    /// Binds `val` to a target: a name, or a list of targets.
    pub(crate) fn assign_target(&mut self, target: &'a Expr, val: Val<'a>, value_span: Span) -> R<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                self.bind(name, val, target.span);
                Ok(())
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let Val::Tuple(t) = &val else {
                    let text = val.describe();
                    let d = Diagnostic::error(
                        Code::TYPE_MISMATCH,
                        target.span,
                        format!("{text} cannot be unpacked into {} names", targets.len()),
                    )
                    .label(value_span, format!("this is {text}"))
                    .help("only tuples are unpacked: `a, b = x, y`");
                    return self.fail(d);
                };
                if let Some(star) = targets.iter().position(|t| matches!(t.kind, ExprKind::Starred(_)))
                    && t.items.len() + 1 >= targets.len()
                {
                    return self.assign_starred(targets, star, &t.items.clone(), value_span);
                }
                if t.items.len() < targets.len() || (self.host() && t.items.len() != targets.len()) {
                    let d = Diagnostic::error(
                        Code::TYPE_MISMATCH,
                        target.span,
                        format!("a tuple of {} cannot be unpacked into {} names", t.items.len(), targets.len()),
                    )
                    .label(value_span, format!("this is {}", val.describe()))
                    .help(format!("give {} names; `_` takes what is not needed", t.items.len()));
                    return self.fail(d);
                }
                for (target, item) in targets.iter().zip(&t.items) {
                    self.assign_target(target, item.clone(), value_span)?;
                }
                Ok(())
            }
            ExprKind::Attribute { .. } if crate::hooks::assign(self, target, &val, value_span)? => Ok(()),
            ExprKind::Starred(_) => self.error(
                Code::UNSUPPORTED,
                target.span,
                "only one target can take the rest with `*`, in a list of targets",
                "write `first, *rest = t`",
            ),
            ExprKind::Attribute { .. } => self.error(
                Code::UNSUPPORTED,
                target.span,
                "attributes cannot be assigned to: values do not change",
                "build a new value",
            ),
            ExprKind::Subscript { value, index } => {
                let object = match value.as_name() {
                    Some(name) => self.frame().scope.get(name).map(|b| b.val.clone()),
                    None => None,
                };
                let text = |cx: &Self, span| cx.source_text(span).unwrap_or_default();
                let help = match object {
                    Some(Val::Tensor(t)) if t.elem.ptr().is_some() => format!(
                        "write to memory with `tl.store({} + {}, value)`",
                        text(self, value.span),
                        text(self, index.span)
                    ),
                    Some(Val::Dict(_) | Val::Tuple(_)) => {
                        "build a new tuple or dictionary, and assign it to the name".into()
                    }
                    _ => "write `x = tl.where(mask, value, x)`, where `tl.arange(0, n) == i` is the mask of one element, or store to \
                          memory with `tl.store`"
                        .into(),
                };
                let message = "elements cannot be assigned to: values do not change";
                self.error(Code::UNSUPPORTED, target.span, message, &help)
            }
            _ => self.error(Code::UNSUPPORTED, target.span, "this cannot be assigned to", ""),
        }
    }

    /// `a, *b, c = ...`: the target at `star` takes what the others leave.
    fn assign_starred(&mut self, targets: &'a [Expr], star: usize, items: &[Val<'a>], value_span: Span) -> R<()> {
        let behind = targets.len() - star - 1;
        let taken = items.len() - targets.len() + 1;
        for (target, item) in targets[..star].iter().zip(items) {
            self.assign_target(target, item.clone(), value_span)?;
        }
        if let ExprKind::Starred(inner) = &targets[star].kind {
            self.assign_target(inner, Val::tuple(items[star..star + taken].to_vec()), value_span)?;
        }
        for (target, item) in targets[star + 1..].iter().zip(&items[items.len() - behind..]) {
            self.assign_target(target, item.clone(), value_span)?;
        }
        Ok(())
    }

    fn exec_aug_assign(&mut self, target: &'a Expr, op: Operator, value: &'a Expr, span: Span) -> R<()> {
        if target.as_name().is_none() {
            // The same message as for a plain assignment.
            return self.assign_target(target, Val::Error, value.span);
        }
        let (l, r) = (self.eval_arg(target)?, self.eval_arg(value)?);
        self.span = span;
        let val = self.cx().binary(op, &l, &r)?;
        let val = self.assigned_value(val, value)?;
        self.assign_target(target, val, span)
    }

    fn exec_ann_assign(&mut self, target: &'a Expr, annotation: &'a Expr, value: &'a Option<Expr>) -> R<()> {
        let constexpr = is_constexpr(annotation);
        let Some(value) = value else {
            return Ok(());
        };
        let val = self.eval(value)?;
        if !constexpr {
            let val = self.assigned_value(val, value)?;
            return self.assign_target(target, val, value.span);
        }
        let Some(name) = target.as_name() else {
            return self.error(Code::UNSUPPORTED, target.span, "only a name can be declared as a constexpr", "");
        };
        let val = self.declared_constexpr(val.into_constexpr());
        if !val.is_constant() {
            self.run_time_constexpr(name, &val, value.span, annotation.span);
        }
        if let Some(before) = self.frame().scope.get(name)
            && before.gone.is_none()
            && !matches!(before.val, Val::Error)
            && !self.host()
            && !before.val.identical(&val)
            && self.frame().static_loops == 0
        {
            let d = Diagnostic::error(Code::ALREADY_DEFINED, target.span, format!("`{name}` is already defined"))
                .primary("declared again as a constexpr")
                .label(before.span, "defined here first")
                .help("take another name for the constant");
            return self.fail(d);
        }
        self.assign_target(target, val, value.span)
    }

    /// A scalar that was computed from nothing but constants, as a constant.
    fn declared_constexpr(&self, val: Val<'a>) -> Val<'a> {
        match &val {
            Val::Tensor(t) => self.known(*t).map_or(val, Val::Const),
            Val::Tuple(tuple) if tuple.items.iter().any(|v| !v.is_constant()) => {
                let mut tuple = (**tuple).clone();
                tuple.items = tuple.items.into_iter().map(|v| self.declared_constexpr(v)).collect();
                Val::Tuple(std::rc::Rc::new(tuple))
            }
            _ => val,
        }
    }

    fn known(&self, t: Tensor) -> Option<Const> {
        let dtype = t.elem.num().filter(|_| t.shape.rank() == 0)?;
        let bits = rtc_ir::known_bits(&self.kernel, t.value)?;
        let scalar = self.kernel.value_type(t.value).elem()?.num()?;
        Some(match rtc_ir::literal_of(bits, scalar)? {
            _ if t.elem == ElemTy::I1 => Const::Bool(bits != 0),
            rtc_ir::Literal::Int(_) if !dtype.is_signed() => Const::Int(i128::from(bits)),
            rtc_ir::Literal::Int(i) => Const::Int(i128::from(i)),
            rtc_ir::Literal::Float(bits) => Const::Float(f64::from_bits(bits)),
        })
    }

    /// The warning that a name is declared as a constexpr whose value is known only at run time. It stays a run-time
    /// value.
    fn run_time_constexpr(&mut self, name: &str, val: &Val<'a>, at: Span, declared: Span) {
        let mut values = Vec::new();
        val.flatten(&mut values);
        self.declared.extend(values);
        if self.in_library() {
            return;
        }
        let message = format!("`{name}` is declared as a constexpr, but its value is known only at run time");
        let d = Diagnostic::warning(Code::CONSTEXPR_AT_RUN_TIME, at, message)
            .primary(format!("this is {}", val.describe()))
            .label(declared, "declared here")
            .help(
                "leave out the annotation, or compute it from constexprs: a plain local variable is a run-time value",
            );
        self.report(d);
    }

    fn exec_return(&mut self, value: Option<&'a Expr>, span: Span) -> R<Flow<'a>> {
        let val = match value {
            Some(expr) => {
                let val = self.eval(expr)?;
                self.span = span;
                if self.host() { val } else { self.decay(val, expr.span)? }
            }
            None => Val::NONE,
        };
        if self.frame().loops > 0 {
            return self.error(
                Code::UNSUPPORTED,
                span,
                "`return` inside of a run-time loop does not work",
                "put the condition into `while`, or guard the body with `if`",
            );
        }
        Ok(Flow::Returned(Return { val, span }))
    }

    fn exec_assert(&mut self, test: &'a Expr, msg: Option<&'a Expr>, span: Span) -> R<()> {
        let arg = self.eval_arg(test)?;
        let msg = match msg {
            Some(expr) => Some(self.eval_arg(expr)?),
            None => None,
        };
        self.span = span;
        let text = match &msg {
            Some(arg) => arg.val.to_string(),
            None => String::new(),
        };
        if self.host() {
            if !self.truth(&arg.val, arg.span)? {
                return self.error(Code::STATIC_ASSERT, span, format!("assertion failed: {text}"), "");
            }
            return Ok(());
        }
        self.assert_on_device(&arg, &text, None)
    }
}

/// The names that statements assign, in order, with the place of the first assignment.
pub(crate) fn assigned<'a>(stmts: &'a [Stmt], out: &mut Vec<(&'a Symbol, Span)>) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| target_names(t, out)),
            StmtKind::AugAssign { target, .. } | StmtKind::AnnAssign { target, .. } => target_names(target, out),
            StmtKind::If { body, orelse, .. } => {
                assigned(body, out);
                assigned(orelse, out);
            }
            StmtKind::For { target, body, .. } => {
                target_names(target, out);
                assigned(body, out);
            }
            StmtKind::While { body, .. } => assigned(body, out),
            StmtKind::With { items, body } => {
                items.iter().filter_map(|i| i.target.as_ref()).for_each(|t| target_names(t, out));
                assigned(body, out);
            }
            _ => {}
        }
    }
}

fn target_names<'a>(target: &'a Expr, out: &mut Vec<(&'a Symbol, Span)>) {
    match &target.kind {
        ExprKind::Name(name) if out.iter().all(|(n, _)| *n != name) => out.push((name, target.span)),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|t| target_names(t, out)),
        ExprKind::Starred(inner) => target_names(inner, out),
        _ => {}
    }
}
