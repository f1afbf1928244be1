//! Kernels that import from other files: by dotted names, relatively, under other names, from packages.

use rtc_compiler::{Program, Signature, Silent, Source, Spec, analyse};

/// Each file is known by its path; every name in them is a constant that says where it comes from.
const FILES: &[(&str, &str)] = &[
    (
        "main.py",
        r#"
import triton
import triton.language as tl
from helper import WHERE as beside, add
from .helper import WHERE as relative
from . import helper
import helper as other_name
from pkg.deep import WHERE as deep, Pair
import pkg.deep
import pkg.sub.helper
from pkg import deep as module, WHERE as package
from pkg.sub.helper import WHERE as lower
from pkg.stars import *
try:
    from pkg.late import WHERE as late
except ImportError:
    pass

@triton.jit
def kernel(y):
    tl.static_assert(beside == "helper" and relative == "helper")
    tl.static_assert(helper.WHERE == "helper" and other_name.WHERE == "helper")
    tl.static_assert(deep == "pkg.deep" and pkg.deep.WHERE == "pkg.deep" and module.WHERE == "pkg.deep")
    tl.static_assert(package == "pkg")
    tl.static_assert(lower == "pkg.sub.helper" and pkg.sub.helper.WHERE == "pkg.sub.helper")
    tl.static_assert(late == "pkg.late")
    tl.static_assert(pkg.deep.from_sibling() == "pkg.helper")
    tl.static_assert(pkg.deep.from_above() == "pkg.sub.helper")
    p = Pair(1, 2)
    tl.store(y, add(p.a, twice(p.b)))
"#,
    ),
    ("helper.py", "WHERE = tl.constexpr('helper')\n@triton.jit\ndef add(a, b):\n    return a + b\n"),
    ("pkg/__init__.py", "WHERE = tl.constexpr('pkg')\n"),
    (
        "pkg/deep.py",
        r#"
from typing import NamedTuple
from .helper import WHERE as SIBLING
from .sub import probe
WHERE = tl.constexpr("pkg.deep")
class Pair(NamedTuple):
    a: int
    b: int
@triton.constexpr_function
def from_sibling():
    return SIBLING
@triton.constexpr_function
def from_above():
    return probe()
"#,
    ),
    ("pkg/helper.py", "WHERE = tl.constexpr('pkg.helper')\n"),
    ("pkg/late.py", "WHERE = tl.constexpr('pkg.late')\n"),
    ("pkg/stars.py", "from .sub.twice import *\n"),
    ("pkg/sub/__init__.py", "from .helper import probe\n"),
    (
        "pkg/sub/helper.py",
        "WHERE = tl.constexpr('pkg.sub.helper')\n@triton.constexpr_function\ndef probe():\n    return WHERE\n",
    ),
    (
        "pkg/sub/twice.py",
        "from ..helper import WHERE as ABOVE\n@triton.jit\ndef twice(x):\n    tl.static_assert(ABOVE == 'pkg.helper')\n    return x * 2\n",
    ),
];

fn find(module: &str) -> Result<Option<Source>, std::convert::Infallible> {
    let path = module.replace('.', "/");
    let names = [format!("{path}.py"), format!("{path}/__init__.py")];
    Ok(FILES.iter().find(|(name, _)| names.iter().any(|n| n == name)).map(|(name, text)| Source::new(*name, *text)))
}

#[test]
fn names_come_from_the_files_that_the_imports_name() {
    let Ok(program) = Program::parse_importing(Source::new(FILES[0].0, FILES[0].1), &mut find);
    assert!(!program.has_errors(), "{:?}", program.diagnostics());
    let files = program.sources().files().count();
    assert_eq!(files, FILES.len(), "each file is read once");
    let args = Signature::parse("*i32:16").and_then(|s| s.bind(&["y"])).expect("the signature fits");
    let spec = Spec { kernel: Some("kernel".into()), args, ..Spec::default() };
    let specialization = spec.specialize(&program).expect("the kernel is there");
    if let Err(failure) = analyse(&program, &specialization, "sm_90a", String::new(), &mut Silent) {
        panic!("{failure}");
    }
}

/// The value that `kernel` in `main.py` of these files stores; the error is as the user reads it.
fn analysed(files: &'static [(&str, &str)]) -> Result<(), String> {
    let text = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(file, text)| Source::new(*file, *text));
    let mut find = |module: &str| Ok::<_, std::convert::Infallible>(text(&format!("{module}.py")));
    let program = Program::parse_importing(text("main.py").expect("it is there"), &mut find).expect("nothing fails");
    let spec = Spec {
        args: Signature::parse("*fp32").and_then(|s| s.bind(&["y"])).expect("the signature fits"),
        ..Spec::default()
    };
    let specialization = spec.specialize(&program).map_err(|failure| failure.to_string())?;
    match analyse(&program, &specialization, "sm_90a", String::new(), &mut Silent) {
        Ok(_) => Ok(()),
        Err(rtc_compiler::Failure::Diagnostics(list)) => {
            Err(list.iter().map(|d| rtc_compiler::source::render(program.sources(), d, false)).collect())
        }
        Err(other) => panic!("{other}"),
    }
}

const KERNEL: &str = "@triton.jit\ndef kernel(y):\n    tl.static_assert(X == 4)\n    tl.store(y, X)\n";

#[test]
fn names_that_are_imported_in_a_circle_are_refused_with_the_imports() {
    /// The imports of `main.py`, other files, and the lines that the message shows.
    type Case = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);
    let cases: &[Case] = &[
        ("from main import X as X\n", &[], &["from main import X as X"]),
        ("from main import Y as X\nfrom main import X as Y\n", &[], &["import Y as X", "import X as Y"]),
        ("from a import X\n", &[("a.py", "from main import X\n")], &["from a import X", "from main import X"]),
        // Python runs `main` first, which has no `X` when `a` asks for it.
        (
            "from a import X\n",
            &[("a.py", "X = tl.constexpr(4)\nfrom main import X\n")],
            &["from a import X", "from main import X"],
        ),
        (
            "from a import X\n",
            &[("a.py", "from b import Y as X\n"), ("b.py", "from c import *\n"), ("c.py", "from a import X as Y\n")],
            &["a.py:1", "c.py:1"],
        ),
        (
            "try:\n    from main import X\nexcept ImportError:\n    from a import X\n",
            &[("a.py", "from main import X\n")],
            &["from main import X"],
        ),
    ];
    for (imports, others, shown) in cases {
        let main = ("main.py", &*format!("{imports}{KERNEL}").leak());
        let files: Vec<_> = [main].into_iter().chain(others.iter().copied()).collect();
        let text = analysed(files.leak()).expect_err(imports);
        assert!(text.contains("error[undefined-name]: `X` is imported in a circle"), "{text}");
        assert!(shown.iter().all(|line| text.contains(line)), "{text}");
    }
}

#[test]
fn names_that_are_defined_before_a_circle_of_imports_keep_their_value() {
    for (imports, other) in [
        ("X = tl.constexpr(4)\nfrom main import X as X\n", ""),
        ("X = tl.constexpr(4)\nfrom a import X\n", "from main import X\n"),
        ("from main import *\nX = tl.constexpr(4)\n", ""),
        ("from a import *\n", "X = tl.constexpr(4)\nfrom main import *\n"),
    ] {
        let main = ("main.py", &*format!("{imports}{KERNEL}").leak());
        let result = analysed(vec![main, ("a.py", other)].leak());
        assert_eq!(result, Ok(()), "{imports}");
    }
}
