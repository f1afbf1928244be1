//! Which public items the examples of a crate show.
//!
//! A type, a constant or a free function is shown by code that names it. A method is shown by code that calls it, in its own
//! documentation, in another example of its file, or in one that names its type: a `.len()` shows nothing of other types.

use std::path::{Path, PathBuf};

/// The code of an example, without comments, and its file.
struct Example {
    code: String,
    file: PathBuf,
}

/// The items that a line declares.
pub struct Item {
    file: PathBuf,
    line: usize,
    pub name: String,
    /// The type, where the item is part of an `impl`.
    of: Option<String>,
    is_function: bool,
    /// In a module, or in an `impl` that a macro makes, whose type is not known here.
    is_nested: bool,
    /// The code of its own documentation.
    own: String,
}

impl Item {
    fn is_shown_by(&self, code: &str) -> bool {
        let mut uses = occurrences(code, &self.name);
        match &self.of {
            _ if !self.is_function => uses.count() > 0,
            None => uses.any(|(before, after)| (self.is_nested || !before.ends_with('.')) && is_call(after)),
            Some(of) => uses.any(|(before, after)| {
                let path = [of.as_str(), "Self", ">"]
                    .iter()
                    .any(|end| before.strip_suffix("::").is_some_and(|before| before.ends_with(end)));
                path || before.ends_with('.') && is_call(after)
            }),
        }
    }

    /// Its location, for a message.
    pub fn place(&self, root: &Path) -> String {
        let path = self.file.strip_prefix(root).unwrap_or(&self.file);
        let of = self.of.as_ref().map_or(String::new(), |of| format!("{of}::"));
        format!("{}:{} `{of}{}`", path.display(), self.line, self.name)
    }
}

/// The text before and after each occurrence of a name as a whole word.
fn occurrences<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name)
        .map(|(at, _)| (&code[..at], &code[at + name.len()..]))
        .filter(move |(before, after)| !before.ends_with(is_part) && !after.starts_with(is_part))
}

fn is_call(after: &str) -> bool {
    after.starts_with('(') || after.starts_with("::<")
}

/// The items and examples of a crate.
#[derive(Default)]
pub struct Crate {
    pub items: Vec<Item>,
    examples: Vec<Example>,
    /// Types for this crate alone.
    private: Vec<String>,
}

impl Crate {
    /// The items that no example shows.
    pub fn missing(&self) -> impl Iterator<Item = &Item> {
        let is_type = |item: &Item, name: &str| item.of.is_none() && item.name == name;
        let is_private =
            move |name: &String| self.private.contains(name) && !self.items.iter().any(|item| is_type(item, name));
        self.items.iter().filter(move |item| !item.of.as_ref().is_some_and(is_private)).filter(|item| {
            let names_type = |code: &str| item.of.as_ref().is_none_or(|of| occurrences(code, of).count() > 0);
            let shows = |example: &Example| {
                (names_type(&example.code) || example.file == item.file) && item.is_shown_by(&example.code)
            };
            !item.is_shown_by(&item.own) && !self.examples.iter().any(shows)
        })
    }

    /// Adds the declarations and examples of a file. The code after its first tests is not read.
    pub fn read(&mut self, file: &Path, text: &str) {
        let text = text.split("\n#[cfg(test)]\n").next().unwrap_or(text);
        let text = text.split("\n#[cfg(all(test").next().unwrap_or(text);
        let (mut code, mut own) = (None::<String>, String::new());
        let (mut of, mut hidden) = (None, None);
        for (number, line) in text.lines().enumerate() {
            let trimmed = line.trim_start();
            let indent = line.len() - trimmed.len();
            if let Some(doc) = trimmed.strip_prefix("///").or(trimmed.strip_prefix("//!")) {
                if !doc.trim_start().starts_with("```") {
                    if let Some(code) = &mut code {
                        // Not the slashes of an address in a string.
                        code.push_str(doc.split(" //").next().unwrap_or(doc));
                        code.push('\n');
                    }
                } else if let Some(code) = code.take() {
                    own.push_str(&code);
                    self.examples.push(Example { code, file: file.to_owned() });
                } else {
                    code = Some(String::new());
                }
                continue;
            }
            if line.starts_with("impl") || line.starts_with("unsafe impl") {
                of = implemented(line);
            } else if line == "}" {
                of = None;
            }
            // A module for this crate alone holds no items for others.
            if trimmed.starts_with("pub(crate) mod ") || trimmed.starts_with("mod ") {
                hidden = line.ends_with('{').then_some(indent);
            } else if hidden == Some(indent) && trimmed == "}" {
                hidden = None;
            }
            let of_crate = ["pub(crate) ", "pub(super) ", ""].iter().find_map(|word| trimmed.strip_prefix(word));
            if let Some((false, name)) = of_crate.and_then(declared) {
                self.private.push(name.to_owned());
            }
            if let Some((is_function, name)) =
                trimmed.strip_prefix("pub ").and_then(declared).filter(|_| hidden.is_none())
            {
                self.items.push(Item {
                    file: file.to_owned(),
                    line: number + 1,
                    name: name.to_owned(),
                    of: of.clone().filter(|_| indent > 0),
                    is_function,
                    is_nested: indent > 0,
                    own: own.clone(),
                });
            }
            if !trimmed.is_empty() && !trimmed.starts_with("#[") {
                own.clear();
            }
        }
    }
}

/// Whether a declaration, given without its `pub`, is of a function, and the name that it declares.
fn declared(mut rest: &str) -> Option<(bool, &str)> {
    for word in ["const ", "unsafe ", "async "] {
        // `pub const fn`, but `pub const NAME`.
        match rest.strip_prefix(word) {
            Some(after) if ["fn ", "unsafe "].iter().any(|next| after.starts_with(next)) => rest = after,
            _ => {}
        }
    }
    let kinds = ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "static ", "union "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    Some((rest.starts_with("fn "), name))
}

/// The name of the type that an `impl` is of: `Buffer` of `impl<T: Into<u8>> Clone for a::Buffer<T> {`.
fn implemented(line: &str) -> Option<String> {
    let mut rest = line.split_once("impl")?.1;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find(|&(at, c)| {
            match c {
                '<' => depth += 1,
                '>' if !rest[..at].ends_with('-') => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        rest = &rest[end.0 + 1..];
    }
    let own = rest.rsplit(" for ").next()?.trim_start();
    let path = own.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next()?;
    Some(path.rsplit(':').next()?.to_owned())
}

/// Names of `shown` that an example of `text` does not show.
#[cfg(test)]
fn missing_in(text: &str) -> Vec<String> {
    let mut read = Crate::default();
    read.read(Path::new("lib.rs"), text);
    read.missing().map(|item| item.name.clone()).collect()
}

#[test]
fn a_name_in_other_places_shows_nothing() {
    // A comment, a variable, a part of a word, another type's method of another file.
    let item = "pub fn length() {}\n";
    for code in ["// length()", "let length = 1;", "my_length();"] {
        assert_eq!(missing_in(&format!("/// ```\n/// {code}\n/// ```\n{item}")), ["length"], "{code}");
    }
    assert!(missing_in(&format!("/// ```\n/// a::length();\n/// ```\n{item}")).is_empty());
}

#[test]
fn methods_are_shown_with_their_type() {
    let mut read = Crate::default();
    read.read(Path::new("a.rs"), "impl<T: Into<u8>> Clone for A<T> {\n    pub fn len(&self) {}\n}\n");
    read.read(Path::new("b.rs"), "/// ```\n/// B::new().len();\n/// ```\npub struct B;\n");
    assert_eq!(read.missing().map(|item| item.place(Path::new(""))).collect::<Vec<_>>(), ["a.rs:2 `A::len`"]);
    read.read(Path::new("d.rs"), "pub(super) struct D;\nimpl D {\n    pub fn hidden() {}\n}\n");
    read.read(Path::new("c.rs"), "/// ```\n/// A::new().len();\n/// ```\npub struct C;\n/// ```\n/// C\n/// ```\n");
    assert_eq!(read.missing().count(), 0);
}
