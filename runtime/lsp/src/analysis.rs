//! The analysis of one file: each kernel for its specialization, and kernels that did not change from the last time.

mod items;
mod known;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use rtc_abi::spec::ConstValue;
use rtc_sema::{ModuleAst, TargetInfo, inspect_kernel};
use rtc_source::{Code, Diagnostic, FileId, Levels, Severity, SourceMap, Span};
use rtc_syntax::ast::{ExprKind, FunctionDef, Module, Symbol};

use crate::assume::assume;
use crate::session::Session;
use crate::specialize::{Choice, Origin, from_comments, from_launch_file, launch_files};

pub(crate) use items::Items;
pub(crate) use known::{Known, Value};

/// Errors that do not depend on the types of arguments, so that they are right for assumed ones, too.
const INDEPENDENT: [Code; 8] = [
    Code::UNDEFINED_NAME,
    Code::NOT_CALLABLE,
    Code::WRONG_ARGUMENTS,
    Code::UNSUPPORTED,
    Code::UNKNOWN_ATTRIBUTE,
    Code::UNUSED_RESULT,
    Code::RECURSION,
    Code::SYNTAX,
];

/// The number of configurations that are kept.
const MAX_CONFIGURATIONS: usize = 1000;

/// The facts and diagnostics of a file.
pub(crate) struct Analysis {
    /// Facts of this file, by their first byte, longer ones first.
    pub(crate) facts: Vec<Known>,
    /// Diagnostics, in the order of the text.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The functions that were analysed on their own: the place of the name, and the specialization.
    pub(crate) choices: Vec<(Span, Rc<Choice>)>,
}

impl Analysis {
    /// The facts at a byte, the innermost first.
    pub(crate) fn at(&self, offset: usize) -> impl Iterator<Item = &Known> {
        let offset = offset as u32;
        let end = self.facts.partition_point(|fact| fact.span.start <= offset);
        self.facts[..end].iter().rev().filter(move |fact| offset <= fact.span.end)
    }

    /// The fact of exactly this place.
    pub(crate) fn of(&self, span: Span) -> Option<&Known> {
        let from = self.facts.partition_point(|fact| fact.span.start < span.start);
        self.facts[from..].iter().take_while(|fact| fact.span.start == span.start).find(|fact| fact.span == span)
    }
}

/// An analysed kernel.
pub(crate) struct Unit {
    /// A hash of all that the result depends on.
    key: u64,
    facts: Vec<Known>,
    diagnostics: Vec<Diagnostic>,
    /// The file as it was.
    items: Rc<Items>,
}

/// The parts of one analysis.
struct Work {
    file: FileId,
    modules: Vec<(String, Rc<Module>)>,
    items: Rc<Items>,
    /// A hash of the imported files.
    imports: u64,
    sources: Option<SourceMap>,
    old: Vec<Rc<Unit>>,
    /// The first configurations of kernels, by a hash of their dependences.
    configurations: HashMap<u64, Option<rtc_abi::tuning::Choice>>,
    new: Vec<Rc<Unit>>,
    /// The functions with facts about their parameters.
    covered: HashSet<Symbol>,
    parameters: HashMap<Span, Symbol>,
    analysed: usize,
}

/// Analyses a file; units of the last time are used again.
pub(crate) fn analyse(session: &mut Session, id: FileId) -> Analysis {
    let found = session.with_imports(id);
    let file = session.file(id);
    let (name, text, tree) = (file.name.clone(), file.text.clone(), file.tree.clone());
    let functions: Vec<&FunctionDef> = tree.functions().into_iter().filter(|f| f.is_jit()).collect();
    let mut diagnostics = file.syntax.clone();
    let (mut choices, wrong) = from_comments(id, &text, &functions);
    diagnostics.extend(wrong);
    let launch = launch_files(&name).into_iter().find_map(|file| {
        let text = session.read(&file)?;
        from_launch_file(&file, &text, &functions)
    });
    choices.extend(launch.filter(|launch| choices.iter().all(|c| c.spec.kernel != launch.spec.kernel)));

    let mut imports = DefaultHasher::new();
    for (name, id) in &found[1..] {
        (name, &session.file(*id).text).hash(&mut imports);
    }
    let modules = found.iter().map(|(name, id)| (name.clone(), session.file(*id).tree.clone())).collect();
    let old = std::mem::take(&mut session.files[id.0 as usize].units);
    let mut work = Work {
        file: id,
        modules,
        items: Rc::new(Items::new(&tree, &text, old.first().map(|unit| &*unit.items))),
        imports: imports.finish(),
        sources: None,
        old,
        configurations: std::mem::take(&mut session.files[id.0 as usize].configurations),
        parameters: functions
            .iter()
            .flat_map(|f| f.params.iter().map(|p| (p.name.span, f.name.text.clone())))
            .collect(),
        covered: HashSet::new(),
        new: Vec::new(),
        analysed: 0,
    };
    let mut made: Vec<(Span, Rc<Choice>)> = Vec::new();
    let mut run = |work: &mut Work, session: &Session, function: &FunctionDef, choice: Choice| {
        work.unit(session, function, &choice);
        made.push((function.name.span, Rc::new(choice)));
    };
    for choice in choices {
        // Of several definitions of a name the last one counts.
        if let Some(function) = functions.iter().rev().find(|f| *f.name.text == *choice.spec.kernel) {
            run(&mut work, session, function, choice);
        }
    }
    // Kernels of which nothing is chosen, then functions that none of the kernels calls.
    for callees in [false, true] {
        for function in &functions {
            let name = &*function.name.text;
            let is_callee = work.items.is_called(name);
            // Of several definitions of a name the last one counts.
            let is_last =
                functions.iter().rev().find(|f| *f.name.text == *name).is_some_and(|f| std::ptr::eq(*f, *function));
            if is_last && is_callee == callees && !work.covered.contains(name) {
                let mut choice = assume(function, &functions);
                work.configure(session, function, &mut choice);
                run(&mut work, session, function, choice);
            }
        }
    }
    diagnostics.extend(work.new.iter().flat_map(|unit| unit.diagnostics.iter().cloned()));
    let facts = known::merge(work.new.iter().map(|unit| unit.facts.as_slice()));
    session.analysed += work.analysed;
    session.files[id.0 as usize].units = work.new;
    session.files[id.0 as usize].configurations = work.configurations;
    Analysis { facts, diagnostics: sorted(diagnostics, id), choices: made }
}

impl Work {
    /// Adds the unit of a kernel: an old one, or a new one.
    fn unit(&mut self, session: &Session, function: &FunctionDef, choice: &Choice) {
        let key = self.key(function, choice);
        let reused = self.old.iter().find(|unit| unit.key == key).and_then(|unit| unit.moved(&self.items));
        let unit = reused.unwrap_or_else(|| {
            self.analysed += 1;
            Rc::new(self.inspect(session, key, choice))
        });
        self.covered.insert(function.name.text.clone());
        self.covered.extend(unit.facts.iter().filter_map(|fact| self.parameters.get(&fact.span).cloned()));
        self.new.push(unit);
    }

    fn key(&self, function: &FunctionDef, choice: &Choice) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.imports.hash(&mut hasher);
        choice.target.name.hash(&mut hasher);
        // A specialization is plain data without a hash of its own.
        format!("{:?} {:?}", choice.spec, choice.sizes).hash(&mut hasher);
        self.items.hash_with_dependences(&function.name.text, &mut hasher);
        hasher.finish()
    }

    /// Gives constexprs the values of the first configuration in the decorators.
    fn configure(&mut self, session: &Session, function: &FunctionDef, choice: &mut Choice) {
        let is_autotuned = function.decorators.iter().any(|decorator| match &decorator.kind {
            ExprKind::Call { func, .. } => func.dotted_name().is_some_and(|name| name.ends_with("autotune")),
            _ => false,
        });
        if !is_autotuned {
            return;
        }
        let key = self.key(function, choice);
        if !self.configurations.contains_key(&key) {
            let sources = self.sources.get_or_insert_with(|| session.sources());
            let modules: Vec<ModuleAst<'_>> = self.modules.iter().map(|(name, ast)| ModuleAst { name, ast }).collect();
            let target = TargetInfo { target: choice.target, external_libdevice: false };
            let tuning = rtc_sema::tuning(sources, &modules, &function.name.text, None, target);
            let first = tuning.ok().and_then(|tuning| tuning.choices.into_iter().next());
            // Keys of earlier texts are of no use any more.
            if self.configurations.len() > MAX_CONFIGURATIONS {
                self.configurations.clear();
            }
            self.configurations.insert(key, first);
        }
        if let Some(Some(first)) = self.configurations.get(&key) {
            let limit = choice.spec.options.max_instructions;
            first.apply(&mut choice.spec.args, &mut choice.spec.options);
            choice.spec.options.max_instructions = limit;
            // A size that is chosen for another parameter is no name for it any more.
            let chosen = |size: u32| first.values.iter().any(|(_, v)| *v == ConstValue::Int(size.into()));
            choice.sizes.retain(|(name, size)| first.value(name).is_none() && !chosen(*size));
        }
    }

    fn inspect(&mut self, session: &Session, key: u64, choice: &Choice) -> Unit {
        let sources = self.sources.get_or_insert_with(|| session.sources());
        let modules: Vec<ModuleAst<'_>> = self.modules.iter().map(|(name, ast)| ModuleAst { name, ast }).collect();
        let target = TargetInfo { target: choice.target, external_libdevice: false };
        let found = inspect_kernel(sources, &modules, &choice.spec, target);
        let assumed = choice.origin == Origin::Assumed;
        let mut diagnostics = found.diagnostics;
        if let (false, Some((kernel, sites))) = (assumed, &found.kernel) {
            diagnostics.extend(rtc_lints::check(kernel, sites, sources));
        }
        let mut diagnostics = Levels::default().apply(diagnostics);
        diagnostics.retain(|d| match d.severity {
            Severity::Error if assumed => INDEPENDENT.contains(&d.code),
            // The limit on the size of kernels is lower here than in the compiler.
            Severity::Error => d.code != Code::OUT_OF_RESOURCES,
            Severity::Warning => !assumed,
            Severity::Note => false,
        });
        let facts = found.facts.into_iter().filter(|fact| fact.span.file == self.file);
        let facts = facts.map(|fact| Known::new(fact, assumed, &choice.sizes)).collect();
        Unit { key, facts, diagnostics, items: self.items.clone() }
    }
}

impl Unit {
    /// The hash of all that the result depends on.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Whether it has a fact of exactly this place.
    pub(crate) fn has(&self, span: Span) -> bool {
        self.facts.iter().any(|fact| fact.span == span)
    }

    /// The unit with the places that its parts have now; `None` if a part is gone.
    fn moved(self: &Rc<Unit>, now: &Rc<Items>) -> Option<Rc<Unit>> {
        if *self.items == **now {
            return Some(self.clone());
        }
        let moves = self.items.moves(now);
        let facts = self.facts.iter().map(|fact| Some(Known { span: moves.span(fact.span)?, ..fact.moved(&moves)? }));
        let diagnostics = self.diagnostics.iter().map(|diagnostic| {
            let mut moved = diagnostic.clone();
            for label in &mut moved.labels {
                label.span = moves.span(label.span)?;
            }
            for edit in &mut moved.edits {
                edit.span = moves.span(edit.span)?;
            }
            Some(moved)
        });
        Some(Rc::new(Unit {
            key: self.key,
            facts: facts.collect::<Option<_>>()?,
            diagnostics: diagnostics.collect::<Option<_>>()?,
            items: now.clone(),
        }))
    }
}

/// In the order of the text, each once. Diagnostics that begin in another file are shown where that is open.
fn sorted(mut diagnostics: Vec<Diagnostic>, file: FileId) -> Vec<Diagnostic> {
    let place = |d: &Diagnostic| d.labels.iter().find(|l| l.span.file == file).map(|l| l.span);
    diagnostics.retain(|d| place(d).is_some());
    diagnostics.sort_by_key(|d| (place(d), d.severity == Severity::Warning));
    let mut seen = HashSet::new();
    diagnostics.retain(|d| seen.insert((d.code, place(d), d.message.clone())));
    diagnostics
}
