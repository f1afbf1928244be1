//! The stack of inlined calls, and the values of names in each of them.

use indexmap::IndexMap;
use rtc_ir::Loc;
use rtc_source::Span;
use rtc_syntax::ast::{FunctionDef, Symbol};

use crate::definitions::Moment;
use crate::modules::ModuleId;
use crate::values::Val;

/// Why a name that was assigned cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Assigned in one branch of an `if` only.
    OneBranch,
    /// Assigned in the body of a loop only.
    LoopBody,
}

/// The value of a name.
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
    /// For code that runs while its module is executed: when, so that it sees the globals defined by then.
    pub moment: Option<Moment>,
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
