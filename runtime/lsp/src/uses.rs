//! References of names and their renaming, in all files that import them.
//!
//! What a function or a variable of a file is called elsewhere is found without types: through imports of it, through
//! attributes of imported files, and through the names of arguments. The files that are looked at are the open ones, and those
//! in the folder of the definition; for a package also those around it.

use lsp_types::{Position, Range, TextEdit};
use rtc_source::{FileId, Span};

use crate::definition::Place;
use crate::names::{Keyword, Kind, Names, Scope};
use crate::session::{Session, stem};

/// A binding of a file.
type Target = (FileId, usize);

/// A place of a name: its span, and the binding by which it is found there; none where the name is looked up elsewhere.
type Use = (Span, Option<usize>);

/// Imports of imports that are followed.
const DEPTH: u32 = 8;

impl Session {
    /// All places of the name at a position.
    pub fn references(&mut self, name: &str, position: Position) -> Vec<Place> {
        let Some((target, _)) = self.target_at(name, position) else { return Vec::new() };
        self.uses(target).into_iter().filter_map(|(span, _)| self.place(span)).collect()
    }

    /// The range of the name at a position, if it can be renamed: not one of a file that is not here.
    pub fn prepare_rename(&mut self, name: &str, position: Position) -> Option<Range> {
        let ((file, binding), span) = self.target_at(name, position)?;
        let names = self.names(file);
        let is_module = matches!(&names.bindings[binding].kind, Kind::Import { .. }) && !is_alias(&names, binding);
        let at = self.file(span.file);
        (!is_module).then(|| at.lines.of_span(&at.text, span))
    }

    /// The edits that give the name at a position another one, by file.
    ///
    /// # Errors
    ///
    /// One plain sentence if the new name is no name or is taken, and if a file imports all names of the definition's.
    pub fn rename(
        &mut self,
        name: &str,
        position: Position,
        new: &str,
    ) -> Result<Vec<(String, Vec<TextEdit>)>, String> {
        let mut chars = new.chars();
        let is_name = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && chars.all(|c| c.is_alphanumeric() || c == '_')
            && !KEYWORDS.contains(&new);
        if !is_name {
            return Err(format!("`{new}` is not a name"));
        }
        if self.prepare_rename(name, position).is_none() {
            return Err("there is nothing to rename here".into());
        }
        let Some((target, _)) = self.target_at(name, position) else { return Ok(Vec::new()) };
        if let Some(file) = self.imports_all(target) {
            return Err(format!("`{file}` imports all names of this file; write the imported names there first"));
        }
        let mut edits: Vec<(FileId, Vec<TextEdit>)> = Vec::new();
        let uses = self.uses(target);
        for (span, binding) in &uses {
            let names = self.names(span.file);
            let file = self.file(span.file);
            let places = || uses.iter().map(|(place, _)| *place).filter(|place| place.file == span.file);
            if binding.is_some_and(|binding| is_taken(&names, binding, new, places())) {
                return Err(match span.file == target.0 {
                    true => format!("`{new}` is already a name there"),
                    false => format!("`{new}` is already a name in `{}`", file.name),
                });
            }
            let edit = TextEdit { range: file.lines.of_span(&file.text, *span), new_text: new.to_owned() };
            match edits.iter_mut().find(|(id, _)| *id == span.file) {
                Some((_, edits)) => edits.push(edit),
                None => edits.push((span.file, vec![edit])),
            }
        }
        Ok(edits.into_iter().map(|(id, edits)| (self.file(id).name.clone(), edits)).collect())
    }

    /// The name at a position: what it refers to, and its span.
    fn target_at(&mut self, name: &str, position: Position) -> Option<(Target, Span)> {
        let id = self.id(name)?;
        let names = self.names(id);
        let file = self.file(id);
        let offset = file.lines.offset(&file.text, position);
        let is_here = |span: Span| span.start as usize <= offset && offset <= span.end as usize;
        if let Some((binding, ident)) = names.renamed.iter().find(|(_, ident)| is_here(ident.span)) {
            return Some((self.imported(id, *binding)?, ident.span));
        }
        if let Some(keyword) = names.keywords.iter().find(|keyword| is_here(keyword.name.span)) {
            return Some((self.parameter(id, keyword)?, keyword.name.span));
        }
        if let Some(member) = names.member_at(offset) {
            return Some((self.member(id, member.binding, &member.attr.text)?, member.attr.span));
        }
        let found = names.at(offset)?;
        Some((self.target(id, found.binding), found.span))
    }

    /// What a binding refers to: itself, or under the same name that of the file from which it is imported.
    fn target(&mut self, id: FileId, binding: usize) -> Target {
        match is_alias(&self.names(id), binding) {
            true => (id, binding),
            false => self.imported(id, binding).unwrap_or((id, binding)),
        }
    }

    /// The binding that `from module import item` takes from another file.
    fn imported(&mut self, id: FileId, binding: usize) -> Option<Target> {
        let (mut id, mut binding) = (id, binding);
        for _ in 0..DEPTH {
            let Kind::Import { module, level, item: Some(item) } = self.names(id).bindings[binding].kind.clone() else {
                return Some((id, binding));
            };
            let file = self.module_file_of(id, &module, level)?;
            (id, binding) = (file, self.names(file).global(&item)?);
        }
        None
    }

    /// The binding of `value.attr`, where `value` is an imported file.
    fn member(&mut self, id: FileId, value: usize, attr: &str) -> Option<Target> {
        let Kind::Import { module, level, item } = self.names(id).bindings[value].kind.clone() else { return None };
        let whole = match item {
            Some(item) if module.is_empty() => item,
            Some(item) => format!("{module}.{item}"),
            None => module,
        };
        let file = self.module_file_of(id, &whole, level)?;
        let binding = self.names(file).global(attr)?;
        self.imported(file, binding)
    }

    /// The parameter that the name of an argument is, of a function of another file.
    fn parameter(&mut self, id: FileId, keyword: &Keyword) -> Option<Target> {
        let (file, function) = match &keyword.callee {
            (binding, None) => self.imported(id, *binding)?,
            (binding, Some(attr)) => self.member(id, *binding, &attr.text)?,
        };
        Some((file, self.names(file).parameter(function, &keyword.name.text)?))
    }

    /// All places of a binding, in its file first.
    fn uses(&mut self, target: Target) -> Vec<Use> {
        let (file, binding) = target;
        let names = self.names(file);
        let mut uses: Vec<Use> = names.places(binding).map(|place| (place.span, Some(binding))).collect();
        if names.bindings[binding].scope == 0 && !is_alias(&names, binding) {
            for id in self.importers(file) {
                self.uses_in(id, target, &mut uses);
            }
        } else if names.function_of(binding).is_some() {
            for id in self.importers(file) {
                for keyword in &self.names(id).keywords {
                    if self.parameter(id, keyword) == Some(target) {
                        uses.push((keyword.name.span, None));
                    }
                }
            }
        }
        uses
    }

    /// The places of a binding of another file.
    fn uses_in(&mut self, id: FileId, target: Target, uses: &mut Vec<Use>) {
        let names = self.names(id);
        let imports = (0..names.bindings.len()).filter(|at| matches!(names.bindings[*at].kind, Kind::Import { .. }));
        for binding in imports.collect::<Vec<_>>() {
            if self.target(id, binding) == target {
                uses.extend(names.places(binding).map(|place| (place.span, Some(binding))));
            }
        }
        for (binding, ident) in &names.renamed {
            if self.imported(id, *binding) == Some(target) {
                uses.push((ident.span, None));
            }
        }
        for member in &names.members {
            if *member.attr.text == *self.names(target.0).bindings[target.1].name
                && self.member(id, member.binding, &member.attr.text) == Some(target)
            {
                uses.push((member.attr.span, None));
            }
        }
    }

    /// A file that imports all names of the file of a target which other files see.
    fn imports_all(&mut self, (file, binding): Target) -> Option<String> {
        if self.names(file).bindings[binding].scope != 0 {
            return None;
        }
        let importers = self.importers(file);
        let found = importers.into_iter().find(|id| {
            let names = self.names(*id);
            names.stars.iter().any(|(module, level)| self.module_file_of(*id, module, *level) == Some(file))
        });
        found.map(|id| self.file(id).name.clone())
    }

    /// The other files that may import a file.
    fn importers(&mut self, file: FileId) -> Vec<FileId> {
        let name = self.file(file).name.clone();
        let mut names = self.open_files();
        if let Some((folder, _)) = name.rsplit_once('/') {
            let beside = self.list(folder);
            let is_package = beside.iter().any(|name| stem(name) == "__init__");
            names.extend(beside);
            if let Some((around, _)) = folder.rsplit_once('/').filter(|_| is_package) {
                names.extend(self.list(around));
            }
        }
        let ids: Vec<FileId> = names.iter().filter_map(|name| self.enter_if_new(name)).collect();
        let mut found: Vec<FileId> = Vec::new();
        for id in ids.into_iter().filter(|id| *id != file) {
            if !found.contains(&id) {
                found.push(id);
            }
        }
        found
    }
}

/// Whether a binding is `name` of `from module import item as name`.
fn is_alias(names: &Names, binding: usize) -> bool {
    names.renamed.iter().any(|(renamed, ident)| *renamed == binding && ident.text != names.bindings[binding].name)
}

/// Whether a new name of a binding means something where that is used, or hides a name that is used beside it.
fn is_taken(names: &Names, binding: usize, new: &str, places: impl Iterator<Item = Span>) -> bool {
    let places: Vec<Span> = places.collect();
    let scope = names.bindings[binding].scope;
    let hides = |scope: &Scope| places.iter().any(|p| scope.span.start <= p.start && p.end <= scope.span.end);
    names.lookup(scope, new).is_some_and(|other| other != binding)
        || names.bindings.iter().any(|b| *b.name == *new && hides(&names.scopes[b.scope]))
}

/// Words that are no names.
pub(crate) const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];
