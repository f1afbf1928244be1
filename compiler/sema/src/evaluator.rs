//! The state of evaluation beyond that of [`Emitter`]: files, globals, limits. The evaluated constructs have their own
//! files: statements, expressions, calls.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::Symbol;

use crate::cx::{Cx, Evaluate};
use crate::definitions::Moment;
use crate::emitter::{Emitter, Fault, R};
use crate::modules::{ModuleId, ModuleRef};
use crate::values::{Arg, CallArgs, Function, Val};
use crate::world::World;

/// The maximum depth of nested calls.
pub(crate) const MAX_CALLS: usize = 64;
/// The maximum recursion depth of one function.
pub(crate) const MAX_RECURSION: usize = 8;
/// The maximum number of steps of constexpr functions.
pub(crate) const MAX_STEPS: u64 = 1_000_000;
/// How many steps a call of a constexpr function counts as.
pub(crate) const STEPS_PER_CALL: u64 = 10;
/// The maximum nesting depth of expressions, statements and calls together.
const MAX_DEPTH: u32 = 4000;

/// Evaluates the code of a kernel.
pub(crate) struct Evaluator<'a> {
    pub emitter: Emitter<'a>,
    pub world: &'a World<'a>,
    /// Globals by the moment at which they are read.
    pub globals: HashMap<(ModuleId, Symbol, Option<Moment>), Val<'a>>,
    /// The definitions that are being evaluated.
    pub resolving: Vec<(ModuleId, u32)>,
    /// Whether the host code of autotuning is evaluated, not a kernel.
    pub reads_host: bool,
    /// Steps of constexpr functions so far.
    steps: u64,
    depth: u32,
}

impl<'a> Deref for Evaluator<'a> {
    type Target = Emitter<'a>;

    fn deref(&self) -> &Emitter<'a> {
        &self.emitter
    }
}

impl<'a> DerefMut for Evaluator<'a> {
    fn deref_mut(&mut self) -> &mut Emitter<'a> {
        &mut self.emitter
    }
}

impl<'a> Evaluate<'a> for Evaluator<'a> {
    fn emitter(&self) -> &Emitter<'a> {
        &self.emitter
    }

    fn emitter_mut(&mut self) -> &mut Emitter<'a> {
        &mut self.emitter
    }

    fn call(&mut self, callee: &Val<'a>, callee_span: Span, args: CallArgs<'a>, span: Span) -> R<Val<'a>> {
        self.call_value(callee, callee_span, args, span)
    }

    fn attribute(&mut self, value: &Arg<'a>, name: &Symbol, span: Span) -> R<Val<'a>> {
        self.attribute_of(value, name, span)
    }

    fn module_member(&mut self, module: &ModuleRef, name: &Symbol) -> R<Option<Val<'a>>> {
        self.member_of(module, name)
    }

    fn library_function(&self, name: &str) -> Option<Function<'a>> {
        self.function_of_library(name)
    }
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(world: &'a World<'a>, emitter: Emitter<'a>) -> Evaluator<'a> {
        Evaluator {
            emitter,
            world,
            globals: HashMap::new(),
            resolving: Vec::new(),
            reads_host: false,
            steps: 0,
            depth: 0,
        }
    }

    /// The context for built-in functions and operators.
    pub(crate) fn cx(&mut self) -> &mut Cx<'a> {
        self
    }

    /// Runs `f` one level deeper; refuses when that gets too deep.
    pub(crate) fn deeper<T>(&mut self, span: Span, f: impl FnOnce(&mut Evaluator<'a>) -> R<T>) -> R<T> {
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

    /// Runs `f` without its diagnostics; returns the first of them when it fails.
    pub(crate) fn quietly<T>(
        &mut self,
        f: impl FnOnce(&mut Evaluator<'a>) -> R<T>,
    ) -> Result<T, Option<Box<Diagnostic>>> {
        let mark = self.mark();
        let result = f(self);
        let first = self.back_to(mark);
        result.map_err(|_| first.map(Box::new))
    }
}
