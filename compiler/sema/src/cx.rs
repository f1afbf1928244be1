//! The context of one compilation: the kernel under construction, the stack of inlined functions, the findings.
//!
//! Invariants: an `Err(Fault)` means that a diagnostic was reported already (or that an operand was erroneous and its
//! diagnostic was), so nobody reports it again; every operation gets the location of the expression being evaluated,
//! with the chain of calls that led there; code of the standard library is opaque: its operations and diagnostics carry
//! the place of the user's call.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use rtc_ir::{Block, Builder, Elem, Kernel, Literal, Loc, LocData, Op, OpKind, Shape, Type, TypeError, Value};
use rtc_source::{Code, Diagnostic, Severity, SourceMap, Span};
use rtc_syntax::ast::{Expr, FunctionDef, Symbol};

use crate::TargetInfo;
use crate::library::is_library;
use crate::lints::Sites;
use crate::resolve::{ModuleId, World};
use crate::spec::LaunchOptions;
use crate::types::{ElemTy, ir_type, scalar_shape};
use crate::values::{Const, Tensor, Val};

/// The most operations that a kernel may have before passes, for each instruction that it may have in the end: constants
/// and operations on shapes become none.
const OPS_PER_INSTRUCTION: u64 = 2;
/// The most calls inside each other.
pub(crate) const MAX_CALLS: usize = 64;
/// How often one function may be inside itself.
pub(crate) const MAX_RECURSION: usize = 8;
/// The most steps of constexpr functions.
pub(crate) const MAX_STEPS: u64 = 1_000_000;
/// What a call of a constexpr function takes of them.
pub(crate) const STEPS_PER_CALL: u64 = 10;
/// The longest tuple that an operator makes.
pub(crate) const MAX_TUPLE: usize = 1 << 16;
/// The deepest nesting of expressions, statements and calls together.
const MAX_DEPTH: u32 = 4000;
/// The most errors that are reported.
const MAX_ERRORS: usize = 50;

/// Something went wrong and has been reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault;

pub(crate) type R<T> = Result<T, Fault>;

/// A value and the expression that it came from.
#[derive(Clone, Debug)]
pub(crate) struct Arg<'a> {
    pub val: Val<'a>,
    pub span: Span,
}

impl<'a> Arg<'a> {
    pub(crate) fn new(val: Val<'a>, span: Span) -> Arg<'a> {
        Arg { val, span }
    }
}

/// Why a name that was assigned cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Assigned in one branch of an `if` only.
    OneBranch,
    /// Assigned in the body of a loop only.
    LoopBody,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) struct Binding<'a> {
    pub val: Val<'a>,
    /// Where it was assigned.
    pub span: Span,
    /// Distinguishes one assignment from another.
    pub version: u32,
    pub gone: Option<Gone>,
}

pub(crate) type Scope<'a> = IndexMap<Symbol, Binding<'a>>;

/// One function on the stack of inlined calls.
pub(crate) struct Frame<'a> {
    pub module: ModuleId,
    pub name: Symbol,
    pub def: Option<&'a FunctionDef>,
    pub scope: Scope<'a>,
    /// Python's own semantics: assignments keep constants.
    pub host: bool,
    /// For library code: the user's call.
    pub library: Option<Span>,
    /// The call, as the user sees it.
    pub call: Option<Span>,
    pub caller: Option<Loc>,
    /// How many dynamic loops are around the current statement.
    pub loops: u32,
    /// How many dynamic branches are around it since the last static loop.
    pub branches: u32,
    /// How many static loops are around it.
    pub static_loops: u32,
    /// An error was found in it.
    pub failed: bool,
}

pub(crate) struct Cx<'a> {
    pub world: &'a World<'a>,
    pub sources: &'a SourceMap,
    pub target: TargetInfo,
    pub options: &'a LaunchOptions,
    pub kernel: Kernel,
    pub block: Block,
    pub frames: Vec<Frame<'a>>,
    pub globals: HashMap<(ModuleId, Symbol), Val<'a>>,
    pub resolving: Vec<(ModuleId, Symbol)>,
    pub diagnostics: Vec<Diagnostic>,
    pub prints: Vec<String>,
    /// Places that lints point at.
    pub lint_sites: Sites,
    /// Run-time values that are declared as constexprs.
    pub declared: HashSet<Value>,
    /// The expression that operations are built for.
    pub span: Span,
    /// Steps of constexpr functions so far.
    pub steps: u64,
    /// Compilation ends as soon as possible.
    pub fatal: bool,
    /// While above 0, static prints are not repeated (second visit of a body).
    errors: usize,
    versions: u32,
    depth: u32,
    last_loc: Option<(Span, Option<Loc>, Loc)>,
}

impl<'a> Cx<'a> {
    pub(crate) fn new(
        world: &'a World<'a>,
        sources: &'a SourceMap,
        target: TargetInfo,
        options: &'a LaunchOptions,
        kernel: Kernel,
    ) -> Cx<'a> {
        let block = kernel.body();
        Cx {
            world,
            sources,
            target,
            options,
            kernel,
            block,
            frames: Vec::new(),
            globals: HashMap::new(),
            resolving: Vec::new(),
            diagnostics: Vec::new(),
            prints: Vec::new(),
            lint_sites: Sites::default(),
            declared: HashSet::new(),
            span: Span::default(),
            steps: 0,
            fatal: false,
            errors: 0,
            versions: 0,
            depth: 0,
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

    /// Binds a name in the current function, and names the IR value after it.
    pub(crate) fn bind(&mut self, name: &Symbol, val: Val<'a>, span: Span) {
        if let Val::Tensor(t) = &val
            && !self.in_library()
        {
            self.kernel.name_value(t.value, name);
        }
        self.versions += 1;
        let binding = Binding { val, span, version: self.versions, gone: None };
        self.frame_mut().scope.insert(name.clone(), binding);
    }

    /// Makes a name unusable, for a reason to be told when it is used.
    pub(crate) fn bind_gone(&mut self, name: &Symbol, span: Span, gone: Gone) {
        self.versions += 1;
        let binding = Binding { val: Val::Error, span, version: self.versions, gone: Some(gone) };
        self.frame_mut().scope.insert(name.clone(), binding);
    }

    /// Runs `f` one level deeper; refuses when that gets too deep.
    pub(crate) fn deeper<T>(&mut self, span: Span, f: impl FnOnce(&mut Cx<'a>) -> R<T>) -> R<T> {
        if self.fatal {
            return Err(Fault);
        }
        if self.depth >= MAX_DEPTH {
            self.fatal = true;
            return self.fail(
                Diagnostic::error(Code::OUT_OF_RESOURCES, span, "the code is nested too deeply to compile")
                    .note(format!("the limit is {MAX_DEPTH} expressions, statements and calls inside each other")),
            );
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Counts a step of compile-time evaluation.
    pub(crate) fn step(&mut self, span: Span) -> R<()> {
        self.steps(1, span)
    }

    /// Counts steps of compile-time evaluation.
    pub(crate) fn steps(&mut self, count: u64, span: Span) -> R<()> {
        self.steps += count;
        if self.steps > MAX_STEPS {
            self.fatal = true;
            return self.fail(Diagnostic::error(
                Code::OUT_OF_RESOURCES,
                span,
                format!("compile-time evaluation takes more than {MAX_STEPS} steps"),
            ));
        }
        Ok(())
    }

    // Findings.

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

    /// Reports an error and stands for it.
    pub(crate) fn fail<T>(&mut self, diagnostic: Diagnostic) -> R<T> {
        self.report(diagnostic);
        Err(Fault)
    }

    /// An error with the usual parts.
    pub(crate) fn error<T>(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) -> R<T> {
        let mut diagnostic = Diagnostic::error(code, span, message);
        if !help.is_empty() {
            diagnostic = diagnostic.help(help);
        }
        self.fail(diagnostic)
    }

    /// Reports a finding, with the calls that led there.
    pub(crate) fn report(&mut self, mut diagnostic: Diagnostic) {
        let library = diagnostic.labels.iter().any(|l| is_library(l.span.file));
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

    /// Reports a global that is no compile-time constant.
    pub(crate) fn not_constant(&mut self, name: &Symbol, expr: &Expr, why: Option<Diagnostic>) -> R<Val<'a>> {
        let mut d = Diagnostic::error(
            Code::EXPECTED_CONSTEXPR,
            self.span,
            format!("the global `{name}` is not a compile-time constant"),
        )
        .primary("used in a kernel")
        .label(expr.span, "this is evaluated on the host only")
        .help(format!("pass it to the kernel as an argument, or define `{name} = tl.constexpr(...)` of a plain value"));
        if let Some(why) = why {
            d = d.note(why.message);
        }
        self.fail(d)
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

    /// Notes what a construct costs, for those who ask.
    pub(crate) fn cost(&mut self, span: Span, message: String) {
        if !self.in_library() {
            self.report(Diagnostic::remark(Code::COST, span, message));
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Runs `f` without its findings; gives them back when it fails.
    pub(crate) fn quietly<T>(&mut self, f: impl FnOnce(&mut Cx<'a>) -> R<T>) -> Result<T, Option<Diagnostic>> {
        let (count, errors) = (self.diagnostics.len(), self.errors);
        let failed: Vec<bool> = self.frames.iter().map(|f| f.failed).collect();
        let result = f(self);
        let first = self.diagnostics.drain(count..).next();
        self.errors = errors;
        for (frame, failed) in self.frames.iter_mut().zip(failed) {
            frame.failed = failed;
        }
        result.map_err(|_| first)
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

    /// A truth value.
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
