//! The rewritten block pointers, and those that stay.

use rtc_source::FileId;

use super::block_pointers;

fn fixed(text: &str) -> String {
    let fixed = block_pointers(FileId(0), text);
    let result = fixed.apply(text);
    let (_, diagnostics) = crate::parse(FileId(0), &result);
    assert!(diagnostics.is_empty(), "{result}\n{diagnostics:?}");
    let again = block_pointers(FileId(0), &result);
    assert!(again.edits.is_empty(), "the result is not final:\n{result}");
    let left: Vec<String> = fixed
        .left
        .iter()
        .map(|left| {
            let line = text[..left.span.start as usize].matches('\n').count() + 1;
            let at = text[..left.at.start as usize].matches('\n').count() + 1;
            format!(
                "# line {line}: {}: {} (line {at})\n",
                &text[left.span.start as usize..left.span.end as usize],
                left.reason
            )
        })
        .collect();
    result + &left.concat()
}

/// The rewritten kernel with this body.
fn body(lines: &str) -> String {
    let lines: Vec<String> = lines.lines().map(|l| format!("    {l}\n")).collect();
    let head = "import triton.language as tl\n\n\n@triton.jit\ndef kernel(x, z, M, N, sm, sn, BM: tl.constexpr, BN: tl.constexpr):\n";
    fixed(&format!("{head}{}", lines.concat())).strip_prefix(head).unwrap_or_default().to_owned()
}

#[test]
fn a_product_in_a_loop() {
    insta::assert_snapshot!(body(
        "p = tl.make_block_ptr(
    base=x,
    shape=(M, N),
    strides=(sm, 1),
    offsets=(tl.program_id(0) * BM, 0),  # this program's rows
    block_shape=(BM, BN),
    order=(1, 0),
)
for k in range(0, N, BN):
    v = tl.load(p, boundary_check=(0, 1), padding_option=\"zero\")
    p = tl.advance(p, (0, BN))
    p = p.advance([0, -1])
q = tl.make_block_ptr(z, (M,), (1,), (0,), (BM,), (0,))
tl.store(q, tl.sum(v, 1), boundary_check=(0,), eviction_policy=\"evict_last\")
q.store(0.0)"
    ));
}

#[test]
fn other_names_and_branches() {
    insta::assert_snapshot!(body(
        "if M > N:
    p = tl.make_block_ptr(x + 4, (M, N), (sm, sn), (0, 0), (BM, BN), (1, 0))
else: p = tl.make_block_ptr(z, (N, M), (sn, sm), (M // 2, 1), (BM, BN), (0, 1))
tl.store(p, tl.load(p, boundary_check=[1]))
a = tl.make_block_ptr(x, (M * 2,), (sm,), (0,), (BM,), (0,))
b = tl.advance(a, (BM,))
c = b
tl.store(c, tl.load(b, None, cache_modifier=\".cg\") if False else tl.load(a, boundary_check=0), boundary_check=(0,))
c_i0 = 3"
    ));
}

#[test]
fn what_stays_and_why() {
    insta::assert_snapshot!(fixed(
        "import triton.language as tl

P = tl.make_block_ptr


@triton.jit
def inner(acc, p):
    v = tl.load(p, boundary_check=(0,))
    p = tl.advance(p, (4,))
    return acc + v


@triton.jit
def kernel(x, n, SHAPE, C: tl.constexpr):
    handed = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    acc = inner(0, handed)
    whole = tl.make_block_ptr(x, SHAPE, (1,), (0,), (16,), (0,))
    tl.store(whole, acc)
    option = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    tl.store(option, acc, boundary_check=C)
    masked = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    tl.store(masked, acc, acc > 0)
    tl.store(tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,)), acc)
    first, second = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,)), 1
    fine = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    tl.store(fine, acc, boundary_check=(0,))
    commented = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    tl.store(commented,  # why
             acc)
"
    ));
}

#[test]
fn handed_to_functions_and_returned() {
    insta::assert_snapshot!(fixed(
        "import triton.language as tl


@triton.jit
def load(p, CHECK: tl.constexpr):
    if CHECK:
        return tl.load(p, boundary_check=(0, 1))
    return tl.load(p)


@triton.jit
def step(acc, p, n: tl.constexpr):
    acc += load(p, True)
    for _ in range(2):
        p = tl.advance(p, (0, n))
    return acc, p


@triton.jit
def result(z, M, N, BM: tl.constexpr, BN: tl.constexpr):
    p = tl.make_block_ptr(z, (M, N), (N, 1), (0, 0), (BM, BN), (1, 0))
    return p


@triton.jit
def kernel(x, z, M, N, sm, BM: tl.constexpr, BN: tl.constexpr):
    first = tl.make_block_ptr(x, (M, N), (sm, 1), (0, 0), (BM, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, N, BN):
        acc, first = step(acc, first, n=BN)
    acc, other = step(p=first, acc=acc, n=BN)  # once more
    acc += load(other, CHECK=False)
    q = result(z, M, N, BM, BN)
    tl.store(q, acc)
"
    ));
}

#[test]
fn what_functions_hand_over_and_stays() {
    let shape = "(n,), (1,), (0,), (16,), (0,)";
    insta::assert_snapshot!(fixed(&format!(
        "import triton.language as tl
import others


@triton.jit
def launched(p):
    return tl.load(p)


@triton.jit
def optional(p):
    return tl.load(p, boundary_check=(0,))


@triton.jit
def either(x, p, n, C: tl.constexpr):
    if C:
        return tl.load(p), p
    q = tl.make_block_ptr(x, {shape})
    return tl.load(q), q


@triton.jit
def kernel(x, n, C: tl.constexpr):
    a = tl.make_block_ptr(x, {shape})
    v = launched(a)
    b = tl.make_block_ptr(x, {shape})
    v += optional(b) + optional(x)
    c = tl.make_block_ptr(x, {shape})
    v, d = either(x, c, n, C)
    e = tl.make_block_ptr(x, {shape})
    others.add(e)
    f = tl.make_block_ptr(x, {shape})
    both = (f, 1)
    tl.store(both[0], v)
    v += launched(tl.advance(a, (16,)))
    g = tl.make_block_ptr(x, {shape})
    tl.store(tl.advance(g, (16,)), v)


compiled = launched.warmup(0, grid=(1,))
"
    )));
}

#[test]
fn nothing_else_changes() {
    let text = "# \u{e9}\r\nx = {  'a':1 }\n\n@triton.jit\ndef f(x):\n\ttl.store(x, tl.load(x, mask = x>0))   # kept\n";
    assert_eq!(fixed(text), text);
}

#[test]
fn lines_end_as_in_the_file() {
    let text = "@triton.jit\r\ndef f(x, n):\r\n    p = tl.make_block_ptr(x, (8, n), (n, 1), (0, 0), (8, 8), (1, 0))\r\n    \
                tl.store(p, 0)\r\n";
    let result = fixed(text);
    assert_eq!(result.matches('\n').count(), result.matches("\r\n").count(), "{result:?}");
    assert_eq!(result.lines().count(), 5);
}

#[test]
fn methods_of_other_objects_are_not_meant() {
    assert_eq!(block_pointers(FileId(0), "cursor.advance((1, 2))\nx = np.load(f, mask=1)\n"), Default::default());
}

#[test]
fn all_cases_that_are_run_before_and_after_are_rewritten() {
    let texts = [
        include_str!("../../../../tests/filetests/language/block_pointers.rt"),
        include_str!("../../../../tests/filetests/language/block_pointers_handed.rt"),
    ];
    // Cases are programs of their own.
    for text in texts.iter().flat_map(|text| text.split("\n# case ")) {
        let fixed = block_pointers(FileId(0), text);
        assert_eq!(fixed.left, [], "{text}");
        let result = fixed.apply(text);
        assert!(!["make_block_ptr(", "advance("].iter().any(|word| result.contains(word)), "{result}");
    }
}
