//! The source files of a compilation, read, and the kernels in them.
//!
//! Reading never fails: errors become diagnostics.

use crate::no_kernel::why_no_kernel;
use crate::{Failure, KernelInfo, docs, imports, kernels};
use rtc_source::{Code, Diagnostic, FileId, Levels, Severity, SourceMap};
use rtc_syntax::ast::Module;
use std::collections::HashSet;
use std::sync::Arc;

/// The most files of one program; further imports are not looked for.
const MAX_FILES: usize = 64;

/// One source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name as diagnostics show it.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl Source {
    /// A file of this name and text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// The name that other files import it by: the file's stem.
    pub fn module_name(&self) -> &str {
        let file = self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name);
        file.rsplit_once('.').map_or(file, |(stem, _)| stem)
    }
}

/// Parsed source files; the first one holds the kernels, the others are there to be imported.
#[derive(Clone, Debug)]
pub struct Program {
    sources: SourceMap,
    modules: Vec<ImportedModule>,
    diagnostics: Vec<Diagnostic>,
    kernels: Vec<KernelInfo>,
    doc: String,
    levels: Levels,
    libdevice: Option<Arc<[u8]>>,
}

/// A parsed file and the name it is imported by.
#[derive(Clone, Debug)]
pub struct ImportedModule {
    /// The dotted name.
    pub name: String,
    /// The tree.
    pub module: Module,
}

impl Program {
    /// Reads the files; others import each by its stem.
    pub fn parse(files: &[Source]) -> Program {
        let names: Vec<String> = files.iter().map(|f| f.module_name().to_owned()).collect();
        Program::parse_named(files, &names)
    }

    /// Reads files, each with the name by which others import it, regardless of the file's name.
    pub fn parse_modules(modules: &[(String, Source)]) -> Program {
        let (names, files): (Vec<String>, Vec<Source>) = modules.iter().cloned().unzip();
        Program::parse_named(&files, &names)
    }

    fn parse_named(files: &[Source], names: &[String]) -> Program {
        let mut program = Program {
            sources: SourceMap::new(),
            modules: Vec::new(),
            diagnostics: Vec::new(),
            kernels: Vec::new(),
            doc: files.first().map_or(String::new(), |main| docs::of_file(&main.text)),
            levels: Levels::default(),
            libdevice: None,
        };
        for (source, name) in files.iter().zip(names) {
            let file: FileId = program.sources.add(&source.name, &source.text);
            let (module, diagnostics) = rtc_syntax::parse(file, &source.text);
            program.diagnostics.extend(diagnostics);
            program.modules.push(ImportedModule { name: name.clone(), module });
        }
        if let (Some(main), Some(source)) = (program.modules.first(), files.first()) {
            program.kernels = kernels::kernels(&main.module, &source.text);
        }
        program
    }

    /// Reads a file and what it imports, and what that imports. `find` gives the file for a dotted module name, or
    /// nothing for modules that are not kernel files.
    ///
    /// # Errors
    ///
    /// Those of `find`, which end the reading.
    pub fn parse_importing<E>(
        main: Source,
        find: &mut dyn FnMut(&str) -> Result<Option<Source>, E>,
    ) -> Result<Program, E> {
        let mut names = vec![main.module_name().to_owned()];
        let mut files = vec![main];
        let mut asked = HashSet::new();
        loop {
            let program = Program::parse_named(&files, &names);
            let known = files.len();
            for candidates in program.imports() {
                for name in candidates {
                    if names.iter().any(|n| n.trim_end_matches(".__init__") == name) {
                        break;
                    }
                    if files.len() == MAX_FILES || !asked.insert(name.clone()) {
                        continue;
                    }
                    if let Some(file) = find(&name)? {
                        let is_package = file.module_name() == "__init__";
                        names.push(if is_package { format!("{name}.__init__") } else { name });
                        files.push(file);
                        break;
                    }
                }
            }
            if files.len() == known {
                return Ok(program);
            }
        }
    }

    /// Sets which warnings are shown and which are errors.
    pub fn with_levels(mut self, levels: Levels) -> Program {
        self.levels = levels;
        self
    }

    /// Which warnings are shown and which are errors.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Takes the functions of `libdevice` from NVIDIA's library (`libdevice.10.bc` of the CUDA toolkit) instead of the
    /// standard library: its results, bit for bit. On the interpreter they stay those of the standard library.
    ///
    /// # Errors
    ///
    /// [`Failure::Request`] if the bytes are no LLVM bitcode.
    pub fn with_libdevice(mut self, bitcode: impl Into<Arc<[u8]>>) -> Result<Program, Failure> {
        let bitcode = bitcode.into();
        // Bitcode as it is, or in its wrapper.
        if ![&b"BC\xC0\xDE"[..], &b"\xDE\xC0\x17\x0B"[..]].iter().any(|magic| bitcode.starts_with(magic)) {
            return Err(Failure::request(Code::LIBDEVICE, "the file given as libdevice is not LLVM bitcode"));
        }
        self.libdevice = Some(bitcode);
        Ok(self)
    }

    /// The bitcode of libdevice, if it is given.
    pub fn libdevice(&self) -> Option<&Arc<[u8]>> {
        self.libdevice.as_ref()
    }

    /// The files.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The errors of the parser.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether nothing can be compiled from it.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }

    /// The comments that the main file begins with.
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// The jit functions of the main file, in order.
    pub fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    /// The kernel of that name, or the only one of the file.
    ///
    /// # Errors
    ///
    /// [`Failure::Request`] if there is no such kernel, or without a name if the file has none or several.
    pub fn kernel(&self, name: Option<&str>) -> Result<&KernelInfo, Failure> {
        let names = |all: &mut dyn Iterator<Item = &KernelInfo>| {
            let names: Vec<&str> = all.map(|k| k.name.as_str()).collect();
            names.join(", ")
        };
        if let Some(name) = name {
            return self.kernels.iter().rev().find(|k| k.name == name).ok_or_else(|| {
                let known = names(&mut self.kernels.iter());
                let known = if known.is_empty() { "the file has none".into() } else { format!("the file has {known}") };
                let close = crate::spec::did_you_mean(name, self.kernels.iter().map(|k| k.name.as_str()));
                Failure::request(
                    Code::UNKNOWN_KERNEL,
                    format!("there is no `@triton.jit` function `{name}`{close}; {known}"),
                )
            });
        }
        match kernels::candidates(&self.kernels).as_slice() {
            [only] => Ok(only),
            [] => {
                let main = self.modules.first().map(|main| &main.module);
                let why =
                    main.map(|module| why_no_kernel(self.sources.files().next().map_or("", |(_, f)| &f.text), module));
                Err(Failure::request(Code::UNKNOWN_KERNEL, why.unwrap_or_else(|| "no file is given".into())))
            }
            several => {
                let known = names(&mut several.iter().copied());
                Err(Failure::request(Code::UNKNOWN_KERNEL, format!("the file has several kernels ({known}); name one")))
            }
        }
    }

    /// The imports of the main file and of imported files, as [`imports`] gives them.
    fn imports(&self) -> Vec<Vec<String>> {
        let mut all: Vec<Vec<String>> = Vec::new();
        for imported in &self.modules {
            for candidates in imports(&imported.module, &imported.name) {
                if !all.contains(&candidates) {
                    all.push(candidates);
                }
            }
        }
        all
    }

    /// The files as trees; the main file is the first.
    pub fn modules(&self) -> &[ImportedModule] {
        &self.modules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PinnedType;

    const TEXT: &str = "import triton\nfrom helpers import scale\n\n@triton.jit\ndef inner(x):\n    return x\n\n\
        @triton.autotune(configs=[], key=[])\n@triton.jit(noinline=True)\ndef outer(x, N: tl.constexpr, m=1):\n    y = inner(x)\n\n\
        def host():\n    pass\n";

    #[test]
    fn kernels_are_found_and_callees_are_not_the_default() {
        let program = Program::parse(&[Source::new("dir/a.py", TEXT)]);
        assert!(program.diagnostics().is_empty(), "{:?}", program.diagnostics());
        let names: Vec<(&str, bool)> = program.kernels().iter().map(|k| (k.name.as_str(), k.is_called)).collect();
        assert_eq!(names, [("inner", true), ("outer", false)]);
        let kernel = program.kernel(None).unwrap();
        assert_eq!(kernel.name, "outer");
        let params: Vec<(&str, bool, bool)> =
            kernel.params.iter().map(|p| (p.name.as_str(), p.is_constexpr, p.has_default)).collect();
        assert_eq!(params, [("x", false, false), ("N", true, false), ("m", false, true)]);
        assert_eq!(program.kernel(Some("inner")).unwrap().name, "inner");
        assert_eq!(program.imports(), [vec!["triton"], vec!["helpers"], vec!["helpers.scale", "scale"]]);
    }

    #[test]
    fn decorators_and_annotations_say_how_arguments_are_specialized() {
        let text = "@triton.jit(do_not_specialize=[\"n\", 2], do_not_specialize_on_alignment=(\"p\",))\n\
            def f(p: tl.const, n, m: int, q: \"*fp16\", t: torch.Tensor, b: 'bool', N: tl.constexpr):\n    pass\n\n\
            @triton.jit(do_not_specialize=NAMES)\ndef g(x):\n    pass\n";
        let program = Program::parse(&[Source::new("a.py", text)]);
        let [f, g] = program.kernels() else { panic!("{:?}", program.kernels()) };
        let exempt = |of: fn(&crate::ParamInfo) -> bool| {
            let names = f.params.iter().filter(|p| !of(p)).map(|p| p.name.as_str());
            names.collect::<Vec<_>>()
        };
        assert_eq!(exempt(|p| p.specialize), ["n", "m"]);
        assert_eq!(exempt(|p| p.specialize_alignment), ["p"]);
        let pinned: Vec<_> = f.params.iter().map(|p| p.pinned).collect();
        let ty = |text| Some(PinnedType::Type(rtc_abi::ValueType::parse(text).unwrap()));
        assert_eq!(pinned, [Some(PinnedType::ConstPointer), None, ty("i32"), ty("*fp16"), None, ty("u1"), None]);
        assert_eq!((f.unread.as_deref(), g.unread.as_deref()), (None, Some("do_not_specialize")));
    }

    #[test]
    fn imports_are_followed_once() {
        let mut asked = Vec::new();
        let main = Source::new("a.py", "import b\nfrom x.c import f\nimport triton\n");
        let program = Program::parse_importing(main, &mut |name| {
            asked.push(name.to_owned());
            let text = match name {
                "b" => "import c, a\n",
                "c" => "import b\n",
                _ => return Ok::<_, ()>(None),
            };
            Ok(Some(Source::new(format!("{name}.py"), text)))
        });
        let program = program.unwrap();
        assert_eq!(
            program.sources().files().map(|(_, f)| f.name.as_str()).collect::<Vec<_>>(),
            ["a.py", "b.py", "c.py"]
        );
        assert_eq!(asked, ["b", "x.c", "c", "x.c.f", "f", "triton"]);
    }

    #[test]
    fn a_file_without_kernels_is_told_what_it_has() {
        let why = |text: &str| Program::parse(&[Source::new("a.py", text)]).kernel(None).unwrap_err().to_string();
        insta::assert_snapshot!(why("\n"), @"error[unknown-kernel]: the file is empty; a kernel is a Python function with the decorator `@triton.jit`");
        insta::assert_snapshot!(why("\n__global__ void add(float *x) {}\n"), @"error[unknown-kernel]: the file has no `@triton.jit` function; `__global__` on line 2 is CUDA C++, and kernels are written in Python");
        insta::assert_snapshot!(why("import triton\n\n@triton.jti\ndef add(x):\n    pass\n"), @"error[unknown-kernel]: the file has no `@triton.jit` function; did you mean `@triton.jit` for `@triton.jti` on line 3?");
        insta::assert_snapshot!(why("@Jit(noinline=True)\ndef add(x):\n    pass\n"), @"error[unknown-kernel]: the file has no `@triton.jit` function; did you mean `@triton.jit` for `@Jit` on line 1?");
        insta::assert_snapshot!(why("def grid(n):\n    return n\n\ndef add(x):\n    tl.store(x, 1.0)\n"), @"error[unknown-kernel]: the file has no `@triton.jit` function; write `@triton.jit` above `def add` on line 4");
    }

    #[test]
    fn kernels_inside_of_classes_and_functions_are_named() {
        let why = |text: &str| Program::parse(&[Source::new("a.py", text)]).kernel(None).unwrap_err().to_string();
        insta::assert_snapshot!(why("class Model:\n    @triton.jit\n    def add(x):\n        pass\n"), @"error[unknown-kernel]: the file has no `@triton.jit` function outside of others; `add` on line 3 stands in the class `Model`, so move it to the top of the file");
        insta::assert_snapshot!(why("def make():\n    @triton.jit\n    def add(x):\n        pass\n    return add\n"), @"error[unknown-kernel]: the file has no `@triton.jit` function outside of others; `add` on line 3 stands in the function `make`, so move it to the top of the file");
    }

    #[test]
    fn a_missing_kernel_lists_the_others() {
        let program = Program::parse(&[Source::new("a.py", TEXT)]);
        insta::assert_snapshot!(program.kernel(Some("host")).unwrap_err(), @"error[unknown-kernel]: there is no `@triton.jit` function `host`; the file has inner, outer");
        let empty = Program::parse(&[Source::new("a.py", "x = 1\n")]);
        insta::assert_snapshot!(empty.kernel(None).unwrap_err(), @"error[unknown-kernel]: the file has no `@triton.jit` function, and no other function");
        let two = "@triton.jit\ndef f(x):\n    pass\n\n@triton.jit\ndef g(x):\n    pass\n";
        let two = Program::parse(&[Source::new("a.py", two)]);
        insta::assert_snapshot!(two.kernel(None).unwrap_err(), @"error[unknown-kernel]: the file has several kernels (f, g); name one");
    }
}
