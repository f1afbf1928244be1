//! Definitions of names.

use lsp_types::{Position, Range};
use rtc_program::file_candidates;
use rtc_sema::Refers;
use rtc_source::{FileId, Span};

use crate::hover::word_at;
use crate::names::Kind;
use crate::session::Session;

/// A place: the name of a file, and a range in it.
pub type Place = (String, Range);

impl Session {
    /// Where the name at a position is defined, also in an imported file.
    pub fn definition(&mut self, name: &str, position: Position) -> Vec<Place> {
        let Some(id) = self.id(name) else { return Vec::new() };
        let analysis = self.analysis(id);
        let file = self.file(id);
        let offset = file.lines.offset(&file.text, position);
        let Some(word) = word_at(&file.text, offset) else { return Vec::new() };
        let ends_here = |span: Span| span.end as usize == word.1;
        let known =
            analysis.at(offset).filter(|fact| ends_here(fact.span)).find_map(|fact| match fact.refers.as_deref() {
                Some(Refers::Definition(span)) => Some(*span),
                _ => None,
            });
        let spans = match known {
            Some(span) => vec![span],
            None => self.named_definitions(id, offset),
        };
        spans.into_iter().filter_map(|span| self.place(span)).collect()
    }

    /// Definitions by name alone.
    fn named_definitions(&mut self, id: FileId, offset: usize) -> Vec<Span> {
        let names = self.names(id);
        if let Some(member) = names.member_at(offset) {
            let Kind::Import { module, level, item } = &names.bindings[member.binding].kind else { return Vec::new() };
            let whole = match item {
                Some(item) if module.is_empty() => item.clone(),
                Some(item) => format!("{module}.{item}"),
                None => module.clone(),
            };
            return self.in_module(id, &whole, *level, &member.attr.text, 8);
        }
        let Some(found) = names.at(offset) else { return Vec::new() };
        self.definitions_of(id, found.binding, 8)
    }

    /// The definitions of a binding; imports are followed to the file that they name.
    fn definitions_of(&mut self, id: FileId, binding: usize, depth: u32) -> Vec<Span> {
        let names = self.names(id);
        if let Kind::Import { module, level, item } = &names.bindings[binding].kind
            && depth > 0
        {
            let there = match item {
                Some(item) => self.in_module(id, module, *level, item, depth - 1),
                None => self.module_file_of(id, module, *level).map(|file| Span::new(file, 0, 0)).into_iter().collect(),
            };
            if !there.is_empty() {
                return there;
            }
        }
        let all: Vec<Span> = names.places(binding).filter(|o| o.is_definition).map(|o| o.span).collect();
        match names.bindings[binding].kind {
            // Assignments change a variable; the first one defines it.
            Kind::Local | Kind::Global => all.into_iter().take(1).collect(),
            _ => all,
        }
    }

    /// The definitions of a name of a module, or the module of that name in a package.
    fn in_module(&mut self, from: FileId, module: &str, level: u32, item: &str, depth: u32) -> Vec<Span> {
        if let Some(file) = self.module_file_of(from, module, level) {
            let names = self.names(file);
            if let Some(binding) = names.global(item) {
                return self.definitions_of(file, binding, depth);
            }
        }
        let inner = if module.is_empty() { item.to_owned() } else { format!("{module}.{item}") };
        self.module_file_of(from, &inner, level).map(|file| Span::new(file, 0, 0)).into_iter().collect()
    }

    /// The file of a module as a file names it.
    pub(crate) fn module_file_of(&mut self, from: FileId, module: &str, level: u32) -> Option<FileId> {
        let name = self.file(from).name.clone();
        let mut folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        for _ in 1..level {
            folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
        }
        let imports = self.with_imports(from);
        let leaf = module.rsplit('.').next().unwrap_or(module);
        let candidates = file_candidates(module).into_iter().chain(file_candidates(leaf));
        let paths: Vec<String> =
            candidates.map(|c| if folder.is_empty() { c } else { format!("{folder}/{c}") }).collect();
        paths.iter().find_map(|path| imports.iter().map(|(_, id)| *id).find(|id| self.file(*id).name == *path))
    }
}
