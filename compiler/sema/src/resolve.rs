//! What names at module level stand for: functions, classes, constants, imports; and the members of modules.
//!
//! Everything is resolved when it is first used, so host code that no kernel asks for is never looked at. `triton`,
//! `tl`, `math` and `libdevice` are known without imports.
//!
//! The modules of the standard library (`library.rs`) share one namespace, apart from those that mirror a Python
//! module of their own (`libdevice`, `triton_helpers`).

use std::collections::HashMap;
use std::fmt;

use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::{self, Alias, ClassDef, Expr, ExprKind, FunctionDef, Stmt, StmtKind, Symbol};

use crate::builtins;
use crate::cx::{Cx, Frame, R};
use crate::declared::{self, Builtin, Namespace};
use crate::library::{LibraryModule, library};
use crate::suggest::{absent_name, suggest};
use crate::types::{ElemTy, TyVal, dtype_named};
use crate::values::{Const, Function, FunctionKind, Val};

/// A source file or a file of the standard library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ModuleId(pub u32);

/// A parsed source file with the name that other files import it by.
#[derive(Clone, Copy, Debug)]
pub struct ModuleAst<'a> {
    /// Its dotted name: `pkg.kernels` of `pkg/kernels.py`, `pkg.__init__` of a package itself.
    pub name: &'a str,
    /// Its text as a tree.
    pub ast: &'a ast::Module,
}

/// A module as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModuleRef {
    Triton,
    Language,
    Libdevice,
    Extra,
    Cuda,
    TargetInfo,
    PropagateNan,
    PyMath,
    Prim,
    Helpers,
    File(ModuleId),
    /// Something that kernels cannot use, by its path.
    Unknown(Symbol),
}

impl fmt::Display for ModuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ModuleRef::Triton => "triton",
            ModuleRef::Language => "tl",
            ModuleRef::Libdevice => "libdevice",
            ModuleRef::Extra => "tl.extra",
            ModuleRef::Cuda => "tl.extra.cuda",
            ModuleRef::TargetInfo => "tl.target_info",
            ModuleRef::PropagateNan => "tl.PropagateNan",
            ModuleRef::PyMath => "math",
            ModuleRef::Prim => "prim",
            ModuleRef::Helpers => "triton_helpers",
            ModuleRef::File(_) => "another kernel file",
            ModuleRef::Unknown(path) => path,
        })
    }
}

/// A top-level name.
#[derive(Clone, Copy, Debug)]
enum Decl<'a> {
    Function(Function<'a>),
    Class(&'a ClassDef),
    /// `NAME = expr`.
    Value(&'a Expr),
    /// Element `.1` of `a, b = expr`.
    Element(&'a Expr, usize),
    /// `import a.b as name`; without a name it binds the first part.
    Import(&'a str),
    /// `from ..module import name`, with the number of leading dots.
    ImportFrom(Path<'a>, &'a str),
}

/// A module as an import names it: leading dots, then a dotted name.
#[derive(Clone, Copy, Debug)]
struct Path<'a> {
    level: u32,
    name: &'a str,
}

struct File<'a> {
    name: &'a str,
    decls: HashMap<&'a str, (Decl<'a>, Span)>,
    /// Modules whose names were all imported by `*`.
    stars: Vec<Path<'a>>,
}

/// All files of a compilation: the user's, then the modules of the standard library.
pub(crate) struct World<'a> {
    files: Vec<File<'a>>,
    library: &'static [LibraryModule],
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

    fn library_id(&self, index: usize) -> ModuleId {
        ModuleId((self.files.len() + index) as u32)
    }

    /// A name of the library's common namespace.
    fn library_decl(&self, name: &str) -> Option<(ModuleId, Decl<'a>, Span)> {
        let modules = self.library.iter().enumerate().filter(|(_, m)| !m.has_own_namespace());
        modules.filter_map(|(i, m)| Some((self.library_id(i), m.function(name)?))).map(in_library).next()
    }

    fn decl(&self, id: ModuleId, name: &str) -> Option<(ModuleId, Decl<'a>, Span)> {
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
    fn package(&self, id: ModuleId) -> Option<&'a str> {
        self.files.get(id.0 as usize)?.name.strip_suffix(".__init__")
    }

    /// The file of exactly that dotted name.
    fn file(&self, name: &str) -> Option<ModuleRef> {
        self.user_modules()
            .find(|id| self.files[id.0 as usize].name.trim_end_matches(".__init__") == name)
            .map(ModuleRef::File)
    }

    /// The dotted name that an import in `home` means.
    fn absolute(&self, home: ModuleId, path: Path<'_>) -> String {
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
        let mut file = File { name, decls: HashMap::new(), stars: Vec::new() };
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
                StmtKind::If { body, orelse, .. } => {
                    self.collect(orelse);
                    self.collect(body);
                }
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

/// The callee of a decorator: `triton.jit` of `@triton.jit(noinline=True)`.
pub(crate) fn decorator_name(decorator: &Expr) -> Option<&str> {
    match &decorator.kind {
        ExprKind::Call { func, .. } => decorator_name(func),
        ExprKind::Name(name) => Some(name),
        ExprKind::Attribute { attr, .. } => Some(&attr.text),
        _ => None,
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

/// The built-in functions of a module.
fn namespace(module: &ModuleRef) -> Option<Namespace> {
    Some(match module {
        ModuleRef::Language => Namespace::Language,
        ModuleRef::Triton => Namespace::Triton,
        ModuleRef::PyMath => Namespace::PyMath,
        ModuleRef::Cuda => Namespace::Cuda,
        ModuleRef::TargetInfo => Namespace::TargetInfo,
        ModuleRef::Prim => Namespace::Prim,
        _ => return None,
    })
}

/// What makes classes of named tuples, by its full name.
fn tuple_maker(path: &str) -> Option<&'static Builtin> {
    match path {
        "collections.namedtuple" => declared::find(Namespace::NamedTuple, "namedtuple"),
        "typing.NamedTuple" => declared::find(Namespace::NamedTuple, "NamedTuple"),
        _ => None,
    }
}

impl<'a> Cx<'a> {
    /// What a name means where the current function stands; `None` if nothing.
    pub(crate) fn global(&mut self, module: ModuleId, name: &Symbol) -> R<Option<Val<'a>>> {
        let key = (module, name.clone());
        if let Some(val) = self.globals.get(&key) {
            return Ok(Some(val.clone()));
        }
        let val = match self.world.decl(module, name) {
            Some((home, decl, span)) => self.declared(home, name, decl, span)?,
            None => match self.implied(module, name)? {
                Some(val) => val,
                None => return Ok(None),
            },
        };
        self.globals.insert(key, val.clone());
        Ok(Some(val))
    }

    fn declared(&mut self, home: ModuleId, name: &Symbol, decl: Decl<'a>, span: Span) -> R<Val<'a>> {
        match decl {
            Decl::Function(f) => Ok(Val::Function(Function { module: home, ..f })),
            Decl::Class(c) => Ok(Val::Class(c, home)),
            Decl::Value(expr) => self.global_value(home, name, expr, span),
            Decl::Element(expr, i) => match self.global_value(home, name, expr, span)? {
                Val::Tuple(t) if i < t.items.len() => Ok(t.items[i].clone()),
                other => {
                    let what = other.describe();
                    self.error(Code::TYPE_MISMATCH, span, format!("`{name}` cannot be unpacked from {what}"), "")
                }
            },
            Decl::Import(path) => Ok(Val::Module(self.world.module(path))),
            Decl::ImportFrom(path, item) => self.imported(&self.world.absolute(home, path), item),
        }
    }

    fn imported(&mut self, path: &str, item: &str) -> R<Val<'a>> {
        let whole = if path.is_empty() { item.to_string() } else { format!("{path}.{item}") };
        match self.world.module(&whole) {
            ModuleRef::Unknown(_) => {}
            module => return Ok(Val::Module(module)),
        }
        let module = self.world.module(path);
        let symbol: Symbol = item.into();
        Ok(match self.module_member(&module, &symbol)? {
            Some(val) => val,
            None => Val::Module(ModuleRef::Unknown(whole.into())),
        })
    }

    /// Evaluates `NAME = expr` of a module, as far as it is a constant.
    fn global_value(&mut self, home: ModuleId, name: &Symbol, expr: &'a Expr, span: Span) -> R<Val<'a>> {
        let key = (home, name.clone());
        if self.resolving.contains(&key) {
            return self.error(Code::UNDEFINED_NAME, span, format!("`{name}` is defined by itself"), "");
        }
        self.resolving.push(key);
        self.frames.push(Frame {
            module: home,
            name: name.clone(),
            def: None,
            scope: Default::default(),
            host: true,
            library: self.frames.last().and_then(|f| f.library),
            call: None,
            caller: None,
            loops: 0,
            branches: 0,
            static_loops: 0,
            failed: false,
        });
        let saved = self.span;
        let result = self.quietly(|cx| cx.eval(expr));
        self.span = saved;
        self.frames.pop();
        self.resolving.pop();
        match result {
            Ok(val) if val.is_constant() => Ok(val),
            Ok(_) => self.not_constant(name, expr, None),
            Err(why) => self.not_constant(name, expr, why),
        }
    }

    /// Names that are known without a definition.
    fn implied(&mut self, module: ModuleId, name: &Symbol) -> R<Option<Val<'a>>> {
        let library = self.world.is_library(module);
        let stars = self.world.files.get(module.0 as usize).map_or(&[][..], |file| &file.stars);
        for path in stars {
            let star = self.world.module(&self.world.absolute(module, *path));
            if let Some(val) = self.module_member(&star, name)? {
                return Ok(Some(val));
            }
        }
        Ok(match &**name {
            "triton" => Some(Val::Module(ModuleRef::Triton)),
            "tl" => Some(Val::Module(ModuleRef::Language)),
            "math" | "tl_math" if library || &**name == "math" => Some(Val::Module(ModuleRef::PyMath)),
            "tl_math" => Some(Val::Module(ModuleRef::Language)),
            "libdevice" => Some(Val::Module(ModuleRef::Libdevice)),
            "triton_helpers" => Some(Val::Module(ModuleRef::Helpers)),
            "prim" if library => Some(Val::Module(ModuleRef::Prim)),
            _ => {
                let of_host = if self.host() { declared::find(Namespace::Host, name) } else { None };
                of_host.or_else(|| declared::find(Namespace::Python, name)).map(Val::Builtin)
            }
        })
    }

    /// A function of the library's common namespace.
    pub(crate) fn library_function(&mut self, name: &str) -> Option<Function<'a>> {
        match self.world.library_decl(name)? {
            (home, Decl::Function(f), _) if f.kind != FunctionKind::Host => Some(Function { module: home, ..f }),
            _ => None,
        }
    }

    /// `module.name`; `None` if there is no such member.
    pub(crate) fn module_member(&mut self, module: &ModuleRef, name: &Symbol) -> R<Option<Val<'a>>> {
        let builtin = |b: Option<&'static Builtin>| b.map(Val::Builtin);
        Ok(match module {
            ModuleRef::Triton => match &**name {
                "language" => Some(Val::Module(ModuleRef::Language)),
                "jit" | "autotune" | "heuristics" | "Config" | "testing" | "runtime" | "tools" | "compiler" => {
                    Some(Val::Module(ModuleRef::Unknown(format!("triton.{name}").into())))
                }
                _ => builtin(declared::find(Namespace::Triton, name)),
            },
            ModuleRef::Language => return self.language_member(name),
            ModuleRef::Extra => match &**name {
                "cuda" | "hip" => Some(Val::Module(ModuleRef::Cuda)),
                "libdevice" => Some(Val::Module(ModuleRef::Libdevice)),
                _ => None,
            },
            ModuleRef::Cuda => match &**name {
                "libdevice" => Some(Val::Module(ModuleRef::Libdevice)),
                _ => builtin(declared::find(Namespace::Cuda, name)),
            },
            ModuleRef::TargetInfo => builtin(declared::find(Namespace::TargetInfo, name)),
            ModuleRef::PropagateNan => match &**name {
                "NONE" => Some(Val::str("none")),
                "ALL" => Some(Val::str("all")),
                _ => None,
            },
            ModuleRef::PyMath => match &**name {
                "pi" => Some(Val::Const(Const::Float(std::f64::consts::PI))),
                "e" => Some(Val::Const(Const::Float(std::f64::consts::E))),
                "tau" => Some(Val::Const(Const::Float(std::f64::consts::TAU))),
                "inf" => Some(Val::Const(Const::Float(f64::INFINITY))),
                "nan" => Some(Val::Const(Const::Float(f64::NAN))),
                _ => builtin(declared::find(Namespace::PyMath, name)),
            },
            ModuleRef::Prim => builtin(declared::find(Namespace::Prim, name)),
            ModuleRef::Libdevice => return self.namespace_member("libdevice", name),
            ModuleRef::Helpers => match &**name {
                "libdevice" => Some(Val::Module(ModuleRef::Libdevice)),
                "math" => Some(Val::Module(ModuleRef::Language)),
                _ => return self.namespace_member("triton_helpers", name),
            },
            ModuleRef::File(id) => {
                if let Some(val) = self.global(*id, name)? {
                    return Ok(Some(val.into_constexpr()));
                }
                // A file of a package, as its member.
                let package = self.world.package(*id);
                return Ok(package.and_then(|p| self.world.file(&format!("{p}.{name}"))).map(Val::Module));
            }
            ModuleRef::Unknown(path) => {
                let whole = format!("{path}.{name}");
                if let Some(maker) = tuple_maker(&whole) {
                    return Ok(Some(Val::Builtin(maker)));
                }
                match self.world.module(&whole) {
                    ModuleRef::Unknown(p) => Some(Val::Module(ModuleRef::Unknown(p))),
                    known => Some(Val::Module(known)),
                }
            }
        })
    }

    /// A member of a library file with a namespace of its own.
    fn namespace_member(&mut self, file: &str, name: &Symbol) -> R<Option<Val<'a>>> {
        if file == "libdevice"
            && self.target.external_libdevice
            && let Some(function) = builtins::external(name)
        {
            return Ok(Some(Val::Builtin(function)));
        }
        if let Some(index) = self.world.library.iter().position(|m| m.name == file && m.has(name)) {
            return self.global(self.world.library_id(index), name);
        }
        if file == "libdevice" {
            return Ok(self.library_function(name).filter(|_| !name.starts_with('_')).map(Val::Function));
        }
        Ok(None)
    }

    fn language_member(&mut self, name: &Symbol) -> R<Option<Val<'a>>> {
        if let Some(dtype) = dtype_named(name) {
            return Ok(Some(Val::Type(TyVal::Elem(ElemTy::Num(dtype)))));
        }
        Ok(Some(match &**name {
            "void" => Val::Type(TyVal::Void),
            "pi32_t" => Val::Type(TyVal::Elem(ElemTy::I32.pointer_to(false))),
            "TRITON_MAX_TENSOR_NUMEL" => Val::int(i128::from(rtc_ir::MAX_TILE_ELEMENTS)),
            "math" | "core" | "standard" | "random" | "semantic" | "language" => Val::Module(ModuleRef::Language),
            "extra" => Val::Module(ModuleRef::Extra),
            "libdevice" => Val::Module(ModuleRef::Libdevice),
            "target_info" => Val::Module(ModuleRef::TargetInfo),
            "PropagateNan" => Val::Module(ModuleRef::PropagateNan),
            _ => match declared::find(Namespace::Language, name) {
                Some(b) => Val::Builtin(b),
                None if name.starts_with('_') => return Ok(None),
                None => return Ok(self.library_function(name).map(Val::Function)),
            },
        }))
    }

    /// Reports that `module` has no member `name`.
    pub(crate) fn no_member(&mut self, module: &ModuleRef, name: &str, span: Span) -> R<Val<'a>> {
        let mut d = Diagnostic::error(Code::UNDEFINED_NAME, span, format!("`{module}` has no member `{name}`"))
            .primary("not found");
        let mut known: Vec<&str> = match module {
            ModuleRef::Language | ModuleRef::Libdevice => {
                self.world.library.iter().flat_map(LibraryModule::names).filter(|n| !n.starts_with('_')).collect()
            }
            _ => Vec::new(),
        };
        known.extend(namespace(module).into_iter().flat_map(declared::names));
        known.sort_unstable();
        if let Some(instead) = absent_name(name) {
            d = d.help(instead);
        } else if let Some(close) = suggest(name, known) {
            d = d.help(format!("did you mean `{module}.{close}`?"));
        }
        self.fail(d)
    }

    /// The names that can be used in the current function, for suggestions.
    pub(crate) fn visible_names(&self) -> Vec<String> {
        let frame = self.frame();
        let mut names: Vec<String> =
            frame.scope.iter().filter(|(_, b)| b.gone.is_none()).map(|(n, _)| n.to_string()).collect();
        let file = self.world.files.get(frame.module.0 as usize);
        let mut globals: Vec<String> = file.iter().flat_map(|f| f.decls.keys()).map(|n| n.to_string()).collect();
        globals.sort_unstable();
        names.extend(globals);
        names.extend(["tl", "triton", "math", "libdevice"].map(String::from));
        names.extend(declared::names(Namespace::Python).map(String::from));
        names
    }
}
