//! The statements of a file, and which of them a kernel depends on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use rtc_source::{FileId, Span};
use rtc_syntax::ast::{ExprKind, Module, Stmt, StmtKind, walk_expressions};

/// The statements of a file, at the level of the module.
pub(crate) struct Items {
    file: FileId,
    all: Vec<Item>,
    /// Functions and classes, by name: the last of each name, and those before it.
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
    names: BTreeSet<String>,
}

impl PartialEq for Items {
    fn eq(&self, other: &Items) -> bool {
        let places = |items: &Items| items.all.iter().map(|i| (i.start, i.hash)).collect::<Vec<_>>();
        self.file == other.file && places(self) == places(other)
    }
}

impl Items {
    pub(crate) fn new(tree: &Module, text: &str) -> Items {
        let mut items =
            Items { file: tree.file, all: Vec::new(), by_name: HashMap::new(), called: HashSet::new(), rest: 0 };
        let mut rest = DefaultHasher::new();
        for stmt in &tree.body {
            let text = text.get(stmt.span.start as usize..stmt.span.end as usize).unwrap_or_default();
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            let item =
                Item { start: stmt.span.start, end: stmt.span.end, hash: hasher.finish(), names: mentioned(stmt) };
            let index = items.all.len();
            match &stmt.kind {
                StmtKind::FunctionDef(def) => {
                    items.called.extend(item.names.iter().filter(|n| **n != *def.name.text).cloned());
                    items.by_name.entry(def.name.text.to_string()).or_default().push(index);
                    // A function that changes globals changes what kernels see.
                    if text.contains("global ") {
                        text.hash(&mut rest);
                    }
                }
                StmtKind::ClassDef(class) => {
                    items.by_name.entry(class.name.text.to_string()).or_default().push(index);
                }
                // Its text means nothing to kernels.
                StmtKind::Unreadable { names, .. } => names.iter().for_each(|name| name.text.hash(&mut rest)),
                _ => text.hash(&mut rest),
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
        // What other statements mention may be the value of a global that the function uses.
        work.extend(self.all.iter().filter(|i| !self.is_named(i)).flat_map(|i| i.names.iter().map(String::as_str)));
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

    fn is_named(&self, item: &Item) -> bool {
        self.by_name.values().flatten().any(|index| self.all[*index].start == item.start)
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
