//! Calls: binding of arguments, inlining of jit functions, evaluation of constexpr functions.
//!
//! Every jit function is inlined. Its operations keep their own place and the chain of calls; functions of the standard
//! library take the place of the user's call instead.

use std::rc::Rc;

use rtc_ir::LocData;
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{self, Expr, ExprKind, FStringPart, Ident, Param, ParamKind, Star, Symbol};

use crate::builtins::{self, Args};
use crate::counterparts;
use crate::declared::{self, Builtin, Namespace};
use crate::definitions::Moment;
use crate::emitter::{Fault, R};
use crate::evaluator::{Evaluator, MAX_CALLS, MAX_RECURSION, STEPS_PER_CALL};
use crate::frames::{Binding, Frame};
use crate::modules::{ModuleId, ModuleRef};
use crate::stmt::{Flow, Todo};
use crate::suggest::suggest;
use crate::types::{ElemTy, TyVal};
use crate::values::{Arg, CallArgs, Function, FunctionKind, Lambda, Val};

impl<'a> Evaluator<'a> {
    pub(crate) fn eval_call(&mut self, func: &'a Expr, args: &'a [ast::Arg], span: Span) -> R<Val<'a>> {
        let callee = self.eval_arg(func)?;
        if let (ExprKind::Attribute { attr, value }, Val::Const(_)) = (&func.kind, &callee.val)
            && &*attr.text == "numel"
            && matches!(self.eval(value)?, Val::Tensor(t) if matches!(t.elem, ElemTy::Ptr(_)))
        {
            let d =
                Diagnostic::error(Code::NOT_CALLABLE, span, "a pointer does not know how many elements lie behind it")
                    .label(value.span, "this is a pointer")
                    .help("pass the number of elements to the kernel as an argument");
            return self.fail(d);
        }
        let mut call = CallArgs::default();
        for arg in args {
            match arg.star {
                Star::None => {
                    if matches!(&callee.val, Val::Builtin(b) if matches!(b.name, "print" | "device_print")) {
                        self.printable(&arg.value)?;
                    }
                    let val = self.eval_arg(&arg.value)?;
                    match &arg.name {
                        Some(name) => call.named.push((name.clone(), val)),
                        None => call.positional.push(val),
                    }
                }
                Star::Star => match self.eval(&arg.value)? {
                    Val::Tuple(t) => {
                        call.positional.extend(t.items.iter().map(|v| Arg::new(v.clone(), arg.span)));
                    }
                    other => {
                        let text = other.describe();
                        let d = Diagnostic::error(
                            Code::TYPE_MISMATCH,
                            arg.span,
                            format!("`*` in a call needs a tuple, not {text}"),
                        )
                        .primary(format!("this is {text}"))
                        .help("pass the value without `*`");
                        return self.fail(d);
                    }
                },
                Star::DoubleStar => {
                    return self.error(
                        Code::UNSUPPORTED,
                        arg.span,
                        "`**` in a call does not work in kernels",
                        "write the keyword arguments out",
                    );
                }
            }
        }
        self.span = span;
        self.call_value(&callee.val, callee.span, call, span)
    }

    /// An f-string that is printed on the device must not have values of the device: its text is made while compiling.
    fn printable(&mut self, text: &'a Expr) -> R<()> {
        let ExprKind::FString(parts) = &text.kind else { return Ok(()) };
        for part in parts {
            if let FStringPart::Hole { value, .. } = part
                && let Val::Tensor(t) = self.eval(value)?
            {
                let d = Diagnostic::error(
                    Code::EXPECTED_CONSTEXPR,
                    value.span,
                    "an f-string can only have values that are known while compiling",
                )
                .primary(format!("this is {t}, known only at run time"))
                .help("pass the value behind the text: `tl.device_print(\"text\", value)`");
                return self.fail(d);
            }
        }
        Ok(())
    }

    pub(crate) fn call_value(
        &mut self,
        callee: &Val<'a>,
        callee_span: Span,
        args: CallArgs<'a>,
        span: Span,
    ) -> R<Val<'a>> {
        match callee {
            Val::Builtin(b) => self.call_builtin(b, args, span),
            Val::Function(f) => self.call_function(*f, args, span),
            Val::Method(m) => {
                let mut args = args;
                args.positional.insert(0, Arg::new(m.0.clone(), callee_span));
                args.method = true;
                self.call_value(&m.1, callee_span, args, span)
            }
            Val::Lambda(l) => self.call_lambda(*l, args, span),
            Val::Class(class, module) => self.construct(class, *module, args, span),
            Val::Record(record) => self.construct_record(record, args, span),
            Val::Type(TyVal::Elem(_)) if matches!(args.positional.first(), Some(Arg { val: Val::Type(_), .. })) => {
                let text = callee.describe();
                let d = Diagnostic::error(Code::NOT_CALLABLE, span, "a type is called with another type")
                    .label(callee_span, format!("this is {text}"))
                    .help("cast with `x.to(dtype)`; `x.type` and `x.dtype` are the type that `x` has");
                self.fail(d)
            }
            Val::Type(TyVal::Elem(elem)) if args.positional.len() == 1 => {
                let t = self.tensor(&args.positional[0], "the value of a cast")?;
                Ok(Val::Tensor(self.cast(t, *elem)?))
            }
            Val::Type(TyVal::Constexpr) if args.positional.len() == 1 => {
                Ok(args.positional[0].val.clone().into_constexpr())
            }
            other => {
                let text = other.describe();
                let mut d = Diagnostic::error(Code::NOT_CALLABLE, span, format!("{text} cannot be called"))
                    .label(callee_span, format!("this is {text}"));
                if let Val::Module(m) = other {
                    let place = if self.host() { "while compiling" } else { "in a kernel" };
                    d.message = format!("`{m}` cannot be called {place}");
                    d.labels.truncate(1);
                    d = d.help(self.counterpart(m).unwrap_or_else(|| {
                        format!(
                            "nothing is known of `{m}`; kernels can call `tl` functions and `@triton.jit` functions"
                        )
                    }));
                } else if let Val::Const(_) = other {
                    d = d.help("it is a value, not a function: leave out the parentheses");
                } else if let Val::Tensor(_) = other {
                    d = d.help(
                        "take the element that is meant by an offset: `tl.load(ptr + i)`, or write `*` to multiply",
                    );
                }
                self.fail(d)
            }
        }
    }

    /// The replacement for a function or constant of a library that kernels cannot use.
    pub(crate) fn counterpart(&self, module: &ModuleRef) -> Option<String> {
        let ModuleRef::Unknown(path) = module else { return None };
        let in_language = |name: &str| {
            declared::find(Namespace::Language, name).is_some() || self.function_of_library(name).is_some()
        };
        counterparts::of_library(path, in_language)
    }

    fn call_builtin(&mut self, b: &'static Builtin, call: CallArgs<'a>, span: Span) -> R<Val<'a>> {
        let args = Args::bind(self.cx(), b, call, span)?;
        self.span = span;
        let result = match builtins::implementation(b) {
            Some(run) => run(self.cx(), &args),
            None => self.error(Code::INTERNAL, span, format!("`{}` is declared only", b.name), ""),
        };
        self.span = span;
        result
    }

    fn call_function(&mut self, f: Function<'a>, args: CallArgs<'a>, span: Span) -> R<Val<'a>> {
        let host = match f.kind {
            FunctionKind::Jit => false,
            FunctionKind::Constexpr => true,
            FunctionKind::Host if self.host() => true,
            FunctionKind::Host => {
                let name = &f.def.name;
                let d = Diagnostic::error(
                    Code::NOT_CALLABLE,
                    span,
                    format!("`{}` is a host function and cannot be called in a kernel", name.text),
                )
                .label(name.span, "defined here without `@triton.jit`")
                .help("decorate it with `@triton.jit`, or with `@triton.constexpr_function` if it computes constants");
                return self.fail(d);
            }
        };
        self.check_noinline(f, &args)?;
        self.check_decorators(f)?;
        self.inline(f, args, span, host)
    }

    /// Refuses `@trition.jit`: a decorator whose module is not defined and is nearly `triton`.
    pub(crate) fn check_decorators(&mut self, f: Function<'a>) -> R<()> {
        let Some(file) = self.world.user_file(f.module) else { return Ok(()) };
        for decorator in &f.def.decorators {
            let name = match &decorator.kind {
                ExprKind::Call { func, .. } => func.dotted_name(),
                _ => decorator.dotted_name(),
            };
            let Some((root, rest)) = name.as_deref().and_then(|name| name.split_once('.')) else { continue };
            if file.definitions.last(root).is_none() && suggest(root, ["triton"]).is_some() {
                let message = format!("the name `{root}` is not defined");
                let span = decorator.span;
                let wrong = Span { end: span.start + root.len() as u32, ..span };
                let d = Diagnostic::error(Code::UNDEFINED_NAME, span, message);
                return self.fail(d.help(format!("did you mean `@triton.{rest}`?")).edit(wrong, "triton"));
            }
        }
        Ok(())
    }

    fn check_noinline(&mut self, f: Function<'a>, args: &CallArgs<'a>) -> R<()> {
        if !f.noinline {
            return Ok(());
        }
        let all = args.positional.iter().chain(args.named.iter().map(|(_, a)| a));
        for arg in all {
            if let Val::Tensor(t) = &arg.val
                && t.shape.rank() > 0
            {
                let d = Diagnostic::error(
                    Code::UNSUPPORTED,
                    arg.span,
                    format!("`{}` is `noinline` and takes scalars only", f.def.name.text),
                )
                .primary(format!("this is {t}"))
                .help("leave out `noinline=True`");
                return self.fail(d);
            }
        }
        Ok(())
    }

    /// Runs the body of a function in a frame of its own.
    fn inline(&mut self, f: Function<'a>, args: CallArgs<'a>, span: Span, host: bool) -> R<Val<'a>> {
        let name = &f.def.name;
        if host {
            self.steps(STEPS_PER_CALL, span)?;
        }
        let inside = self.frames.iter().filter(|fr| fr.def.is_some_and(|d| std::ptr::eq(d, f.def))).count();
        let limit = if host { 500 } else { MAX_RECURSION };
        if inside >= limit || (!host && self.frames.len() > MAX_CALLS) {
            self.fatal = true;
            let mut d = Diagnostic::error(
                Code::RECURSION,
                span,
                if inside >= limit {
                    format!("`{}` calls itself", name.text)
                } else {
                    format!("more than {MAX_CALLS} calls are inside each other")
                },
            );
            if !self.world.is_library(f.module) {
                d = d.label(name.span, "defined here");
            }
            return self.fail(d.help("write a loop: every call is inlined, so recursion never ends"));
        }
        let moment = self.world.moment_of(f.module, f.def);
        let mut bound = self.bind_arguments(&name.text, name.span, &f.def.params, (f.module, moment), args, span)?;
        let library_module = self.world.is_library(f.module);
        if let Some(module) = self.world.library_module(f.module).filter(|_| !self.in_library()) {
            self.check_library_call(module.name, &name.text, &mut bound, span)?;
        }
        let visible = self.visible(span);
        let outer = self.frame();
        let (outer_library, outer_caller) = (outer.library, outer.caller);
        let library = if library_module { Some(outer_library.unwrap_or(visible)) } else { None };
        let caller = if library_module {
            outer_caller
        } else {
            Some(self.kernel.intern_loc(LocData { span: Some(visible), caller: outer_caller }))
        };
        let mut frame = Frame {
            module: f.module,
            moment: if host { self.moment_in(f.module) } else { None },
            name: name.text.clone(),
            def: Some(f.def),
            scope: Default::default(),
            host,
            library,
            call: Some(visible),
            caller,
            loops: 0,
            branches: 0,
            static_loops: 0,
            failed: false,
        };
        for ((name, arg), param) in bound.iter().zip(&f.def.params) {
            if *name == param.name.text {
                self.note_fact(param.name.span, &arg.val);
            }
        }
        for (name, arg) in bound {
            frame.scope.insert(name, Binding { val: arg.val, span: arg.span, version: 0, gone: None });
        }
        self.frames.push(frame);
        let flow = self.deeper(span, |cx| Ok(cx.exec(Todo::new(&f.def.body), true)));
        let failed = self.frames.pop().is_some_and(|f| f.failed);
        self.span = span;
        match flow? {
            _ if failed || self.fatal => Err(Fault),
            Flow::Returned(ret) | Flow::Maybe(_, ret) => {
                if matches!(ret.val, Val::Error) {
                    Err(Fault)
                } else {
                    Ok(ret.val)
                }
            }
            _ => {
                if !host {
                    self.without_return.push((span, name.text.clone(), name.span));
                }
                Ok(Val::NONE)
            }
        }
    }

    fn call_lambda(&mut self, l: Lambda<'a>, args: CallArgs<'a>, span: Span) -> R<Val<'a>> {
        let name: Symbol = "lambda".into();
        let bound = self.bind_arguments(&name, span, l.params, (l.module, None), args, span)?;
        self.push_host_frame(l.module, name);
        for (name, arg) in bound {
            self.bind(&name, arg.val, arg.span);
        }
        let result = self.eval(l.body);
        self.frames.pop();
        self.span = span;
        result
    }

    pub(crate) fn push_host_frame(&mut self, module: ModuleId, name: Symbol) {
        let (library, caller) = match self.frames.last() {
            Some(f) => (f.library, f.caller),
            None => (None, None),
        };
        let moment = self.moment_in(module);
        self.frames.push(Frame {
            module,
            moment,
            name,
            def: None,
            scope: Default::default(),
            host: true,
            library,
            call: None,
            caller,
            loops: 0,
            branches: 0,
            static_loops: 0,
            failed: false,
        });
    }

    /// When the module is executed for the code that runs now; none for kernels and what they call.
    pub(crate) fn moment_in(&self, module: ModuleId) -> Option<Moment> {
        self.frames.last().filter(|f| f.host && f.module == module).and_then(|f| f.moment)
    }

    /// Evaluates an expression of a module outside of any function, as it is at a moment.
    pub(crate) fn eval_at(&mut self, module: ModuleId, moment: Option<Moment>, expr: &'a Expr) -> R<Val<'a>> {
        let saved = self.span;
        self.push_host_frame(module, "module".into());
        self.frame_mut().moment = moment;
        let result = self.eval(expr);
        self.frames.pop();
        self.span = saved;
        result
    }

    /// Binds arguments to parameters as Python does.
    pub(crate) fn bind_arguments(
        &mut self,
        name: &Symbol,
        name_span: Span,
        params: &'a [Param],
        (module, moment): (ModuleId, Option<Moment>),
        args: CallArgs<'a>,
        span: Span,
    ) -> R<Vec<(Symbol, Arg<'a>)>> {
        let library = self.world.is_library(module);
        let refuse = |cx: &mut Evaluator<'a>, at: Span, message: String, help: String, instead: Option<&str>| {
            let mut d = Diagnostic::error(Code::WRONG_ARGUMENTS, at, message);
            if let Some(instead) = instead {
                d = d.edit(at, instead);
            }
            if !library && name_span != at {
                d = d.label(name_span, "defined here");
            }
            if !help.is_empty() {
                d = d.help(help);
            }
            cx.fail(d)
        };
        let mut slots: Vec<Option<Arg<'a>>> = vec![None; params.len()];
        let by_position: Vec<usize> = (0..params.len())
            .filter(|i| matches!(params[*i].kind, ParamKind::Positional | ParamKind::PositionalOnly))
            .collect();
        let rest = params.iter().position(|p| p.kind == ParamKind::VarArgs);
        let given = args.positional.len();
        let mut extra = Vec::new();
        for (i, arg) in args.positional.into_iter().enumerate() {
            match (by_position.get(i), rest) {
                (Some(at), _) => slots[*at] = Some(arg),
                (None, Some(_)) => extra.push(arg.val),
                (None, None) => {
                    let count = by_position.len();
                    let message = format!("`{name}` takes {count} arguments, but {given} are given");
                    let names: Vec<String> = params.iter().map(|p| format!("`{}`", p.name.text)).collect();
                    return refuse(self, arg.span, message, format!("its parameters are {}", names.join(", ")), None);
                }
            }
        }
        let names: Vec<String> = params.iter().map(|p| format!("`{}`", p.name.text)).collect();
        let parameters = format!("its parameters are {}", names.join(", "));
        let takes_more = self.reads_host && params.iter().any(|p| p.kind == ParamKind::KwArgs);
        let mut more: Vec<(Val<'a>, Val<'a>)> = Vec::new();
        for (Ident { text: key, span: key_span }, arg) in args.named {
            let at = params
                .iter()
                .position(|p| p.name.text == key && matches!(p.kind, ParamKind::Positional | ParamKind::KeywordOnly));
            match at {
                Some(i) if slots[i].is_some() => {
                    let message = format!("`{name}` got the argument `{key}` twice");
                    return refuse(self, key_span, message, "pass it by position or by name, not both".into(), None);
                }
                Some(i) => slots[i] = Some(arg),
                None if takes_more => more.push((Val::str(&key), arg.val)),
                None => {
                    let mut named = counterparts::of_keyword(&key).iter().copied();
                    let close = named.find(|n| params.iter().any(|p| &*p.name.text == *n));
                    let close = close.or_else(|| suggest(&key, params.iter().map(|p| &*p.name.text)));
                    let help = close.map_or(parameters, |close| format!("did you mean `{close}`?"));
                    return refuse(self, key_span, format!("`{name}` has no parameter `{key}`"), help, close);
                }
            }
        }
        let mut bound = Vec::with_capacity(params.len());
        let mut missing = Vec::new();
        for (i, param) in params.iter().enumerate() {
            let arg = match (slots[i].take(), &param.default, param.kind) {
                (_, _, ParamKind::VarArgs) => Arg::new(Val::tuple(std::mem::take(&mut extra)), span),
                (_, _, ParamKind::KwArgs) if takes_more => {
                    Arg::new(Val::Dict(Rc::new(std::mem::take(&mut more))), span)
                }
                (_, _, ParamKind::KwArgs) => Arg::new(Val::tuple(Vec::new()), span),
                (Some(arg), ..) => arg,
                (None, Some(default), _) => {
                    Arg::new(self.eval_at(module, moment, default)?.into_constexpr(), default.span)
                }
                (None, None, _) => {
                    missing.push(format!("`{}`", param.name.text));
                    continue;
                }
            };
            bound.push((param.name.text.clone(), arg));
        }
        if !missing.is_empty() {
            let plural = if missing.len() == 1 { "argument" } else { "arguments" };
            let message = format!("`{name}` needs the {plural} {}", missing.join(", "));
            return refuse(self, span, message, parameters, None);
        }
        Ok(bound)
    }
}
