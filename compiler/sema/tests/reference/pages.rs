//! The pages: which there are, and what they are made of.
//!
//! A page by hand lies in `docs/` itself. Where it has a line `<!-- made: NAME -->`, everything up to `<!-- end -->` is
//! made anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rtc_sema::reference::{entries, promotion};

use crate::{differences, entries};

/// Pages that are made as a whole: name, title, what stands above, which modules.
const MADE: &[(&str, &str, &str, &[&str])] = &[
    (
        "functions.md",
        "Functions",
        "Every function of `tl`, of Python and of `triton` that a kernel can call. `tl.math`, `tl.core`, `tl.standard` and \
         `tl.random` are other names of `tl`. Element-wise functions broadcast their arguments; numbers are typed as \
         [the language](language.md#constants) says. Beside the errors that an entry names, every function gives \
         [`wrong-arguments`](diagnostics.md#wrong-arguments), [`type-mismatch`](diagnostics.md#type-mismatch) and \
         [`expected-constexpr`](diagnostics.md#expected-constexpr) for arguments that are not what it takes. What the \
         examples can use: [here](README.md#examples).",
        &["tl", "tl.extra.cuda", "tl.target_info", "python", "triton", "math"],
    ),
    (
        "libdevice.md",
        "libdevice",
        "The functions of `libdevice` (`tl.extra.cuda.libdevice`, `tl.extra.libdevice` and \
         `from triton.language.extra import libdevice` are the same module). They are written in the kernel language: \
         `stdlib/*.rt`. All are element-wise, broadcast their arguments and have no effects. Errors are in units in the last \
         place, measured as [stdlib/MATH.md](../stdlib/MATH.md) says. The functions of the first group are members of `tl` \
         and `tl.math`, too.",
        &["libdevice"],
    ),
    (
        "values.md",
        "Attributes and methods",
        "What follows the dot after a value. `x` is a scalar or a block, `constant` a value that is known while compiling, \
         `pointer` a block pointer, `descriptor` a tensor descriptor, `type` a type such as `tl.float32` or `x.dtype`.",
        &["x", "constant", "pointer", "descriptor", "type"],
    ),
    (
        "triton_helpers.md",
        "triton_helpers",
        "The helper module that kernels written by TorchInductor import. It is known without an import and is written in the \
         kernel language: `stdlib/triton_helpers.rt`.",
        &["triton_helpers"],
    ),
];

/// Pages with text by hand.
const BY_HAND: &[&str] = &["README.md", "language.md", "differences.md"];

const MADE_NOTE: &str = "<!-- Made by the tests of rtc-sema; change the docstrings, not this page. -->";

/// Name and text of all pages, before the results of examples are filled in.
pub fn all(root: &Path) -> Vec<(&'static str, String)> {
    let list = entries();
    let mut pages = Vec::new();
    for (name, title, head, namespaces) in MADE {
        let mut text = format!("# {title}\n\n{MADE_NOTE}\n\n{head}\n\n");
        if *name == "values.md" {
            let methods: Vec<String> = list
                .iter()
                .filter(|e| e.method)
                .map(|e| {
                    let page = if e.namespace == "tl" { "functions.md" } else { "libdevice.md" };
                    format!("[`x.{}`]({page}#{})", e.name, anchor(&e.path()))
                })
                .collect();
            let all = methods.join(", ");
            write!(
                text,
                "These functions are methods of scalars and blocks, which are their first argument; `x.to(...)` is \
                 [`tl.cast`](functions.md#tlcast): {all}. Method calls of elementary functions also take fp16 and bf16: they compute in fp32 and round back.\n\n"
            )
            .expect("writes to memory");
        }
        text.push_str(&entries::groups(&list, namespaces));
        pages.push((*name, text));
    }
    let tile_ir = format!("# Tile IR\n\n{MADE_NOTE}\n\n{}", rtc_ir::reference());
    pages.push(("tile-ir.md", tile_ir));
    pages.push(("diagnostics.md", diagnostics(root)));
    for name in BY_HAND {
        let path = root.join("docs").join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        pages.push((*name, with_parts(root, &text)));
    }
    pages
}

/// A page with its made parts made anew.
fn with_parts(root: &Path, text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!-- made: ") {
        let (name, after) = after.split_once(" -->").expect("a made part has a name");
        let (_, after) = after.split_once("<!-- end -->").expect("a made part has an end");
        let part = match name {
            "promotion" => promotion_table(false),
            "promotion of divisions" => promotion_table(true),
            "extensions" => differences::extensions(root),
            "accepted files" => differences::accepted_files(root),
            other => panic!("there is no part `{other}`"),
        };
        write!(out, "{before}<!-- made: {name} -->\n\n{part}\n<!-- end -->").expect("writes to memory");
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Element types in the order of the tables, with the names by which they are looked up.
const DTYPES: [(&str, &str); 13] = [
    ("int1", "int1"),
    ("int8", "int8"),
    ("uint8", "uint8"),
    ("int16", "int16"),
    ("uint16", "uint16"),
    ("int32", "int32"),
    ("uint32", "uint32"),
    ("int64", "int64"),
    ("uint64", "uint64"),
    ("fp16", "fp16"),
    ("bf16", "bf16"),
    ("fp32", "fp32"),
    ("fp64", "fp64"),
];

fn promotion_table(division: bool) -> String {
    let head: Vec<&str> = DTYPES.iter().map(|(shown, _)| *shown).collect();
    let mut out = format!("| | {} |\n|{}\n", head.join(" | "), " --- |".repeat(DTYPES.len() + 1));
    for (row, (shown, a)) in DTYPES.iter().enumerate() {
        let cells: Vec<&str> = DTYPES
            .iter()
            .enumerate()
            .map(|(column, (_, b))| if column < row { "" } else { promotion(a, b, division).unwrap_or("error") })
            .collect();
        writeln!(out, "| **{shown}** | {} |", cells.join(" | ")).expect("writes to memory");
    }
    out
}

/// The case under `tests/filetests/diagnostics` that shows a code.
const CASES: &[(&str, &str)] = &[
    ("syntax", "statement_match"),
    ("unsupported", "break_in_loop"),
    ("undefined-name", "name_of_block_size_misspelt"),
    ("shape-mismatch", "shapes_do_not_broadcast"),
    ("type-mismatch", "mask_of_integers"),
    ("expected-constexpr", "arange_of_a_plain_local"),
    ("static-assert", "static_assert_false"),
    ("out-of-resources", "static_range_too_long"),
    ("unsupported-target", "amd_float8"),
    ("already-defined", "constexpr_rebound"),
    ("bad-condition", "if_on_a_block"),
    ("bad-shape", "arange_not_a_power_of_two"),
    ("bad-value", "cache_modifier"),
    ("changed-type", "loop_changes_type"),
    ("deprecated", "deprecated_view"),
    ("lost-assignment", "none_lost"),
    ("not-callable", "call_of_a_host_function"),
    ("out-of-range", "constant_out_of_range"),
    ("recursion", "recursion"),
    ("return-mismatch", "return_types_differ"),
    ("unknown-attribute", "attribute_misspelt"),
    ("unused-result", "advance_unused"),
    ("wrong-arguments", "argument_unknown"),
    ("index-overflow", "index_overflow"),
    ("index-may-overflow", "index_may_overflow"),
    ("half-accumulator", "half_accumulator"),
    ("missing-mask", "missing_mask"),
    ("missing-other", "missing_other"),
    ("narrowing-store", "narrowing_store"),
];

fn diagnostics(root: &Path) -> String {
    let mut out = format!(
        "# Diagnostics\n\n{MADE_NOTE}\n\nEvery message has a code. `rtc explain CODE` prints what stands here. The cases are \
         tests: `tests/filetests/diagnostics`.\n\nA code that is also a warning has a level: `allow` (not shown), `warn`, or `deny` \
         (an error). `--allow`, `--warn` and `--deny` set it, by code or for a group: `warnings` are all that are on, `all` \
         is all. A build script has the same in `rtc_build::Config`, a program in `rtc_compiler::Levels`.\n\n\
         | code | what it means | as a warning |\n| --- | --- | --- |\n"
    );
    let level = |code| {
        rtc_source::WARNINGS.iter().find(|(c, _)| *c == code).map(|(_, level)| match level {
            rtc_source::Level::Allow => "allow",
            rtc_source::Level::Warn => "warn",
            rtc_source::Level::Deny => "deny",
        })
    };
    for (code, page) in rtc_source::CODES {
        let first = page.lines().next().unwrap_or_default();
        writeln!(out, "| [`{code}`](#{}) | {first} | {} |", anchor(code.0), level(*code).unwrap_or_default())
            .expect("writes to memory");
    }
    for (code, page) in rtc_source::CODES {
        writeln!(out, "\n## `{code}`\n\n{}", page.trim()).expect("writes to memory");
        let Some((_, case)) = CASES.iter().find(|(c, _)| *c == code.0) else { continue };
        let path = format!("tests/filetests/diagnostics/{case}.rt.snap");
        let snapshot = fs::read_to_string(root.join(&path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(snapshot.contains(&format!("[{code}]")), "{path} does not show `{code}`");
        // A link, so that the words of a message can change without this page.
        writeln!(out, "\nAn example, with the message as it is drawn: [{case}](../{path}).").expect("writes to memory");
    }
    out
}

/// The anchor that a heading has on the usual hosts.
pub fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().trim().replace(' ', "-")
}
