//! The open files, and the files that they import.

use std::collections::HashMap;
use std::rc::Rc;

use lsp_types::{Range, TextDocumentContentChangeEvent};
use rtc_abi::tuning::Choice;
use rtc_program::{file_candidates, imports};
use rtc_source::{Diagnostic, FileId, SourceMap, Span};
use rtc_syntax::ast::Module;

use crate::analysis::{self, Analysis, Unit};
use crate::laid::Laid;
use crate::lines::Lines;
use crate::names::Names;

/// Access to files that are not open, by name; names have `/` between folders.
pub trait Files {
    /// The text of a file; `None` if there is none that can be read.
    fn read(&self, name: &str) -> Option<String>;

    /// The names of the sources in a folder, `.py` and `.rt`, in order.
    fn list(&self, folder: &str) -> Vec<String> {
        let _ = folder;
        Vec::new()
    }
}

/// No files but the open ones.
impl Files for () {
    fn read(&self, _: &str) -> Option<String> {
        None
    }
}

/// The most files of one session that are read for imports.
const MAX_FILES: usize = 256;

/// The open files of an editor with their analyses, which are made when an answer needs them.
pub struct Session {
    reader: Box<dyn Files>,
    /// By `FileId`.
    pub(crate) files: Vec<File>,
    by_name: HashMap<String, FileId>,
    /// Files that were looked for and not found.
    absent: std::collections::HashSet<String>,
    /// The number of kernels that were analysed, for tests of the reuse.
    pub(crate) analysed: usize,
    /// Layouts by file and key of the kernel, the oldest first.
    pub(crate) laid: Vec<((FileId, u64), Rc<Laid>)>,
    /// The number of kernels that were taken through the passes.
    pub(crate) laid_out: usize,
}

/// A file of a session.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) text: Rc<str>,
    pub(crate) lines: Rc<Lines>,
    pub(crate) tree: Rc<Module>,
    pub(crate) syntax: Vec<Diagnostic>,
    /// The names of the tree, resolved; made when asked for.
    names: Option<Rc<Names>>,
    is_open: bool,
    /// The last analysis, unless something changed.
    pub(crate) analysis: Option<Rc<Analysis>>,
    /// The analysed kernels, to be used again.
    pub(crate) units: Vec<Rc<Unit>>,
    /// The first configurations of its kernels, by a hash of their dependences.
    pub(crate) configurations: HashMap<u64, Option<Choice>>,
}

impl Session {
    /// No file is open.
    pub fn new(reader: Box<dyn Files>) -> Session {
        let (files, by_name, absent) = Default::default();
        Session { reader, files, by_name, absent, analysed: 0, laid: Vec::new(), laid_out: 0 }
    }

    /// Opens a file, or replaces its text.
    pub fn open(&mut self, name: &str, text: &str) {
        let id = self.enter(name, text);
        self.files[id.0 as usize].is_open = true;
    }

    /// Opens a file with this text, unless it is open with it already.
    pub fn set_text(&mut self, name: &str, text: &str) {
        let is_known = self.id(name).is_some_and(|id| self.file(id).is_open && *self.file(id).text == *text);
        if !is_known {
            self.open(name, text);
        }
    }

    /// Changes the text of an open file: edits in order, or the whole text where an edit has no range.
    pub fn change(&mut self, name: &str, changes: &[TextDocumentContentChangeEvent]) {
        let Some(file) = self.id(name).map(|id| &self.files[id.0 as usize]) else { return };
        let mut text = file.text.to_string();
        for change in changes {
            match change.range {
                None => text.clone_from(&change.text),
                Some(range) => {
                    let lines = Lines::new(&text);
                    let (start, end) = (lines.offset(&text, range.start), lines.offset(&text, range.end));
                    text.replace_range(start..end.max(start), &change.text);
                }
            }
        }
        self.open(name, &text);
    }

    /// Closes a file; imports read it from the disk again.
    pub fn close(&mut self, name: &str) {
        if let Some(id) = self.id(name) {
            self.files[id.0 as usize].is_open = false;
            self.files[id.0 as usize].units.clear();
        }
        self.refresh();
    }

    /// Reads files that are not open again when they are next needed: after something was saved.
    pub fn refresh(&mut self) {
        self.absent.clear();
        for index in 0..self.files.len() {
            let file = &self.files[index];
            // A file that was gone once may have come back under another number.
            if file.is_open || self.id(&file.name) != Some(FileId(index as u32)) {
                continue;
            }
            let name = file.name.clone();
            match self.reader.read(&name) {
                Some(text) if *text != *file.text => drop(self.enter(&name, &text)),
                Some(_) => {}
                // It is gone: nothing is imported from it any more.
                None => drop(self.by_name.remove(&name)),
            }
        }
        self.files.iter_mut().for_each(|file| file.analysis = None);
    }

    /// The names of the open files.
    pub fn open_files(&self) -> Vec<String> {
        self.files.iter().filter(|file| file.is_open).map(|file| file.name.clone()).collect()
    }

    /// How many kernels were analysed since the session began; kernels that did not change are not analysed again.
    pub fn analysed(&self) -> usize {
        self.analysed
    }

    /// The range of a span, with the name of its file.
    pub(crate) fn place(&self, span: Span) -> Option<(String, Range)> {
        let file = self.files.get(span.file.0 as usize)?;
        Some((file.name.clone(), file.lines.of_span(&file.text, span)))
    }

    pub(crate) fn id(&self, name: &str) -> Option<FileId> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn file(&self, id: FileId) -> &File {
        &self.files[id.0 as usize]
    }

    /// The text of a file beside others, such as a launch file.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        match self.id(name) {
            Some(id) => Some(self.file(id).text.to_string()),
            None => self.reader.read(name),
        }
    }

    /// The names of the sources in a folder.
    pub(crate) fn list(&self, folder: &str) -> Vec<String> {
        self.reader.list(folder)
    }

    /// A file by name, read if it is not known yet.
    pub(crate) fn enter_if_new(&mut self, name: &str) -> Option<FileId> {
        if let Some(id) = self.id(name) {
            return Some(id);
        }
        let text = if self.files.len() < MAX_FILES { self.reader.read(name) } else { None }?;
        Some(self.enter(name, &text))
    }

    /// The names of a file, resolved.
    pub(crate) fn names(&mut self, id: FileId) -> Rc<Names> {
        let file = &mut self.files[id.0 as usize];
        file.names.get_or_insert_with(|| Rc::new(Names::new(&file.tree))).clone()
    }

    /// The analysis of a file, as it is now.
    pub(crate) fn analysis(&mut self, id: FileId) -> Rc<Analysis> {
        if let Some(known) = &self.file(id).analysis {
            return known.clone();
        }
        let made = Rc::new(analysis::analyse(self, id));
        self.files[id.0 as usize].analysis = Some(made.clone());
        made
    }

    fn enter(&mut self, name: &str, text: &str) -> FileId {
        let id = match self.id(name) {
            Some(id) => id,
            None => FileId(self.files.len() as u32),
        };
        // The parser refuses larger files, and spans cannot count them.
        let text = if u32::try_from(text.len()).is_ok() { text } else { "" };
        let (tree, syntax) = rtc_syntax::parse(id, text);
        let file = File {
            name: name.to_owned(),
            text: text.into(),
            lines: Rc::new(Lines::new(text)),
            tree: Rc::new(tree),
            syntax,
            names: None,
            is_open: false,
            analysis: None,
            units: Vec::new(),
            configurations: HashMap::new(),
        };
        match self.files.get_mut(id.0 as usize) {
            Some(known) => {
                let (is_open, units) = (known.is_open, std::mem::take(&mut known.units));
                let configurations = std::mem::take(&mut known.configurations);
                *known = File { is_open, units, configurations, ..file };
            }
            None => {
                self.by_name.insert(name.to_owned(), id);
                self.absent.remove(name);
                self.files.push(file);
            }
        }
        // Files that import this one depend on it.
        self.files.iter_mut().for_each(|file| file.analysis = None);
        id
    }

    /// A file and its imports, direct and indirect, each with its dotted name. The file itself comes first.
    pub(crate) fn with_imports(&mut self, main: FileId) -> Vec<(String, FileId)> {
        let name = &self.file(main).name;
        let folder = name.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let mut found = vec![(stem(name).to_owned(), main)];
        let mut at = 0;
        while let Some((module, id)) = found.get(at).cloned() {
            at += 1;
            let tree = self.file(id).tree.clone();
            for candidates in imports(&tree, &module) {
                let known = |name: &str| found.iter().any(|(n, _)| n.trim_end_matches(".__init__") == name);
                if candidates.iter().any(|name| known(name)) {
                    continue;
                }
                let file = candidates.iter().find_map(|name| Some((name, self.module_file(&folder, name)?)));
                if let Some((name, id)) = file {
                    let is_package = stem(&self.file(id).name) == "__init__";
                    found.push((if is_package { format!("{name}.__init__") } else { name.clone() }, id));
                }
            }
        }
        found
    }

    /// The file of a dotted name in a folder.
    fn module_file(&mut self, folder: &str, module: &str) -> Option<FileId> {
        // Python's own packages are no files beside a kernel, and everything imports them.
        if module.is_empty() || matches!(module.split('.').next(), Some("triton" | "rtc" | "torch" | "numpy" | "math"))
        {
            return None;
        }
        file_candidates(module).into_iter().find_map(|candidate| {
            let name = format!("{folder}{candidate}");
            if let Some(id) = self.id(&name) {
                return Some(id);
            }
            if self.absent.contains(&name) || self.files.len() >= MAX_FILES {
                return None;
            }
            match self.reader.read(&name) {
                Some(text) => Some(self.enter(&name, &text)),
                None => {
                    self.absent.insert(name);
                    None
                }
            }
        })
    }

    /// All files, for the compiler.
    pub(crate) fn sources(&self) -> SourceMap {
        let mut sources = SourceMap::new();
        for file in &self.files {
            sources.add(&*file.name, &*file.text);
        }
        sources
    }
}

/// The name of a file without folder and ending.
pub(crate) fn stem(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}
