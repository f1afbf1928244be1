//! The values of names at module level: functions, classes, constants, imports; and the members of modules.
//!
//! Everything is resolved when it is first used, so host code that no kernel uses is never evaluated. `triton`, `tl`,
//! `math` and `libdevice` are available without imports.
//!
//! The modules of the standard library (`library.rs`) share one namespace, apart from those that mirror a Python
//! module of their own (`libdevice`, `triton_helpers`).

use rtc_source::{Code, Diagnostic, Span};
use rtc_syntax::ast::Symbol;

use crate::builtins;
use crate::counterparts;
use crate::declared::{self, Builtin, Namespace};
use crate::definitions::Decl;
use crate::emitter::R;
use crate::evaluator::Evaluator;
use crate::library::LibraryModule;
use crate::modules::{ModuleId, ModuleRef};
use crate::suggest::suggest;
use crate::types::{ElemTy, TyVal, dtype_named};
use crate::values::{Const, Function, FunctionKind, Val};

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

/// The functions that make classes of named tuples, by their full names.
fn tuple_maker(path: &str) -> Option<&'static Builtin> {
    match path {
        "collections.namedtuple" => declared::find(Namespace::NamedTuple, "namedtuple"),
        "typing.NamedTuple" => declared::find(Namespace::NamedTuple, "NamedTuple"),
        _ => None,
    }
}

/// The values that host code reads from the packages around a kernel, by full name: dtypes, the target, products of
/// lists. The target is an NVIDIA GPU, and no environment variable is set.
fn known_of_host<'a>(path: &str) -> Option<Val<'a>> {
    let function = match path {
        "itertools.product" => "product",
        "triton.runtime.driver.active.get_current_target" => "get_current_target",
        "torch.cuda.get_device_capability" => "get_device_capability",
        "torch.cuda.is_available" => "is_available",
        "os.getenv" | "os.environ.get" => "getenv",
        "triton.tools.tensor_descriptor.TensorDescriptor" => "TensorDescriptor",
        "torch.version.hip" => return Some(Val::NONE),
        "triton.Config" | "triton.runtime.Config" | "triton.runtime.autotuner.Config" => "Config",
        _ => {
            let name = match path.strip_prefix("torch.")? {
                "half" => "float16",
                "float" => "float32",
                "double" => "float64",
                "short" => "int16",
                "int" => "int32",
                "long" => "int64",
                "bool" => "int1",
                "float8_e4m3fn" => "float8e4nv",
                "float8_e5m2" => "float8e5",
                name => name,
            };
            return dtype_named(name).map(|dtype| Val::Type(TyVal::Elem(ElemTy::Num(dtype))));
        }
    };
    declared::find(Namespace::Tuning, function).map(Val::Builtin)
}

impl<'a> Evaluator<'a> {
    /// The value of `from path import item`.
    pub(crate) fn imported(&mut self, path: &str, item: &str) -> R<Val<'a>> {
        let whole = if path.is_empty() { item.to_string() } else { format!("{path}.{item}") };
        match self.world.module(&whole) {
            ModuleRef::Unknown(_) => {}
            module => return Ok(Val::Module(module)),
        }
        let module = self.world.module(path);
        let symbol: Symbol = item.into();
        Ok(match self.member_of(&module, &symbol)? {
            Some(val) => val,
            None => Val::Module(ModuleRef::Unknown(whole.into())),
        })
    }

    /// Names that are known without a definition.
    pub(crate) fn implied(&mut self, module: ModuleId, name: &Symbol) -> R<Option<Val<'a>>> {
        let library = self.world.is_library(module);
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
    pub(crate) fn function_of_library(&self, name: &str) -> Option<Function<'a>> {
        match self.world.library_decl(name)? {
            (home, Decl::Function(f), _) if f.kind != FunctionKind::Host => Some(Function { module: home, ..f }),
            _ => None,
        }
    }

    /// `module.name`; `None` if there is no such member.
    pub(crate) fn member_of(&mut self, module: &ModuleRef, name: &Symbol) -> R<Option<Val<'a>>> {
        let builtin = |b: Option<&'static Builtin>| b.map(Val::Builtin);
        Ok(match module {
            ModuleRef::Triton => match &**name {
                "language" => Some(Val::Module(ModuleRef::Language)),
                "Config" => builtin(declared::find(Namespace::Tuning, name)),
                "jit" | "autotune" | "heuristics" | "testing" | "runtime" | "tools" | "compiler" => {
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
                if let Some(known) = known_of_host(&whole) {
                    return Ok(Some(known));
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
            return Ok(self.function_of_library(name).filter(|_| !name.starts_with('_')).map(Val::Function));
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
                None => return Ok(self.function_of_library(name).map(Val::Function)),
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
        if let Some(instead) = counterparts::of_language(name) {
            d = d.help(instead);
        } else if let Some(close) = suggest(name, known) {
            d = d.help(format!("did you mean `{module}.{close}`?"));
            // The place is an import where that names the member.
            if self.source_text(span) == Some(name) {
                d = d.edit(span, close);
            }
        } else if let ModuleRef::Language = module {
            d = d.help("`docs/language/functions` lists what `tl` has");
        }
        self.fail(d)
    }

    /// The names that can be used in the current function, for suggestions.
    pub(crate) fn visible_names(&self) -> Vec<String> {
        let frame = self.frame();
        let mut names: Vec<String> =
            frame.scope.iter().filter(|(_, b)| b.gone.is_none()).map(|(n, _)| n.to_string()).collect();
        let file = self.world.files.get(frame.module.0 as usize);
        let mut globals: Vec<String> = file.iter().flat_map(|f| f.definitions.names()).map(str::to_string).collect();
        globals.sort_unstable();
        names.extend(globals);
        names.extend(["tl", "triton", "math", "libdevice"].map(String::from));
        names.extend(declared::names(Namespace::Python).map(String::from));
        names
    }
}
