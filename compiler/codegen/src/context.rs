//! The MLIR context of one compilation: few dialects, no threads, captured
//! messages.
//!
//! Only the dialects that lowering emits are registered (`scf`, `llvm`, `nvvm`), and `arith` and `cf`, into which loops
//! are converted; so the linker drops the rest of MLIR. Creating a context takes about a millisecond; it is used for
//! one compilation on one thread and then dropped.

use std::{cell::RefCell, rc::Rc};

use melior::{Context, dialect::DialectRegistry};

use crate::translate;

/// A context and the diagnostics that MLIR reported in it.
pub(crate) struct MlirContext {
    context: Context,
    diagnostics: Rc<RefCell<Vec<String>>>,
}

impl MlirContext {
    /// Creates a context with the dialects loaded and the capture in place.
    pub(crate) fn new() -> Self {
        let registry = DialectRegistry::new();
        translate::register_dialects(&registry);
        // Threads are off from the start: otherwise each context would begin with a pool.
        let context = Context::new_with_registry(&registry, false);
        context.load_all_available_dialects();
        let diagnostics = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&diagnostics);
        context.attach_diagnostic_handler(move |diagnostic| {
            let mut text = format!("{}: {diagnostic}", diagnostic.location());
            for index in 0..diagnostic.note_count() {
                if let Ok(note) = diagnostic.note(index) {
                    text.push_str(&format!("\n  note: {note}"));
                }
            }
            sink.borrow_mut().push(text);
            true
        });
        MlirContext { context, diagnostics }
    }

    /// The melior context.
    pub(crate) fn get(&self) -> &Context {
        &self.context
    }

    /// Takes the messages reported since the last call.
    pub(crate) fn take_diagnostics(&self) -> Vec<String> {
        std::mem::take(&mut self.diagnostics.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::ir::Module;

    #[test]
    fn diagnostics_are_captured() {
        let cx = MlirContext::new();
        assert!(Module::parse(cx.get(), "nonsense").is_none());
        let diagnostics = cx.take_diagnostics();
        assert!(diagnostics.iter().any(|text| text.contains("nonsense")), "{diagnostics:?}");
        assert!(cx.take_diagnostics().is_empty());
    }

    #[test]
    fn the_dialects_of_lowering_are_loaded() {
        let cx = MlirContext::new();
        for op in ["arith.addi", "scf.for", "cf.br", "llvm.load", "nvvm.shfl.sync"] {
            assert!(cx.get().is_registered_operation(op), "{op}");
        }
    }
}
