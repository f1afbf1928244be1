//! All files of a compilation, and what their top-level names are declared as.

use std::collections::HashMap;

use rtc_source::Span;
use rtc_syntax::ast::{self, Alias, ClassDef, Expr, ExprKind, FunctionDef, Stmt, StmtKind};

use crate::library::{LibraryModule, library};
use crate::modules::{ModuleId, ModuleRef};
use crate::values::{Function, FunctionKind, decorator_name};

/// A parsed source file with the name that other files import it by.
#[derive(Clone, Copy, Debug)]
pub struct ModuleAst<'a> {
    /// Its dotted name: `pkg.kernels` of `pkg/kernels.py`, `pkg.__init__` of a package itself.
    pub name: &'a str,
    /// Its text as a tree.
    pub ast: &'a ast::Module,
}

/// A top-level name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Decl<'a> {
    Function(Function<'a>),
    Class(&'a ClassDef),
    /// `NAME = expr`.
    Value(&'a Expr),
    /// Element `.1` of `a, b = expr`.
    Element(&'a Expr, usize),
    /// A value that a condition decides: an index into [`File::branches`].
    Branch(usize),
    /// `import a.b as name`; without a name it binds the first part.
    Import(&'a str),
    /// `from ..module import name`, with the number of leading dots.
    ImportFrom(Path<'a>, &'a str),
}

/// A module as an import names it: leading dots, then a dotted name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    level: u32,
    name: &'a str,
}

pub(crate) struct File<'a> {
    name: &'a str,
    pub decls: HashMap<&'a str, (Decl<'a>, Span)>,
    /// Modules whose names were all imported by `*`.
    pub stars: Vec<Path<'a>>,
    /// The values that an `if` of the module chooses between.
    pub branches: Vec<Branch<'a>>,
}

/// Two values of a name, one per branch of an `if`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch<'a> {
    pub test: &'a Expr,
    pub then: (Decl<'a>, Span),
    pub otherwise: (Decl<'a>, Span),
}

/// All files of a compilation: the user's, then the modules of the standard library.
pub(crate) struct World<'a> {
    pub files: Vec<File<'a>>,
    pub library: &'static [LibraryModule],
}

impl<'a> World<'a> {
    pub(crate) fn new(modules: &[ModuleAst<'a>]) -> World<'a> {
        World { files: modules.iter().map(|m| File::new(m.name, m.ast)).collect(), library: library() }
    }

    /// The user's files, in the order given.
    pub(crate) fn user_modules(&self) -> impl Iterator<Item = ModuleId> {
        (0..self.files.len() as u32).map(ModuleId)
    }

    /// The kernel function of that name, in the first file that has it.
    pub(crate) fn function(&self, name: &str) -> Option<Function<'a>> {
        self.user_modules().find_map(|id| match self.files[id.0 as usize].decls.get(name) {
            Some((Decl::Function(f), _)) => Some(Function { module: id, ..*f }),
            _ => None,
        })
    }

    /// The names of all jit functions of the user's files.
    pub(crate) fn kernel_names(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self
            .files
            .iter()
            .flat_map(|f| f.decls.iter())
            .filter(|(_, (d, _))| matches!(d, Decl::Function(f) if f.kind == FunctionKind::Jit))
            .map(|(n, _)| *n)
            .collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn is_library(&self, id: ModuleId) -> bool {
        self.library_module(id).is_some()
    }

    pub(crate) fn library_module(&self, id: ModuleId) -> Option<&'static LibraryModule> {
        self.library.get((id.0 as usize).checked_sub(self.files.len())?)
    }

    pub(crate) fn library_id(&self, index: usize) -> ModuleId {
        ModuleId((self.files.len() + index) as u32)
    }

    /// A name of the library's common namespace.
    pub(crate) fn library_decl(&self, name: &str) -> Option<(ModuleId, Decl<'a>, Span)> {
        let modules = self.library.iter().enumerate().filter(|(_, m)| !m.has_own_namespace());
        modules.filter_map(|(i, m)| Some((self.library_id(i), m.function(name)?))).map(in_library).next()
    }

    pub(crate) fn decl(&self, id: ModuleId, name: &str) -> Option<(ModuleId, Decl<'a>, Span)> {
        match self.library_module(id) {
            Some(module) => match module.function(name) {
                Some(def) => Some(in_library((id, def))),
                None => self.library_decl(name),
            },
            None => self.files[id.0 as usize].decls.get(name).map(|(decl, span)| (id, *decl, *span)),
        }
    }

    /// The user's file that a dotted name means: the file of that name, else one whose last part is the same.
    fn file_named(&self, path: &str) -> Option<ModuleId> {
        let last = path.rsplit('.').next()?;
        let name = |id: &ModuleId| self.files[id.0 as usize].name;
        let exact = self.user_modules().find(|id| name(id).trim_end_matches(".__init__") == path);
        exact.or_else(|| self.user_modules().find(|id| name(id).rsplit('.').next() == Some(last)))
    }

    /// The name of a package that consists of files, if the file is its `__init__`.
    pub(crate) fn package(&self, id: ModuleId) -> Option<&'a str> {
        self.files.get(id.0 as usize)?.name.strip_suffix(".__init__")
    }

    /// The file of exactly that dotted name.
    pub(crate) fn file(&self, name: &str) -> Option<ModuleRef> {
        self.user_modules()
            .find(|id| self.files[id.0 as usize].name.trim_end_matches(".__init__") == name)
            .map(ModuleRef::File)
    }

    /// The dotted name that an import in `home` means.
    pub(crate) fn absolute(&self, home: ModuleId, path: Path<'_>) -> String {
        let mut parts: Vec<&str> = match self.files.get(home.0 as usize) {
            Some(file) if path.level > 0 => file.name.split('.').collect(),
            _ => return path.name.into(),
        };
        parts.truncate(parts.len().saturating_sub(path.level as usize));
        parts.extend(Some(path.name).filter(|name| !name.is_empty()));
        parts.join(".")
    }

    /// The module behind a dotted path.
    pub(crate) fn module(&self, path: &str) -> ModuleRef {
        let stem = path.trim_start_matches('.');
        match stem {
            "triton" => ModuleRef::Triton,
            "math" | "numpy.math" => ModuleRef::PyMath,
            "triton.language" | "tl" => ModuleRef::Language,
            "triton.language.core"
            | "triton.language.standard"
            | "triton.language.random"
            | "triton.language.math"
            | "triton.language.semantic" => ModuleRef::Language,
            "triton.language.extra" => ModuleRef::Extra,
            "triton.language.extra.cuda" | "triton.language.extra.cuda.utils" | "triton.language.extra.cuda.gdc" => {
                ModuleRef::Cuda
            }
            "triton.language.target_info" => ModuleRef::TargetInfo,
            "torch._inductor.runtime.triton_helpers.math" => ModuleRef::Language,
            _ if stem.starts_with("triton.language") && stem.ends_with("libdevice") => ModuleRef::Libdevice,
            _ if stem.starts_with("torch._inductor") && stem.ends_with("libdevice") => ModuleRef::Libdevice,
            _ if stem.ends_with("triton_helpers") => ModuleRef::Helpers,
            _ => match self.file_named(stem) {
                Some(id) => ModuleRef::File(id),
                None => ModuleRef::Unknown(stem.into()),
            },
        }
    }
}

fn in_library<'a>((home, def): (ModuleId, &'a FunctionDef)) -> (ModuleId, Decl<'a>, Span) {
    (home, Decl::Function(function_of(def, home)), def.name.span)
}

fn function_of(def: &FunctionDef, module: ModuleId) -> Function<'_> {
    Function { def, module, kind: kind_of(def), noinline: is_noinline(def) }
}

impl<'a> File<'a> {
    fn new(name: &'a str, module: &'a ast::Module) -> File<'a> {
        let mut file = File { name, decls: HashMap::new(), stars: Vec::new(), branches: Vec::new() };
        file.collect(&module.body);
        file
    }

    fn collect(&mut self, body: &'a [Stmt]) {
        for stmt in body {
            match &stmt.kind {
                StmtKind::FunctionDef(def) => {
                    let function = function_of(def, ModuleId(0));
                    // An ordinary function must not hide a kernel of the same name under `if`/`else`.
                    self.decls.insert(&def.name.text, (Decl::Function(function), def.name.span));
                }
                StmtKind::ClassDef(def) => {
                    self.decls.insert(&def.name.text, (Decl::Class(def), def.name.span));
                }
                StmtKind::Assign { targets, value } => targets.iter().for_each(|t| self.assign(t, value)),
                StmtKind::AnnAssign { target, value: Some(value), .. } => self.assign(target, value),
                StmtKind::If { test, body, orelse } => self.collect_if(test, body, orelse),
                StmtKind::Try { body, handlers, orelse, finalbody } => {
                    handlers.iter().for_each(|h| self.collect(&h.body));
                    self.collect(body);
                    self.collect(orelse);
                    self.collect(finalbody);
                }
                StmtKind::With { body, .. } => self.collect(body),
                StmtKind::Import { names } => names.iter().for_each(|n| self.import(n)),
                StmtKind::ImportFrom { module, names, level } => {
                    let path = Path { level: *level, name: module.as_ref().map_or("", |m| &*m.text) };
                    names.iter().for_each(|n| self.import_from(path, n));
                }
                _ => {}
            }
        }
    }

    /// Names that both branches define, or one of them anew: values are chosen by the condition when they are asked for,
    /// of anything else the first branch has it.
    fn collect_if(&mut self, test: &'a Expr, body: &'a [Stmt], orelse: &'a [Stmt]) {
        let before = self.decls.clone();
        self.collect(body);
        let then = std::mem::replace(&mut self.decls, before.clone());
        self.collect(orelse);
        let is_value = |decl: &Decl<'_>| matches!(decl, Decl::Value(_) | Decl::Element(..) | Decl::Branch(_));
        for (name, first) in then {
            let chosen = match self.decls.get(name).copied() {
                Some(second) if second.1 == first.1 => first,
                Some(second) if is_value(&first.0) && is_value(&second.0) => {
                    self.branches.push(Branch { test, then: first, otherwise: second });
                    (Decl::Branch(self.branches.len() - 1), first.1)
                }
                // The first branch leaves it as it was, the second does not.
                Some(second) if before.get(name).is_some_and(|old| old.1 == first.1) => second,
                _ => first,
            };
            self.decls.insert(name, chosen);
        }
    }

    fn assign(&mut self, target: &'a Expr, value: &'a Expr) {
        match &target.kind {
            ExprKind::Name(name) => {
                self.decls.insert(name, (Decl::Value(value), target.span));
            }
            ExprKind::Tuple(items) => {
                for (i, item) in items.iter().enumerate() {
                    if let ExprKind::Name(name) = &item.kind {
                        self.decls.insert(name, (Decl::Element(value, i), item.span));
                    }
                }
            }
            _ => {}
        }
    }

    fn import(&mut self, alias: &'a Alias) {
        let path = &*alias.name.text;
        match &alias.asname {
            Some(name) => self.decls.insert(&name.text, (Decl::Import(path), name.span)),
            None => {
                let first = path.split('.').next().unwrap_or(path);
                self.decls.insert(first, (Decl::Import(first), alias.name.span))
            }
        };
    }

    fn import_from(&mut self, path: Path<'a>, alias: &'a Alias) {
        if &*alias.name.text == "*" {
            self.stars.push(path);
            return;
        }
        let name = alias.asname.as_ref().unwrap_or(&alias.name);
        self.decls.insert(&name.text, (Decl::ImportFrom(path, &alias.name.text), name.span));
    }
}

fn kind_of(def: &FunctionDef) -> FunctionKind {
    let has = |name: &str| def.decorators.iter().any(|d| decorator_name(d) == Some(name));
    // Wrappers of functions of a library are inlined like kernel code.
    if def.is_jit() || has("extern") {
        FunctionKind::Jit
    } else if has("constexpr_function") || has("constexpr") {
        FunctionKind::Constexpr
    } else {
        FunctionKind::Host
    }
}

fn is_noinline(def: &FunctionDef) -> bool {
    def.decorators.iter().any(|d| match &d.kind {
        ExprKind::Call { args, .. } => args.iter().any(|a| {
            a.name.as_ref().is_some_and(|n| &*n.text == "noinline") && matches!(a.value.kind, ExprKind::Bool(true))
        }),
        _ => false,
    })
}
