//! Messages about syntax errors in kernels; each snapshot has the source and the message.

use rtc_source::{SourceMap, render};

/// All diagnostics of a source, drawn.
fn messages(source: &str) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.rt", source);
    let (_, diagnostics) = rtc_syntax::parse(file, source);
    let drawn: String = diagnostics.iter().map(|d| render(&sources, d, false)).collect();
    format!("{}\n----\n{drawn}", source.trim_end())
}

macro_rules! kernels {
    ($($name:ident: $body:literal;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), messages(concat!("@triton.jit\ndef kernel(x, n):\n", $body)));
        })*
    };
}

macro_rules! files {
    ($($name:ident: $source:literal;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), messages($source));
        })*
    };
}

// The body of a kernel, from its third line.
kernels! {
    missing_colon_if: "    if n > 0\n        x = 1\n";
    missing_colon_else: "    if n:\n        x = 1\n    else\n        x = 2\n";
    missing_colon_for: "    for i in range(n)\n        x += i\n";
    assignment_in_condition: "    if n = 0:\n        x = 1\n";
    assignment_in_brackets: "    y = (n = 0)\n";
    assignment_to_call: "    f(x) = 1\n";
    assignment_to_sum: "    x + 1 = n\n";
    assignment_to_comparison: "    x == 1 = n\n";
    augmented_tuple: "    x, n += 1\n";
    annotated_tuple: "    x, n: int = 1\n";
    argument_name: "    f(x.y=1)\n";
    unclosed_bracket: "    y = tl.load(x + n\n    z = 1\n\n@triton.jit\ndef g(x):\n    return x +\n";
    unclosed_bracket_at_the_end: "    y = tl.load(x, [1, 2)\n";
    extra_bracket: "    y = f(x))\n";
    wrong_bracket: "    y = f(x[0)]\n";
    missing_comma: "    y = tl.load(x mask=n)\n";
    missing_comma_in_list: "    y = [1 2]\n";
    missing_operand: "    y = x +\n";
    missing_operand_in_call: "    y = f(x, n *)\n";
    empty_right_side: "    y =\n";
    two_operands: "    y = x n\n";
    inconsistent_indentation: "    if n:\n        x = 1\n      x = 2\n";
    unexpected_indentation: "    x = 1\n      n = 2\n";
    missing_block: "    if n:\n    x = 1\n";
    tabs_and_spaces: "    if n:\n        x = 1\n\tn = 2\n";
    unterminated_string: "    y = \"abc\n    z = 1\n";
    unterminated_triple_string: "    \"\"\"abc\n    z = 1\n";
    unterminated_format_string: "    y = f\"{x\n    z = 1\n";
    empty_hole: "    y = f\"a{}\"\n";
    single_brace: "    y = f\"a}\"\n";
    bad_conversion: "    y = f\"{x!q}\"\n";
    bad_escape: "    y = \"\\xg1\"\n";
    bad_number: "    y = 12abc\n";
    octal_number: "    y = 012\n";
    imaginary_number: "    y = 1j\n";
    unexpected_character: "    y = x ? 1\n";
    stray_backslash: "    y = x \\ + 1\n";
    logical_and: "    if x && n:\n        pass\n";
    logical_or: "    if x || n:\n        pass\n";
    logical_not: "    if !x:\n        pass\n";
    else_if: "    if x:\n        pass\n    else if n:\n        pass\n";
    increment: "    n++\n";
    keyword_as_name: "    lambda = 1\n";
    keyword_as_attribute: "    y = x.from\n";
    async_statement: "    async with x:\n        pass\n";
    match_statement: "    match n:\n        case 1:\n            pass\n";
    print_statement: "    print x\n";
    stray_else: "    x = 1\n    else:\n        x = 2\n";
    incomplete_conditional: "    y = 1 if n\n";
    try_without_handler: "    try:\n        x = 1\n    y = 2\n";
    empty_subscript: "    y = x[]\n";
    star_alone: "    y = (*x)\n";
    operator_at_the_start: "    x = 1\n    / n\n";
    closing_at_the_start: "    x = 1\n    : n\n";
    deep_nesting: "    y = -~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+-~+2\n";
    text_and_bytes: "    y = \"a\" b\"b\"\n";
}

files! {
    missing_body: "@triton.jit\ndef kernel(x):\n\nx = 1\n";
    unindented_body: "@triton.jit\ndef kernel(x):\nx = 1\n";
    missing_parenthesis: "@triton.jit\ndef kernel(x:\n    y = x\n    return y\n";
    default_before_plain: "@triton.jit\ndef kernel(a, b=1, c):\n    pass\n";
    same_parameter_twice: "@triton.jit\ndef kernel(a, b, a):\n    pass\n";
    after_keyword_parameters: "@triton.jit\ndef kernel(**a, b):\n    pass\n";
    lone_star: "@triton.jit\ndef kernel(a, *):\n    pass\n";
    misplaced_slash: "@triton.jit\ndef kernel(*, a, /):\n    pass\n";
    keyword_function: "@triton.jit\ndef for(x):\n    pass\n";
    decorator_without_function: "@triton.jit\nx = 1\n";
    decorator_at_the_end: "@triton.jit\n";
    missing_function_colon: "@triton.jit\ndef f(x)\n    return x\n";
    unclosed_decorator: "@triton.autotune(configs=[1, 2]\n@triton.jit\ndef f(x):\n    return x\n";
    kernel_in_refused_if: "if async:\n    @triton.jit\n    def good(x): return x\n    @triton.jit\n    def bad(x): return x x\n";
    kernel_in_refused_function: "def make():\n    async with x: pass\n    @triton.jit\n    def bad(x): return x x\n";
    two_kernels_with_errors: "@jit\ndef f(x):\n    y = \n\nhost code here\n\n@my.jit(noinline=True)\ndef g(x):\n    z = )\n";
    host_errors_are_silent: "def f(:\n    x y z\n\nx = (\n\nimport a\n@triton.jit\ndef g(x): pass\n";
}
