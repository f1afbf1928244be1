//! All files of a compilation, and what their top-level names are declared as.

use rtc_source::Span;
use rtc_syntax::ast::{self, ClassDef, ExprKind, FunctionDef};

use crate::changes::Changes;
use crate::definitions::{Decl, Definitions, Moment, Path};
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

pub(crate) struct File<'a> {
    name: &'a str,
    pub definitions: Definitions<'a>,
    pub changes: Changes,
}

/// All files of a compilation: the user's, then the modules of the standard library.
pub(crate) struct World<'a> {
    pub files: Vec<File<'a>>,
    pub library: &'static [LibraryModule],
}

impl<'a> World<'a> {
    pub(crate) fn new(modules: &[ModuleAst<'a>]) -> World<'a> {
        let mut world = World { files: modules.iter().map(|m| File::new(m.name, m.ast)).collect(), library: library() };
        world.share_changes();
        world
    }

    /// The user's files, in the order given.
    pub(crate) fn user_modules(&self) -> impl Iterator<Item = ModuleId> {
        (0..self.files.len() as u32).map(ModuleId)
    }

    /// The kernel function of that name, in the first file that has it.
    pub(crate) fn function(&self, name: &str) -> Option<Function<'a>> {
        self.user_modules()
            .find_map(|id| self.files[id.0 as usize].function(name).map(|f| Function { module: id, ..f }))
    }

    /// The names of all jit functions of the user's files.
    pub(crate) fn kernel_names(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self
            .files
            .iter()
            .flat_map(|f| f.definitions.names().filter_map(|name| Some((name, f.function(name)?))))
            .filter(|(_, f)| f.kind == FunctionKind::Jit)
            .map(|(name, _)| name)
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

    /// A name of a module of the library.
    pub(crate) fn decl(&self, id: ModuleId, name: &str) -> Option<(ModuleId, Decl<'a>, Span)> {
        match self.library_module(id)?.function(name) {
            Some(def) => Some(in_library((id, def))),
            None => self.library_decl(name),
        }
    }

    /// The user's file with that number.
    pub(crate) fn user_file(&self, id: ModuleId) -> Option<&File<'a>> {
        self.files.get(id.0 as usize)
    }

    /// The time of a function's definition, if it is at the top level of a user's module.
    pub(crate) fn moment_of(&self, module: ModuleId, def: &FunctionDef) -> Option<Moment> {
        self.user_file(module)?.definitions.moment_of(def)
    }

    /// The time of a class's definition, if it is at the top level of a user's module.
    pub(crate) fn moment_of_class(&self, module: ModuleId, class: &ClassDef) -> Option<Moment> {
        self.user_file(module)?.definitions.moment_of_class(class)
    }

    /// Enters what a file changes of another one: attributes of the modules that it imports, and objects that it imports
    /// by name.
    fn share_changes(&mut self) {
        let mut shared = Vec::new();
        for id in self.user_modules() {
            let file = &self.files[id.0 as usize];
            let changes = &file.changes;
            for (path, change) in &changes.rebound {
                if let Some((target, name)) = self.member_named(id, path) {
                    shared.push((target, name, *change, true));
                }
            }
            for (path, change) in &changes.mutated {
                match (self.member_named(id, path), file.definitions.last(path).map(|d| d.decl)) {
                    (Some((target, name)), _) => shared.push((target, name, *change, false)),
                    (None, Some(Decl::ImportFrom(from, item))) => {
                        if let ModuleRef::File(target) = self.module(&self.absolute(id, from)) {
                            shared.push((target, item.to_string(), *change, false));
                        }
                    }
                    _ => {}
                }
            }
        }
        for (target, name, change, is_rebound) in shared {
            let changes = &mut self.files[target.0 as usize].changes;
            let names = if is_rebound { &mut changes.rebound } else { &mut changes.mutated };
            names.entry(name).or_insert(change);
        }
    }

    /// The user's file and the name there that `module.NAME` means in a file.
    fn member_named(&self, home: ModuleId, path: &str) -> Option<(ModuleId, String)> {
        let (module, name) = path.rsplit_once('.')?;
        let (root, rest) = module.split_once('.').map_or((module, ""), |(root, rest)| (root, rest));
        let mut full = match self.files[home.0 as usize].definitions.last(root)?.decl {
            Decl::Import(path) => path.to_string(),
            Decl::ImportFrom(from, item) => {
                let package = self.absolute(home, from);
                if package.is_empty() { item.to_string() } else { format!("{package}.{item}") }
            }
            _ => return None,
        };
        if !rest.is_empty() {
            full = format!("{full}.{rest}");
        }
        match self.module(&full) {
            ModuleRef::File(id) => Some((id, name.to_string())),
            _ => None,
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
        // The Python package `rtc` has the modules of `triton`.
        if let Some(rest) = stem.strip_prefix("rtc")
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return self.module(&format!("triton{rest}"));
        }
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

pub(crate) fn function_of(def: &FunctionDef, module: ModuleId) -> Function<'_> {
    Function { def, module, kind: kind_of(def), noinline: is_noinline(def) }
}

impl<'a> File<'a> {
    fn new(name: &'a str, module: &'a ast::Module) -> File<'a> {
        File { name, definitions: Definitions::new(module), changes: Changes::new(&module.body) }
    }

    /// The function of that name when the module has run; of two that a condition chooses between, the first.
    fn function(&self, name: &str) -> Option<Function<'a>> {
        let mut ways = vec![self.definitions.last(name)?];
        while let Some(definition) = ways.pop() {
            match definition.decl {
                Decl::Function(f) => return Some(f),
                Decl::Branch { then, otherwise, .. } => {
                    ways.extend([self.definitions.get(otherwise), self.definitions.get(then)]);
                }
                _ => {}
            }
        }
        None
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
