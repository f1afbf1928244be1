//! Checks of arguments: a constant, an integer, a type, a shape. Everything else is refused.

use std::rc::Rc;

use rtc_ir::Shape;
use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{Stmt, StmtKind};

use crate::counterparts;
use crate::emitter::{Emitter, Fault, R};
use crate::types::{ElemTy, TyVal};
use crate::values::{Arg, Const, Range, Val};

/// The replacement for a step of 0.
pub(crate) const NO_STEP: &str = "leave the step out, or give the number to count by";

impl<'a> Emitter<'a> {
    /// An argument that must be a compile-time constant.
    pub(crate) fn const_arg(&mut self, arg: &Arg<'a>, what: &str) -> R<Const> {
        match &arg.val {
            Val::Const(c) => Ok(c.clone()),
            Val::Error => Err(Fault),
            other => {
                let text = other.describe();
                let (message, help) = self.not_constexpr(other, arg.span, what);
                let label = match other {
                    Val::Tensor(_) | Val::BlockPtr(_) | Val::Descriptor(_) => {
                        format!("this is {text}, known only at run time")
                    }
                    _ => format!("this is {text}"),
                };
                let help = match other {
                    Val::Tuple(_) => format!("{what} is one value; for several call the function once for each"),
                    _ => help,
                };
                self.fail(Diagnostic::error(Code::EXPECTED_CONSTEXPR, arg.span, message).primary(label).help(help))
            }
        }
    }

    /// The explanation of a run-time value where a constant is needed: it depends on the origin of the name.
    fn not_constexpr(&self, val: &Val<'a>, span: Span, what: &str) -> (String, String) {
        let name = self.sources.get(span.file).map_or("", |_| self.sources.text(span));
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.is_empty();
        if !is_name || self.in_library() {
            let help = "pass a literal, a `tl.constexpr` parameter or an expression of these".to_string();
            return (format!("{what} must be a constexpr"), help);
        }
        let parameter = self.frame().def.and_then(|def| def.params.iter().find(|p| &*p.name.text == name));
        let declared = matches!(val, Val::Tensor(t) if self.declared.contains(&t.value));
        let rebound = parameter.and_then(|p| p.annotation.as_ref()).is_some_and(crate::values::is_constexpr);
        let help = if rebound {
            format!(
                "an assignment to `{name}` made it a run-time value; take a new name: `{name}2: tl.constexpr = ...`"
            )
        } else if declared {
            format!("compute `{name}` from constexprs only")
        } else if self.frame().def.is_some_and(|def| counts_a_loop(&def.body, name)) {
            format!(
                "`{name}` counts a run-time loop; it is a constant in `for {name} in tl.static_range(...)`, which is unrolled"
            )
        } else if parameter.is_some() {
            format!("annotate the parameter and pass a constant: `{name}: tl.constexpr`")
        } else {
            format!("a plain assignment makes a run-time value; declare the constant: `{name}: tl.constexpr = ...`")
        };
        (format!("`{name}` is not a constexpr, but {what} must be one"), help)
    }

    /// An argument that must be a compile-time integer.
    pub(crate) fn int_of(&mut self, arg: &Arg<'a>, what: &str) -> R<i128> {
        match self.const_arg(arg, what)? {
            Const::Int(i) => Ok(i),
            Const::Bool(b) => Ok(i128::from(b)),
            other => {
                let text = Val::Const(other).describe();
                let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, format!("{what} must be an integer"))
                    .primary(format!("this is {text}"));
                // Reductions of the standard library hand their arguments on.
                let frame = self.frame();
                let library = frame.library.and_then(|_| counterparts::of_arguments(&frame.name));
                let own = what.rsplit('`').nth(1).and_then(counterparts::of_arguments);
                self.fail(d.help(library.or(own).unwrap_or("write a whole number that is known while compiling")))
            }
        }
    }

    /// Python's truth of a value that is known while compiling.
    pub(crate) fn truth(&mut self, val: &Val<'a>, span: Span) -> R<bool> {
        match val {
            Val::Const(c) => Ok(crate::const_eval::truth(c)),
            Val::Tuple(t) => Ok(!t.items.is_empty()),
            Val::Tensor(t) => {
                let d = Diagnostic::error(Code::EXPECTED_CONSTEXPR, span, "a compile-time condition is needed here")
                    .primary(format!("this is {t}, known only at run time"));
                self.fail(d)
            }
            Val::Module(crate::modules::ModuleRef::Unknown(path)) => {
                let message = format!("nothing is known of `{path}`, so it cannot be a condition");
                self.error(Code::EXPECTED_CONSTEXPR, span, message, "write the value that it has where the kernel runs")
            }
            Val::Dict(d) => Ok(!d.is_empty()),
            _ => Ok(true),
        }
    }

    /// Reports that a value cannot be iterated over.
    pub(crate) fn not_iterable<T>(&mut self, val: &Val<'a>, span: Span) -> R<T> {
        let text = val.describe();
        let d = Diagnostic::error(Code::TYPE_MISMATCH, span, format!("{text} cannot be iterated over"))
            .primary(format!("this is {text}"))
            .help("loops run over `range`, `tl.range`, `tl.static_range` and tuples");
        self.fail(d)
    }

    /// The numbers of a range whose bounds are constants.
    pub(crate) fn range_items(&mut self, r: &Rc<Range<'a>>, span: Span) -> R<Vec<Val<'a>>> {
        let mut numbers = [0i128; 3];
        let parts = [(&r.start, "start"), (&r.stop, "stop"), (&r.step, "step")];
        for (i, (val, what)) in parts.into_iter().enumerate() {
            let arg = Arg::new(val.clone(), r.spans[i]);
            numbers[i] = self.int_of(&arg, &format!("the {what} of a static range"))?;
        }
        let [start, stop, step] = numbers;
        if step == 0 {
            return self.error(Code::BAD_VALUE, r.spans[2], "the step of a range cannot be 0", NO_STEP);
        }
        let distance = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
        let count = if distance <= 0 { 0 } else { (distance - 1) / step.unsigned_abs() as i128 + 1 };
        // Each iteration produces at least one instruction, if it produces any.
        let limit = i128::from(self.options.max_instructions);
        if count > limit {
            return self.error(
                Code::OUT_OF_RESOURCES,
                span,
                format!("this loop would be unrolled {count} times, more than the {limit} that are allowed"),
                "use `range` or `tl.range(..., loop_unroll_factor=n)` instead of `tl.static_range`",
            );
        }
        Ok((0..count).map(|i| Val::int(start + i * step)).collect())
    }

    /// An element type.
    pub(crate) fn type_of(&mut self, arg: &Arg<'a>, what: &str) -> R<ElemTy> {
        match &arg.val {
            Val::Type(TyVal::Elem(elem)) => Ok(*elem),
            Val::Type(TyVal::Block(elem, _)) => Ok(*elem),
            Val::Const(Const::Str(name)) => match crate::spec::ValueType::parse(name) {
                Some(ty) => Ok(ty.into()),
                None => self.not_a_type(arg, what),
            },
            Val::Error => Err(Fault),
            _ => self.not_a_type(arg, what),
        }
    }

    fn not_a_type<T>(&mut self, arg: &Arg<'a>, what: &str) -> R<T> {
        let text = arg.val.describe();
        let d = Diagnostic::error(Code::TYPE_MISMATCH, arg.span, format!("{what} must be a type"))
            .primary(format!("this is {text}"))
            .help("write a type such as `tl.float32` or `x.dtype`");
        self.fail(d)
    }

    /// Compile-time integers: one sequence, or separate arguments.
    pub(crate) fn ints_of(&mut self, args: &[Arg<'a>], what: &str) -> R<Vec<i128>> {
        if let [only] = args
            && let Val::Tuple(t) = &only.val
        {
            let items: Vec<Arg<'a>> = t.items.iter().map(|v| Arg::new(v.clone(), only.span)).collect();
            return items.iter().map(|a| self.int_of(a, &format!("a size in {what}"))).collect();
        }
        args.iter().map(|a| self.int_of(a, what)).collect()
    }

    /// A shape given as a sequence.
    pub(crate) fn shape_of(&mut self, arg: &Arg<'a>, what: &str) -> R<Shape> {
        match &arg.val {
            Val::Tuple(_) => {
                let dims = self.ints_of(std::slice::from_ref(arg), what)?;
                self.shape(&dims, arg.span)
            }
            Val::Error => Err(Fault),
            other => {
                let text = other.describe();
                let d = Diagnostic::error(
                    Code::TYPE_MISMATCH,
                    arg.span,
                    format!("{what} must be a tuple or list of sizes"),
                )
                .primary(format!("this is {text}"))
                .help("write `[n]` or `(n,)` for one dimension");
                self.fail(d)
            }
        }
    }

    /// An axis, counted from the end if it is negative.
    pub(crate) fn axis_of(&mut self, arg: &Arg<'a>, rank: usize, what: &str) -> R<usize> {
        let axis = self.int_of(arg, what)?;
        let wrapped = if axis < 0 { axis + rank as i128 } else { axis };
        if (0..rank as i128).contains(&wrapped) {
            return Ok(wrapped as usize);
        }
        let d = Diagnostic::error(Code::OUT_OF_RANGE, arg.span, format!("invalid axis {axis}"))
            .primary(format!("the block has {}", dimensions(rank)))
            .help("axes count from 0, or from -1 at the end");
        self.fail(d)
    }
}

/// `1 dimension`, `2 dimensions`.
pub(crate) fn dimensions(rank: usize) -> String {
    format!("{rank} dimension{}", if rank == 1 { "" } else { "s" })
}

/// Whether a name is the variable of a loop.
fn counts_a_loop(body: &[Stmt], name: &str) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::For { target, body, orelse, .. } => {
            target.as_name().is_some_and(|own| &**own == name)
                || counts_a_loop(body, name)
                || counts_a_loop(orelse, name)
        }
        StmtKind::If { body, orelse, .. } | StmtKind::While { body, orelse, .. } => {
            counts_a_loop(body, name) || counts_a_loop(orelse, name)
        }
        _ => false,
    })
}
