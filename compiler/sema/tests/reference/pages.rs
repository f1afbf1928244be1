//! The list of pages and their sources.
//!
//! Hand-written pages are next to generated ones. From a line `<!-- made: NAME -->` to `<!-- end -->`, they are
//! generated.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rtc_sema::reference::{entries, promotion};

use crate::{differences, entries};

/// Pages that are made as a whole: path, title, introduction, modules. One whose path ends with `/` is a folder: an
/// index, and a page for each group of entries.
const MADE: &[(&str, &str, &str, &[&str])] = &[
    (
        "language/functions/",
        "Functions",
        "Every function of `tl`, of Python and of `triton` that a kernel can call. `tl.math`, `tl.core`, `tl.standard` and \
         `tl.random` are other names of `tl`. Element-wise functions broadcast their arguments; numbers are typed as \
         described under [constants](language.md#constants). In addition to the errors that an entry lists, every function \
         reports [`wrong-arguments`](diagnostics.md#wrong-arguments), [`type-mismatch`](diagnostics.md#type-mismatch) and \
         [`expected-constexpr`](diagnostics.md#expected-constexpr) for arguments of the wrong kind. The examples use the \
         names listed [here](../README.md#examples).",
        &["tl", "tl.extra.cuda", "tl.target_info", "python", "triton", "math"],
    ),
    (
        "language/libdevice/",
        "libdevice",
        "The functions of `libdevice` (`tl.extra.cuda.libdevice`, `tl.extra.libdevice` and \
         `from triton.language.extra import libdevice` are the same module). They are written in the kernel language, in \
         `stdlib/*.rt`. All are element-wise, broadcast their arguments and have no effects. Errors are in units in the last \
         place, measured as described in [stdlib/MATH.md](../../../stdlib/MATH.md). The functions of the first group are also \
         members of `tl` and `tl.math`.",
        &["libdevice"],
    ),
    (
        "language/values.md",
        "Attributes and methods",
        "The attributes and methods of values. `x` is a scalar or a block, `constant` a value that is known at compile time, \
         `pointer` a block pointer, `descriptor` a tensor descriptor, `type` a type such as `tl.float32` or `x.dtype`.",
        &["x", "constant", "pointer", "descriptor", "type"],
    ),
    (
        "language/triton_helpers.md",
        "triton_helpers",
        "The helper module that kernels written by TorchInductor import. It needs no import here and is written in the \
         kernel language: `stdlib/triton_helpers.rt`.",
        &["triton_helpers"],
    ),
];

/// Pages with text by hand.
const BY_HAND: &[&str] = &["language/README.md", "language/language.md", "language/differences.md"];

const MADE_NOTE: &str = "<!-- Made by the tests of rtc-sema; change the docstrings, not this page. -->";

/// Path below `docs/` and text of all pages, before the results of examples are filled in.
pub fn all(root: &Path) -> Vec<(String, String)> {
    let list = entries();
    let mut pages = Vec::new();
    for (path, title, head, namespaces) in MADE {
        let groups = entries::groups(&list, namespaces);
        let Some(folder) = path.strip_suffix('/') else {
            let mut text = format!("# {title}\n\n{MADE_NOTE}\n\n{head}\n\n");
            if *path == "language/values.md" {
                text.push_str(&methods(&list));
            }
            let names = |path: &str| format!("#{}", anchor(path));
            groups.iter().for_each(|(title, list)| entries::index(&mut text, title, &names(title), list, names));
            for (title, list) in &groups {
                writeln!(text, "\n## {title}").expect("writes to memory");
                list.iter().for_each(|e| entries::entry(&mut text, e, "###"));
            }
            pages.push(((*path).to_string(), text));
            continue;
        };
        let mut index = format!("# {title}\n\n{MADE_NOTE}\n\n{head}\n\n");
        for (title, list) in &groups {
            let file = format!("{}.md", anchor(title));
            entries::index(&mut index, title, &file, list, |path| format!("{file}#{}", anchor(path)));
            let mut text = format!("# {title}\n\n{MADE_NOTE}\n");
            list.iter().for_each(|e| entries::entry(&mut text, e, "##"));
            pages.push((format!("{folder}/{file}"), text));
        }
        pages.push((format!("{folder}/README.md"), index));
    }
    let tile_ir = format!("# Tile IR\n\n{MADE_NOTE}\n\n{}", rtc_ir::reference());
    pages.push(("formats/tile-ir.md".into(), tile_ir));
    pages.push(("language/diagnostics.md".into(), diagnostics(root)));
    for name in BY_HAND {
        let path = root.join("docs").join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        pages.push(((*name).to_string(), with_parts(root, &text)));
    }
    let homes = homes(&pages);
    pages.iter().map(|(path, text)| (path.clone(), settled(path, text, &homes))).collect()
}

/// The methods of scalars and blocks, with links to the functions.
fn methods(list: &[rtc_sema::reference::Entry]) -> String {
    let link = |e: &rtc_sema::reference::Entry| {
        let folder = if e.namespace == "tl" { "functions" } else { "libdevice" };
        format!("[`x.{}`]({folder}/{}.md#{})", e.name, anchor(&e.group), anchor(&e.path()))
    };
    let all: Vec<String> = list.iter().filter(|e| e.method).map(link).collect();
    format!(
        "These functions are also methods of scalars and blocks, which become the first argument; `x.to(...)` is \
         [`tl.cast`](functions/making-blocks-casts-types.md#tlcast). Methods of elementary functions also accept fp16 and \
         bf16: they compute in fp32 and round the result.\n\n{}.\n\n",
        all.join(",\n")
    )
}

/// Where each page lies, by its file name; docstrings name pages so. Names that two pages have are left out.
fn homes(pages: &[(String, String)]) -> BTreeMap<&str, &str> {
    let name = |path: &'_ str| path.rsplit('/').next().unwrap_or_default().len();
    let mut homes = BTreeMap::new();
    for (path, _) in pages.iter().filter(|(path, _)| !path.ends_with("README.md")) {
        homes.insert(&path[path.len() - name(path)..], path.as_str());
    }
    homes
}

/// A page whose links by file name alone lead to where that page lies.
fn settled(path: &str, text: &str, homes: &BTreeMap<&str, &str>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        out.push_str(before);
        out.push_str("](");
        let file = after.split([')', '#']).next().unwrap_or_default();
        rest = after;
        if let Some(home) = homes.get(file) {
            out.push_str(&relative(path, home));
            rest = &after[file.len()..];
        }
    }
    out.push_str(rest);
    out
}

/// The path to one page as seen from another.
fn relative(from: &str, to: &str) -> String {
    let (mut from, mut to) = (from, to);
    while let (Some((a, rest)), Some((b, other))) = (from.split_once('/'), to.split_once('/')) {
        if a != b {
            break;
        }
        (from, to) = (rest, other);
    }
    "../".repeat(from.matches('/').count()) + to
}

/// A page with its made parts made again.
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
        "# Diagnostics\n\n{MADE_NOTE}\n\nEvery message has a code. `rtc explain CODE` prints its entry. The cases are \
         tests: `tests/filetests/diagnostics`.\n\nEvery warning has a level: `allow` (not shown), `warn`, or `deny` \
         (an error). `--allow`, `--warn` and `--deny` set it, by code or for a group: `warnings` selects the warnings that \
         are on by default, `all` every warning. A build script sets levels in `rtc_build::Config`, a program in \
         `rtc_compiler::Levels`.\n\n\
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
        writeln!(out, "\nAn example, with the message as it is drawn: [{case}](../../{path}).")
            .expect("writes to memory");
    }
    out
}

/// The anchor that a heading has on the usual hosts.
pub fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().trim().replace(' ', "-")
}
