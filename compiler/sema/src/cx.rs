//! The context of operators and built-in functions: they build operations and report diagnostics with the [`Emitter`],
//! and call back into the evaluator through the few methods of [`Evaluate`].

use std::ops::{Deref, DerefMut};

use rtc_source::{Diagnostic, Span};
use rtc_syntax::ast::Symbol;

use crate::emitter::{Emitter, R};
use crate::modules::ModuleRef;
use crate::values::{Arg, CallArgs, Function, Val};

/// The interface of the evaluator for operators and built-in functions.
pub(crate) trait Evaluate<'a> {
    /// The builder of operations.
    fn emitter(&self) -> &Emitter<'a>;
    /// The same, to build with.
    fn emitter_mut(&mut self) -> &mut Emitter<'a>;
    /// Calls a function.
    fn call(&mut self, callee: &Val<'a>, callee_span: Span, args: CallArgs<'a>, span: Span) -> R<Val<'a>>;
    /// `value.name`.
    fn attribute(&mut self, value: &Arg<'a>, name: &Symbol, span: Span) -> R<Val<'a>>;
    /// `module.name`; `None` if there is no such member.
    fn module_member(&mut self, module: &ModuleRef, name: &Symbol) -> R<Option<Val<'a>>>;
    /// A function of the library's common namespace.
    fn library_function(&self, name: &str) -> Option<Function<'a>>;
}

/// The context of operators and built-in functions.
pub(crate) type Cx<'a> = dyn Evaluate<'a> + 'a;

impl<'a> Deref for Cx<'a> {
    type Target = Emitter<'a>;

    fn deref(&self) -> &Emitter<'a> {
        self.emitter()
    }
}

impl<'a> DerefMut for Cx<'a> {
    fn deref_mut(&mut self) -> &mut Emitter<'a> {
        self.emitter_mut()
    }
}

impl<'a> Cx<'a> {
    /// Calls with positional arguments only.
    pub(crate) fn call_positional(&mut self, callee: &Val<'a>, args: Vec<Arg<'a>>, span: Span) -> R<Val<'a>> {
        self.call(callee, span, CallArgs { positional: args, ..CallArgs::default() }, span)
    }

    /// `value.name` without its diagnostics; `None` if there is no such attribute.
    pub(crate) fn attribute_if_any(&mut self, value: &Arg<'a>, name: &Symbol, span: Span) -> Option<Val<'a>> {
        let mark = self.mark();
        let result = self.attribute(value, name, span);
        let _: Option<Diagnostic> = self.back_to(mark);
        result.ok()
    }
}
