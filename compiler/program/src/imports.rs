//! The modules that a file imports, and the files in which they may be.

use rtc_syntax::ast::{Module, Stmt, StmtKind};

/// The imports at module level of a file with the dotted name `module`: for each import the dotted names to look for, the
/// best first. That is the name as it is written, or beside the file for relative imports; then the last part alone, for
/// files that lie beside the main file.
pub fn imports(tree: &Module, module: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut add = |name: String| {
        let leaf = name.rsplit('.').next().unwrap_or(&name).to_owned();
        let mut candidates = vec![name];
        if leaf != candidates[0] {
            candidates.push(leaf);
        }
        if !candidates[0].is_empty() && !all.contains(&candidates) {
            all.push(candidates);
        }
    };
    let mut statements = Vec::new();
    imports_of(&tree.body, &mut statements);
    for kind in statements {
        match kind {
            StmtKind::Import { names } => names.iter().for_each(|alias| add(alias.name.text.to_string())),
            StmtKind::ImportFrom { module: from, names, level } => {
                let mut parts: Vec<&str> = module.split('.').collect();
                parts.truncate(if *level == 0 { 0 } else { parts.len().saturating_sub(*level as usize) });
                parts.extend(from.as_ref().map(|m| &*m.text));
                add(parts.join("."));
                for alias in names {
                    add(parts.iter().copied().chain([&*alias.name.text]).collect::<Vec<_>>().join("."));
                }
            }
            _ => {}
        }
    }
    all
}

/// The paths, relative to a folder, at which the module of a dotted name may lie, the best first. A package is its
/// `__init__`.
///
/// ```
/// assert_eq!(rtc_program::file_candidates("ops.add")[..2], ["ops/add.rt", "ops/add.py"]);
/// ```
pub fn file_candidates(module: &str) -> [String; 4] {
    let path = module.replace('.', "/");
    [".rt", ".py", "/__init__.rt", "/__init__.py"].map(|end| format!("{path}{end}"))
}

/// The imports at module level, also under `if` and `try`.
fn imports_of<'m>(body: &'m [Stmt], out: &mut Vec<&'m StmtKind>) {
    for stmt in body {
        match &stmt.kind {
            kind @ (StmtKind::Import { .. } | StmtKind::ImportFrom { .. }) => out.push(kind),
            StmtKind::If { body, orelse, .. } => {
                imports_of(body, out);
                imports_of(orelse, out);
            }
            StmtKind::Try { body, handlers, .. } => {
                imports_of(body, out);
                handlers.iter().for_each(|h| imports_of(&h.body, out));
            }
            _ => {}
        }
    }
}
