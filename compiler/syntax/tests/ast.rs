//! Trees of every form of the language; each snapshot holds the source and its tree.

use rtc_source::FileId;

/// The source and its tree, one below the other; the source must be free of errors.
fn tree(source: &str) -> String {
    let (module, diagnostics) = rtc_syntax::parse(FileId(0), source);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    format!("{}\n----\n{}", source.trim_end(), rtc_syntax::print(&module))
}

macro_rules! trees {
    ($($name:ident: $source:literal;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), tree($source));
        })*
    };
}

trees! {
    vector_addition: r#"
import torch
import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    """Adds two vectors."""
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(output_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)

def add(x: torch.Tensor, y: torch.Tensor):
    output = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]), )
    add_kernel[grid](x, y, output, x.numel(), BLOCK_SIZE=1024)
    return output
"#;
    matrix_product: r#"
@triton.autotune(
    configs=[triton.Config({"BM": bm, "BN": 128}, num_stages=s, num_warps=8) for bm in [64, 128] for s in (3, 4) if bm > s],
    key=["M", "N", "K"],
)
@triton.heuristics({"EVEN_K": lambda args: args["K"] % 32 == 0})
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, *, BM: tl.constexpr, BN: tl.constexpr, ACT: tl.constexpr = None):
    pid = tl.program_id(0)
    num_n = tl.cdiv(N, BN)
    rm = (pid // num_n * BM + tl.arange(0, BM)) % M
    a = a_ptr + (rm[:, None] * stride_am + tl.arange(0, 32)[None, :] * stride_ak)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, 32), num_stages=3):
        acc = tl.dot(tl.load(a, mask=rm[:, None] < M, other=0.0), tl.load(b_ptr), acc)
        a += 32 * stride_ak
    if ACT is not None:
        acc = ACT(acc)
    elif BM == 64:
        acc *= 2
    else:
        pass
    tl.store(c_ptr, acc.to(tl.float16))
"#;
    jit_under_if_and_try: r#"
if HAS_TRITON:
    try:
        @triton.jit
        def f(x):
            return x
    except ImportError as error:
        raise RuntimeError("no") from error
    except (A, B):
        pass
    except:
        raise
    else:
        a = 1
    finally:
        b = 2
else:
    f = None
"#;
    precedence: r#"
a = x + y * z - w // 2 % 3
b = -x ** -y ** z
c = a | b ^ c & d << 1 >> 2
d = not a == b and c or d and not e
e = ~a + +b - -c
f = x @ y @ z
g = (a + b) * c
h = a if b else c if d else e
i = a < b + 1
"#;
    comparisons: r#"
a < b <= c != d
x is None
x is not None and y not in z or not w in v
a == b
"#;
    booleans_are_flat: "a and b and c\na or b or c and d\n(a and b) and c\n";
    numbers: r#"
0; 00; 1_000_000; 0xFF_ff; 0o17; 0b1010
9223372036854775808; 18446744073709551615; -9223372036854775808
170141183460469231731687303715884105728
1.; .5; 1.5; 1e5; 1E-5; 1_0.2_5e+1_0; 0.1; 1e400; 00.5
"#;
    strings: r#"
a = 'it' "s" r'\n' u"x"
b = "tab\t nl\n quote\" back\\ hex\x41 oct\101\0 uni\u00e9\U0001F600 unknown\d"
c = "line \
continued"
d = b"bytes\x00\xff\u" rb'\n'
e = ''
"#;
    triple_quoted: "a = \"\"\"one\n  \"two\" ''\n\"\"\"\nb = '''x\\\ny'''\nc = r\"\"\"\\\"\"\"\"\n";
    format_strings: r#"
f"plain" "and" f" {x}"
f"{x!r} {x:>10} {x!s:{width}.{precision}} {{literal}} {a + b}"
f"{x=} {x = } {x=!s} {x=:3}"
f"{d['k']} {d["k"]} {f'{y}'} {(lambda q: q)(1)} {x[1:2]} {a != b}"
rf"\d{x}\{y}" f'''{
    z
}'''
f"{a, b} {*c, d}"
f""
"#;
    calls: r#"
f()
f(a, *b, c=1, **d)
f(x for x in y)
f(a, (b := 1), c := 2,)
f(lambda: 0, lambda x, *y, z=1, **w: x)(1)(2).g[3].h
print("a", end="")
"#;
    subscripts: r#"
x[0]; x[-1]; x[i, j]; x[:, None]; x[None, :, None]; x[...]
x[1:2]; x[::2]; x[a:]; x[:b]; x[a:b:c, ..., *d]; x[:]; x[i,]; x[(i, j)]
x[i][j].y[k]
kernel[(1, 2)](x)
"#;
    displays: r#"
(); (1,); (1, 2); 1, 2; [1, 2]; []; [*a, b,]
{}; {1}; {1, *a}; {"a": 1, **b, "c": [2],}
"#;
    comprehensions: r#"
[x for x in y]
[x + y for x in a if x if x > 1 for y in b]
{x for x, in y}
{k: v for k, v in items.items()}
(x for (x, y), z in w)
[y for x in a if (y := x) if z := 1]
[a if b else c for d in (e if f else g)]
"#;
    assignments: r#"
a = b = c = 1
a, b = b, a
(a, b), *c = d
[a, b] = c
x.y = x[0] = 1
a: int
b: tl.constexpr = 1, 2
x.y: int = 3
x = yield
x = *a, b
"#;
    augmented_assignments: "a += 1; a -= 1; a *= 1; a /= 1; a //= 1; a %= 1; a **= 1\na @= 1; a &= 1; a |= 1; a ^= 1; a <<= 1; a >>= 1\nx[0].y += 1, 2\n";
    parameters: r#"
def f(): pass
def f(a, b=1, /, c=2, *, d, e=3, **f): pass
def f(a: int, *args: tl.tensor, b: "str" = "x", **kwargs: dict) -> tuple[int, int]: pass
def f(*args, a): pass
def f(a, /): pass
def f(a,): pass
"#;
    lambdas: "lambda: 1\nlambda a, b=2, *c, d, **e: (a, b)\nlambda *, a: a\nlambda a, /, b: lambda c: a if b else c\nx = lambda: (yield)\n";
    control_flow: r#"
for i in range(10):
    if i: continue
    break
else:
    pass
for a, (b, *c) in x, y: pass
while (n := f()) > 0:
    n -= 1
else:
    m = 1
while x: y; z
"#;
    if_chain: "if a:\n    1\nelif b:\n    2\nelif c:\n    3\nelse:\n    4\n";
    with_statements: r#"
with a: pass
with a as b, c() as (d, e), f: pass
with (a as b, c as d,): pass
with (a, b): pass
with (a).b as c: pass
with (yield): pass
"#;
    classes: r#"
class A: pass
class B(A, metaclass=M):
    """Doc."""
    x: tl.constexpr
    y: int = 1
    @property
    def z(self): return self.x
@triton.language.core._aggregate
class C():
    a: tl.tensor
    @triton.jit
    def get(self):
        return self.a
"#;
    imports: r#"
import a, b.c as d
from a.b import c as d, e
from . import x
from ...a import (b, c as d,)
from .... import *
"#;
    small_statements: r#"
assert a, "message"
assert (a, b)
raise
raise E
raise E(1) from None
del a, b[0], (c, d)
global a, b
pass; pass;
def f():
    nonlocal x
    yield
    yield a, b
    yield from c
    await d
    return
    return *a, b
    return (yield a)
"#;
    decorators: "@a\n@a.b(c)\n@(lambda f: f)\n@x[0]\n@y := z\ndef f(): pass\n";
    line_structure: "# comment\n\n\nif a:\n\n    # indented comment\n    b = (1 +  # comment\n  2\n    )\n\n  # odd comment\n    c = 1 + \\\n  2\n";
    windows_lines_tabs_and_byte_order_mark: "\u{feff}if a:\r\n\tb = \"\"\"x\r\ny\"\"\"\r\n\tc\r\n\x0Cd = \\\r\n  1\re = 2";
    names_in_other_alphabets: "größe = Δx + 变量_1\n";
    unsupported_host_code_is_skipped: "async def f():\n    await x\n\nmatch a:\n    case 1:\n        pass\n\nx = 1j\ny = 1\n";
}
