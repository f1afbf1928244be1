//! The statements of a file, and which of them a kernel depends on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use rtc_source::{FileId, Span};
use rtc_syntax::ast::{Expr, ExprKind, Module, Stmt, StmtKind, walk_expressions};

/// The statements of a file, at the level of the module.
pub(crate) struct Items {
    file: FileId,
    all: Vec<Item>,
    /// The statements that bind a name.
    by_name: HashMap<String, Vec<usize>>,
    /// The names that functions mention, other than their own.
    called: HashSet<String>,
    /// A hash of all statements that are no functions or classes.
    rest: u64,
}

#[derive(PartialEq)]
struct Item {
    start: u32,
    end: u32,
    hash: u64,
    /// The names that it mentions.
    names: Rc<BTreeSet<String>>,
}

impl PartialEq for Items {
    fn eq(&self, other: &Items) -> bool {
        let places = |items: &Items| items.all.iter().map(|i| (i.start, i.hash)).collect::<Vec<_>>();
        self.file == other.file && places(self) == places(other)
    }
}

impl Items {
    /// The statements of a tree; those of the last time that have not changed are used again.
    pub(crate) fn new(tree: &Module, text: &str, last: Option<&Items>) -> Items {
        let known: HashMap<u64, &Item> = last.iter().flat_map(|last| last.all.iter().map(|i| (i.hash, i))).collect();
        let mut items =
            Items { file: tree.file, all: Vec::new(), by_name: HashMap::new(), called: HashSet::new(), rest: 0 };
        let mut rest = DefaultHasher::new();
        for stmt in &tree.body {
            let text = text.get(stmt.span.start as usize..stmt.span.end as usize).unwrap_or_default();
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            let hash = hasher.finish();
            let names = match known.get(&hash) {
                Some(item) => item.names.clone(),
                None => Rc::new(mentioned(stmt)),
            };
            let item = Item { start: stmt.span.start, end: stmt.span.end, hash, names };
            let index = items.all.len();
            match &stmt.kind {
                StmtKind::FunctionDef(def) => {
                    items.called.extend(item.names.iter().filter(|n| **n != *def.name.text).cloned());
                    // A function that changes globals changes the kernels that read them.
                    if text.contains("global ") {
                        text.hash(&mut rest);
                    }
                }
                StmtKind::ClassDef(_) => {}
                // Kernels can only use the names that it binds.
                StmtKind::Unreadable { names, .. } => names.iter().for_each(|name| name.text.hash(&mut rest)),
                _ => text.hash(&mut rest),
            }
            let mut bound = Vec::new();
            bound_by(stmt, &mut bound);
            for name in bound {
                items.by_name.entry(name).or_default().push(index);
            }
            items.all.push(item);
        }
        items.rest = rest.finish();
        items
    }

    /// Whether another function of the file mentions this one.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.called.contains(name)
    }

    /// Hashes a function with all that it depends on in the file.
    pub(crate) fn hash_with_dependences(&self, name: &str, hasher: &mut DefaultHasher) {
        self.rest.hash(hasher);
        let mut seen = BTreeSet::new();
        let mut work: Vec<&str> = vec![name];
        while let Some(name) = work.pop() {
            for index in self.by_name.get(name).into_iter().flatten() {
                if seen.insert(*index) {
                    work.extend(self.all[*index].names.iter().map(String::as_str));
                }
            }
        }
        for index in seen {
            self.all[index].hash.hash(hasher);
        }
    }

    /// How statements have moved from here to there.
    pub(crate) fn moves(&self, now: &Items) -> Moves {
        let mut places: HashMap<u64, Vec<u32>> = HashMap::new();
        for item in now.all.iter().rev() {
            places.entry(item.hash).or_default().push(item.start);
        }
        let moved = self.all.iter().map(|item| {
            let to = places.get_mut(&item.hash).and_then(Vec::pop);
            (item.start, item.end, to.map(|to| i64::from(to) - i64::from(item.start)))
        });
        Moves { file: self.file, all: moved.collect() }
    }
}

/// How the statements of a file have moved.
pub(crate) struct Moves {
    file: FileId,
    /// First byte, end, and distance; none for a statement that is gone.
    all: Vec<(u32, u32, Option<i64>)>,
}

impl Moves {
    /// The new place of a span.
    pub(crate) fn span(&self, span: Span) -> Option<Span> {
        if span.file != self.file {
            return Some(span);
        }
        let index = self.all.partition_point(|(start, ..)| *start <= span.start).checked_sub(1)?;
        let (_, end, distance) = self.all[index];
        let distance = distance.filter(|_| span.end <= end)?;
        let shift = |at: u32| u32::try_from(i64::from(at) + distance).ok();
        Some(Span { start: shift(span.start)?, end: shift(span.end)?, ..span })
    }
}

/// The names that a statement binds in the module.
fn bound_by(stmt: &Stmt, out: &mut Vec<String>) {
    let mut each = |body: &[Stmt]| body.iter().for_each(|stmt| bound_by(stmt, out));
    match &stmt.kind {
        StmtKind::FunctionDef(def) => out.push(def.name.text.to_string()),
        StmtKind::ClassDef(class) => out.push(class.name.text.to_string()),
        StmtKind::Assign { targets, .. } => targets.iter().for_each(|target| targets_of(target, out)),
        StmtKind::AugAssign { target, .. } | StmtKind::AnnAssign { target, .. } => targets_of(target, out),
        StmtKind::If { body, orelse, .. } | StmtKind::While { body, orelse, .. } => {
            each(body);
            each(orelse);
        }
        StmtKind::For { target, body, orelse, .. } => {
            each(body);
            each(orelse);
            targets_of(target, out);
        }
        StmtKind::With { body, .. } => each(body),
        StmtKind::Try { body, handlers, orelse, finalbody } => {
            each(body);
            handlers.iter().for_each(|handler| each(&handler.body));
            each(orelse);
            each(finalbody);
        }
        _ => {}
    }
}

fn targets_of(target: &Expr, out: &mut Vec<String>) {
    match &target.kind {
        ExprKind::Name(name) => out.push(name.to_string()),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|item| targets_of(item, out)),
        ExprKind::Starred(inner) => targets_of(inner, out),
        _ => {}
    }
}

/// All names in a statement.
fn mentioned(stmt: &Stmt) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    walk_expressions(std::slice::from_ref(stmt), &mut |expr| {
        if let ExprKind::Name(name) = &expr.kind {
            names.insert(name.to_string());
        }
    });
    names
}
