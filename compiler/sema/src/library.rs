//! The standard library: its text is cut into functions, and a function is parsed when its name is first used.
//!
//! Most kernels need a handful of its hundreds of functions, so every compilation only pays for splitting the text by
//! the first column of each line, once per process. The text has comments and jit functions only; the tests below check
//! that it has nothing else.
//!
//! Every function is a file of its own as far as spans go, so that spans of different functions differ.

use std::collections::HashMap;
use std::sync::OnceLock;

use rtc_source::FileId;
use rtc_syntax::ast::{FunctionDef, Module, StmtKind};

/// Files from here on are functions of the standard library.
const FIRST_FILE: u32 = 0xffff_0000;

/// Whether a file belongs to the standard library.
pub(crate) fn is_library(file: FileId) -> bool {
    file.0 >= FIRST_FILE
}

/// One module of the standard library.
pub(crate) struct LibraryModule {
    pub name: &'static str,
    functions: HashMap<&'static str, LibraryFunction>,
}

struct LibraryFunction {
    /// From its decorator to the next function.
    text: &'static str,
    file: FileId,
    tree: OnceLock<Module>,
}

/// The modules, in lookup order.
pub(crate) fn library() -> &'static [LibraryModule] {
    static LIBRARY: OnceLock<Vec<LibraryModule>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut file = FIRST_FILE;
        let mut module = |(name, text): &(&'static str, &'static str)| {
            let functions = definitions(text).map(|(function, text)| {
                file += 1;
                (function, LibraryFunction { text, file: FileId(file), tree: OnceLock::new() })
            });
            LibraryModule { name, functions: functions.collect() }
        };
        rtc_stdlib::SOURCES.iter().map(&mut module).collect()
    })
}

impl LibraryModule {
    /// Whether the module is a namespace of its own, and not part of the common one.
    pub(crate) fn has_own_namespace(&self) -> bool {
        matches!(self.name, "libdevice" | "triton_helpers")
    }

    /// Whether there is a function of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// The names of all functions, in no order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.functions.keys().copied()
    }

    /// The function of that name.
    pub(crate) fn function(&self, name: &str) -> Option<&FunctionDef> {
        let function = self.functions.get(name)?;
        let tree = function.tree.get_or_init(|| rtc_syntax::parse(function.file, function.text).0);
        tree.body.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::FunctionDef(def) => Some(def),
            _ => None,
        })
    }
}

/// The functions of a text: name, and text from the decorator to the next decorator.
fn definitions(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("\n@").filter_map(|block| {
        let def = block.split('\n').find_map(|line| line.strip_prefix("def "))?;
        let name = &def[..def.find('(')?];
        let at = block.as_ptr() as usize - text.as_ptr() as usize;
        // The split takes the `@` away, except before the first function of a text that begins with one.
        let start = if at > 0 { at - 1 } else { 0 };
        Some((name, &text[start..at + block.len()]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cuts_are_the_functions_that_the_parser_sees() {
        for ((_, text), module) in rtc_stdlib::SOURCES.iter().zip(library()) {
            let (whole, diagnostics) = rtc_syntax::parse(FileId(0), text);
            assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", module.name);
            for stmt in &whole.body {
                let StmtKind::FunctionDef(def) = &stmt.kind else {
                    panic!("{} holds something that is no function: {stmt:?}", module.name);
                };
                let cut = module.function(&def.name.text).expect("every function is found");
                assert!(def.is_jit() && cut.is_jit(), "{}", def.name.text);
                assert_eq!((def.params.len(), def.body.len()), (cut.params.len(), cut.body.len()), "{}", def.name.text);
            }
            assert_eq!(module.names().count(), whole.body.len(), "{}", module.name);
        }
    }

    #[test]
    fn functions_are_parsed_when_asked_for() {
        let text = "# comment\n@triton.jit\ndef f(x):\n    return x\n\n\n@triton.jit\ndef g(x):\n    return x\n";
        let found: Vec<_> = definitions(text).collect();
        assert_eq!(
            found,
            [("f", "@triton.jit\ndef f(x):\n    return x\n\n"), ("g", "@triton.jit\ndef g(x):\n    return x\n")]
        );
        assert!(is_library(library()[0].functions.values().next().expect("not empty").file));
    }
}
