//! The functions of the language that need operations of their own. Everything else is a jit function of the standard
//! library.
//!
//! One row per function: its name and its code. The file `NAME.rt` next to a table declares the rows, with parameters
//! and defaults (`../declared.rs`), and documents them (`../reference.rs`). The code uses its arguments by the declared
//! names (`args.rs`).

mod args;
mod atomics;
mod block_pointer;
mod creation;
mod cuda;
mod debug;
mod descriptor;
mod dot;
mod external;
mod host;
mod map;
mod maths;
mod memory;
mod named_tuple;
mod prim;
mod program;
mod python;
mod reduce;
mod select;
mod shape;
mod topk;
mod tuning;

pub(crate) use args::Args;
pub(crate) use external::external;
pub(crate) use tuning::{CONFIG_FIELDS, DICTIONARY_METHODS};

use std::sync::OnceLock;

use crate::cx::Cx;
use crate::declared::{self, Builtin, Namespace};
use crate::emitter::R;
use crate::values::Val;

/// The code of a built-in function.
pub(crate) type BuiltinFn = for<'a> fn(&mut Cx<'a>, &Args<'a>) -> R<Val<'a>>;

/// The code of a function that is declared in the `.rt` file next to the table.
pub(crate) struct Row {
    name: &'static str,
    run: BuiltinFn,
}

/// A row of a table.
const fn row(name: &'static str, run: BuiltinFn) -> Row {
    Row { name, run }
}

/// The tables of a namespace.
fn tables(namespace: Namespace) -> &'static [&'static [Row]] {
    match namespace {
        Namespace::Language => &[
            program::TABLE,
            creation::TABLE,
            shape::TABLE,
            memory::TABLE,
            block_pointer::TABLE,
            atomics::TABLE,
            descriptor::TABLE,
            select::TABLE,
            maths::TABLE,
            dot::TABLE,
            reduce::TABLE,
            map::TABLE,
            debug::TABLE,
            external::TABLE,
        ],
        Namespace::Descriptor => &[descriptor::METHODS],
        Namespace::Type => &[python::TYPE_METHODS],
        Namespace::Constant => &[python::CONSTANT],
        Namespace::Python => &[python::TABLE, host::LOOPS],
        Namespace::Host => &[host::TABLE, tuning::HOST],
        Namespace::Triton => &[python::TRITON],
        Namespace::PyMath => &[python::MATH],
        Namespace::Cuda => &[cuda::TABLE],
        Namespace::TargetInfo => &[cuda::TARGET_INFO],
        Namespace::NamedTuple => &[named_tuple::TABLE],
        Namespace::Tuning => &[tuning::TABLE],
        Namespace::Prim => &[prim::TABLE],
        Namespace::External => &[],
    }
}

/// The code of a function.
pub(crate) fn implementation(b: &Builtin) -> Option<BuiltinFn> {
    // The row of each function, once it has been looked for.
    static FOUND: OnceLock<Vec<OnceLock<Option<BuiltinFn>>>> = OnceLock::new();
    let found = FOUND.get_or_init(|| declared::all().map(|_| OnceLock::new()).collect());
    let Some(run) = found.get(b.index) else { return Some(external::call) };
    *run.get_or_init(|| {
        let mut rows = tables(b.namespace).iter().flat_map(|t| t.iter());
        rows.find(|row| row.name == b.name).map(|row| row.run)
    })
}

/// The names of all rows of a namespace.
pub(crate) fn rows(namespace: Namespace) -> impl Iterator<Item = &'static str> {
    tables(namespace).iter().flat_map(|t| t.iter()).map(|row| row.name)
}
