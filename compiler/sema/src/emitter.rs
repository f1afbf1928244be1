//! Building operations and reporting diagnostics: the kernel under construction, the stack of inlined calls, the
//! diagnostics. Nothing here evaluates code.
//!
//! Invariants: an `Err(Fault)` means that a diagnostic was reported already (or that an operand was erroneous and its
//! diagnostic was), so it is not reported again; every operation gets the location of the expression being evaluated,
//! with the chain of calls that led there; code of the standard library is opaque: its operations and diagnostics have
//! the location of the user's call.

use std::collections::HashSet;

use rtc_ir::{Block, Builder, Elem, Kernel, Literal, Loc, LocData, Op, OpKind, Shape, Sites, Type, TypeError, Value};
use rtc_source::{Code, Diagnostic, Severity, SourceMap, Span};
use rtc_syntax::ast::Symbol;

use crate::facts::Facts;
use crate::frames::{Binding, Frame, Gone};
use crate::library::is_library;
use crate::spec::LaunchOptions;
use crate::types::{ElemTy, ir_type, scalar_shape};
use crate::values::{BlockPtr, Const, Descriptor, Tensor, Val};

/// Limit on the operations before passes, per instruction that the kernel may have in the end: constants and operations
/// on shapes produce no instructions.
const OPS_PER_INSTRUCTION: u64 = 2;
/// The maximum length of a tuple that an operator makes.
pub(crate) const MAX_TUPLE: usize = 1 << 16;
/// The maximum number of errors that are reported.
const MAX_ERRORS: usize = 50;

/// Something went wrong and has been reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault;

pub(crate) type R<T> = Result<T, Fault>;

/// A position among the diagnostics.
pub(crate) struct Mark {
    count: usize,
    errors: usize,
    failed: Vec<bool>,
}

/// The properties of the target that the analysis uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetInfo {
    /// The target itself.
    pub target: &'static rtc_abi::Target,
    /// The functions of `libdevice` are calls of NVIDIA's library, which codegen links.
    pub external_libdevice: bool,
}

/// The effects of a configuration's hook on the arguments of the launch.
#[derive(Debug, Default)]
pub(crate) struct HookEffects {
    /// Tensors that it zeroes.
    pub zeroed: Vec<String>,
    /// The blocks of descriptors.
    pub blocks: Vec<(String, Vec<u32>)>,
}

/// The kernel under construction, the stack of inlined calls, the diagnostics.
pub(crate) struct Emitter<'a> {
    pub sources: &'a SourceMap,
    pub target: TargetInfo,
    pub options: &'a LaunchOptions,
    pub kernel: Kernel,
    pub block: Block,
    pub frames: Vec<Frame<'a>>,
    pub diagnostics: Vec<Diagnostic>,
    pub prints: Vec<String>,
    /// Places that lints point at.
    pub lint_sites: Sites,
    /// Run-time values that are declared as constexprs.
    pub declared: HashSet<Value>,
    /// Calls of functions that returned nothing: the call, the name and the definition of the function.
    pub without_return: Vec<(Span, Symbol, Span)>,
    /// The expression that operations are built for.
    pub span: Span,
    /// The effects of the current hook.
    pub hook: Option<HookEffects>,
    /// The facts about expressions, where an editor asks for them.
    pub facts: Option<Facts>,
    /// Compilation ends as soon as possible.
    pub fatal: bool,
    errors: usize,
    versions: u32,
    last_loc: Option<(Span, Option<Loc>, Loc)>,
}

impl<'a> Emitter<'a> {
    /// Adds to a diagnostic about None where it comes from: a function without `return`, if it is the result of one.
    pub(crate) fn explain_none(&self, d: Diagnostic, place: Span) -> Diagnostic {
        match self.without_return.iter().find(|(call, ..)| *call == place) {
            Some((_, name, defined)) => d
                .label(*defined, format!("`{name}` ends without `return`"))
                .help(format!("give `{name}` a `return` of its result")),
            None => d.help(
                "test for it with `is None` before; `tl.store` and other functions without a result give None, too",
            ),
        }
    }

    pub(crate) fn new(
        sources: &'a SourceMap,
        target: TargetInfo,
        options: &'a LaunchOptions,
        kernel: Kernel,
    ) -> Emitter<'a> {
        let block = kernel.body();
        Emitter {
            sources,
            target,
            options,
            kernel,
            block,
            frames: Vec::new(),
            diagnostics: Vec::new(),
            prints: Vec::new(),
            lint_sites: Sites::default(),
            declared: HashSet::new(),
            without_return: Vec::new(),
            span: Span::default(),
            hook: None,
            facts: None,
            fatal: false,
            errors: 0,
            versions: 0,
            last_loc: None,
        }
    }

    // Frames and names.

    pub(crate) fn frame(&self) -> &Frame<'a> {
        self.frames.last().expect("a frame is pushed before anything is evaluated")
    }

    pub(crate) fn frame_mut(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().expect("a frame is pushed before anything is evaluated")
    }

    pub(crate) fn host(&self) -> bool {
        self.frame().host
    }

    pub(crate) fn in_library(&self) -> bool {
        self.frame().library.is_some()
    }

    /// Keeps the value of a place for editors.
    pub(crate) fn note_fact(&mut self, span: Span, val: &Val<'a>) {
        if let Some(facts) = &mut self.facts {
            facts.note(&self.kernel, span, val);
        }
    }

    /// Binds a name in the current function, and names the IR value after it.
    pub(crate) fn bind(&mut self, name: &Symbol, val: Val<'a>, span: Span) {
        self.note_fact(span, &val);
        if let Val::Tensor(Tensor { value, .. })
        | Val::BlockPtr(BlockPtr { value, .. })
        | Val::Descriptor(Descriptor { value, .. }) = &val
            && !self.in_library()
        {
            self.kernel.name_value(*value, name);
        }
        self.versions += 1;
        let binding = Binding { val, span, version: self.versions, gone: None };
        self.frame_mut().scope.insert(name.clone(), binding);
    }

    /// Makes a name unusable; the reason is reported when it is used.
    pub(crate) fn bind_gone(&mut self, name: &Symbol, span: Span, gone: Gone) {
        self.versions += 1;
        let binding = Binding { val: Val::Error, span, version: self.versions, gone: Some(gone) };
        self.frame_mut().scope.insert(name.clone(), binding);
    }

    // Diagnostics.

    /// Where the user sees `span`: itself, or the call into the library that it belongs to.
    pub(crate) fn visible(&self, span: Span) -> Span {
        if !is_library(span.file) {
            return span;
        }
        self.frames.iter().rev().find_map(|f| f.library).unwrap_or(span)
    }

    /// The user's text at a place; nothing for code of the standard library.
    pub(crate) fn source_text(&self, span: Span) -> Option<&'a str> {
        self.sources.get(span.file)?.text.get(span.start as usize..span.end as usize)
    }

    /// Reports an error and returns the failure.
    pub(crate) fn fail<T>(&mut self, diagnostic: Diagnostic) -> R<T> {
        self.report(diagnostic);
        Err(Fault)
    }

    /// Reports an error with a message and, unless it is empty, a help text.
    pub(crate) fn error<T>(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) -> R<T> {
        let mut diagnostic = Diagnostic::error(code, span, message);
        if !help.is_empty() {
            diagnostic = diagnostic.help(help);
        }
        self.fail(diagnostic)
    }

    /// Reports a diagnostic, with the calls that led there.
    pub(crate) fn report(&mut self, mut diagnostic: Diagnostic) {
        let library = diagnostic.labels.iter().any(|l| is_library(l.span.file));
        diagnostic.edits.retain(|edit| !is_library(edit.span.file));
        for label in &mut diagnostic.labels {
            label.span = self.visible(label.span);
        }
        if library {
            // Every part of the library call shows as the same place: keep one label, the others become notes.
            let mut seen: Vec<Span> = Vec::new();
            let mut notes = Vec::new();
            diagnostic.labels.retain(|l| {
                if seen.contains(&l.span) {
                    if !l.text.is_empty() {
                        notes.push(l.text.clone());
                    }
                    return false;
                }
                seen.push(l.span);
                true
            });
            diagnostic.notes.extend(notes);
        }
        for i in (0..self.frames.len()).rev() {
            let frame = &self.frames[i];
            let Some(call) = frame.call else { continue };
            if diagnostic.labels.iter().any(|l| l.span == call) {
                if frame.library.is_some() && library {
                    let note = format!("in `{}` of the standard library", frame.name);
                    if !diagnostic.notes.contains(&note) {
                        diagnostic.notes.push(note);
                    }
                }
                continue;
            }
            diagnostic = diagnostic.label(call, format!("in this call of `{}`", frame.name));
        }
        let is_error = diagnostic.severity == Severity::Error;
        let known = self.diagnostics.iter().any(|d| {
            d.code == diagnostic.code
                && d.labels.first() == diagnostic.labels.first()
                && d.message == diagnostic.message
        });
        if is_error {
            self.errors += 1;
            for frame in &mut self.frames {
                frame.failed = true;
            }
            if self.errors > MAX_ERRORS {
                self.fatal = true;
                return;
            }
        }
        if !known {
            self.diagnostics.push(diagnostic);
        }
    }

    pub(crate) fn warn(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) {
        if self.in_library() {
            return;
        }
        let mut diagnostic = Diagnostic::warning(code, span, message);
        if !help.is_empty() {
            diagnostic = diagnostic.help(help);
        }
        self.report(diagnostic);
    }

    /// Reports what a construct costs, as a remark.
    pub(crate) fn cost(&mut self, span: Span, message: String) {
        if !self.in_library() {
            self.report(Diagnostic::remark(Code::COST, span, message));
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The diagnostics so far, to return to.
    pub(crate) fn mark(&self) -> Mark {
        let failed = self.frames.iter().map(|f| f.failed).collect();
        Mark { count: self.diagnostics.len(), errors: self.errors, failed }
    }

    /// Drops the diagnostics since then, and returns the first of them.
    pub(crate) fn back_to(&mut self, mark: Mark) -> Option<Diagnostic> {
        let first = self.diagnostics.drain(mark.count..).next();
        self.errors = mark.errors;
        for (frame, failed) in self.frames.iter_mut().zip(mark.failed) {
            frame.failed = failed;
        }
        first
    }

    // Building.

    pub(crate) fn loc(&mut self) -> Loc {
        let span = self.visible(self.span);
        let caller = self.frames.last().and_then(|f| f.caller);
        if let Some((s, c, loc)) = self.last_loc
            && s == span
            && c == caller
        {
            return loc;
        }
        let loc = self.kernel.intern_loc(LocData { span: Some(span), caller });
        self.last_loc = Some((span, caller, loc));
        loc
    }

    /// Builds any operation at the end of the current block.
    pub(crate) fn build(
        &mut self,
        kind: OpKind,
        operands: &[Value],
        optional: &[Option<Value>],
        variadic: &[Value],
        blocks: &[Block],
        types: &[Type],
    ) -> R<Op> {
        if self.fatal {
            return Err(Fault);
        }
        if let Frame { host: true, def: Some(def), .. } = self.frame() {
            let message = format!("the constexpr function `{}` computes with a run-time value", def.name.text);
            let span = self.span;
            let d = Diagnostic::error(Code::EXPECTED_CONSTEXPR, span, message)
                .primary("this is known only at run time")
                .help("pass literals, constexpr parameters, shapes or dtypes, or decorate it with `@triton.jit`");
            return self.fail(d);
        }
        let max_ops = self.options.max_instructions.saturating_mul(OPS_PER_INSTRUCTION);
        if self.kernel.op_count() as u64 >= max_ops {
            self.fatal = true;
            let span = self.span;
            return self.fail(
                Diagnostic::error(
                    Code::OUT_OF_RESOURCES,
                    span,
                    format!("the kernel needs more than {max_ops} operations after inlining and unrolling"),
                )
                .help("replace `tl.static_range` by `range`, or raise the limit by the option `max_instructions`"),
            );
        }
        let loc = self.loc();
        let mut builder = Builder::at_end(&mut self.kernel, self.block);
        builder.set_loc(loc);
        let result = builder.build(kind, operands, optional, variadic, blocks, types);
        self.checked(result)
    }

    /// A type error of the IR is a bug of ours, unless it follows from an error of the user's.
    fn checked<T>(&mut self, result: Result<T, TypeError>) -> R<T> {
        match result {
            Ok(x) => Ok(x),
            Err(_) if self.has_errors() => Err(Fault),
            Err(e) => {
                let span = self.span;
                self.error(Code::INTERNAL, span, format!("the compiler built a wrong operation: {e}"), "")
            }
        }
    }

    /// Builds an operation with one result, whose type follows from the operands.
    pub(crate) fn emit(&mut self, kind: OpKind, operands: &[Value]) -> R<Value> {
        let op = self.build(kind, operands, &[], &[], &[], &[])?;
        Ok(self.kernel.result(op, 0))
    }

    /// Builds an operation with one result of a given type.
    pub(crate) fn emit_typed(&mut self, kind: OpKind, operands: &[Value], ty: Type) -> R<Value> {
        let op = self.build(kind, operands, &[], &[], &[], &[ty])?;
        Ok(self.kernel.result(op, 0))
    }

    /// The IR element, or an error when no NVIDIA target has the type.
    pub(crate) fn ir_elem(&mut self, elem: ElemTy) -> R<Elem> {
        match elem.ir() {
            Some(e) => Ok(e),
            None => {
                let span = self.span;
                self.error(
                    Code::UNSUPPORTED_TARGET,
                    span,
                    format!("{elem} is not supported in this architecture: it is a format of other GPUs"),
                    "use `tl.float8e4nv` or `tl.float8e5`",
                )
            }
        }
    }

    /// A number of type `elem`, or a block filled with it.
    pub(crate) fn literal(&mut self, value: Literal, elem: ElemTy, shape: Shape) -> R<Tensor> {
        let ty = ir_type(self.ir_elem(elem)?, shape);
        let value = self.emit_typed(OpKind::Constant { value }, &[], ty)?;
        Ok(Tensor { value, elem, shape })
    }

    /// An integer constant.
    pub(crate) fn int_literal(&mut self, x: i64, elem: ElemTy, shape: Shape) -> R<Tensor> {
        self.literal(Literal::Int(x), elem, shape)
    }

    /// A boolean.
    pub(crate) fn bool_literal(&mut self, x: bool) -> R<Tensor> {
        self.int_literal(i64::from(x), ElemTy::I1, scalar_shape())
    }

    /// A constant as an element of type `elem`; integers wrap, floats round.
    pub(crate) fn const_as(&mut self, c: &Const, elem: ElemTy, shape: Shape) -> R<Tensor> {
        let literal = match (c, elem.is_float()) {
            (Const::Int(i), true) => Literal::float(*i as f64),
            (Const::Int(i), false) => Literal::Int(*i as i64),
            (Const::Bool(b), true) => Literal::float(f64::from(u8::from(*b))),
            (Const::Bool(b), false) => Literal::Int(i64::from(*b)),
            (Const::Float(x), true) => Literal::float(*x),
            (Const::Float(x), false) => Literal::Int(*x as i64),
            _ => Literal::Int(0),
        };
        let literal = match (literal, elem) {
            (Literal::Int(i), ElemTy::I1) => Literal::Int(i64::from(i != 0)),
            (other, _) => other,
        };
        self.literal(literal, elem, shape)
    }

    /// The element-wise result of `kind`, with the shape and element of `like`.
    pub(crate) fn each(&mut self, kind: OpKind, operands: &[Value], like: Tensor) -> R<Tensor> {
        let value = self.emit(kind, operands)?;
        Ok(Tensor { value, ..like })
    }
}
