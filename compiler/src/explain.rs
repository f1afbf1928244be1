//! The meaning of a code, or the reference entry of a name. The pages under `docs/` are part of the program.

use rtc_passes::Refusal;
use rtc_source::{CODES, Code, Level, WARNINGS};

/// Pages whose entries are headings such as "## `tl.dot`", in the order in which names are looked up.
const PAGES: &[&str] = &[
    include_str!("../docs/language/functions/programs-and-ranges.md"),
    include_str!("../docs/language/functions/making-blocks-casts-types.md"),
    include_str!("../docs/language/functions/shapes.md"),
    include_str!("../docs/language/functions/memory.md"),
    include_str!("../docs/language/functions/block-pointers.md"),
    include_str!("../docs/language/functions/tensor-descriptors.md"),
    include_str!("../docs/language/functions/atomic-operations.md"),
    include_str!("../docs/language/functions/choice.md"),
    include_str!("../docs/language/functions/mathematics.md"),
    include_str!("../docs/language/functions/matrix-multiplication.md"),
    include_str!("../docs/language/functions/reductions-scans-sorting.md"),
    include_str!("../docs/language/functions/messages-hints-inline-assembly.md"),
    include_str!("../docs/language/functions/the-device.md"),
    include_str!("../docs/language/functions/the-target.md"),
    include_str!("../docs/language/functions/functions-of-python.md"),
    include_str!("../docs/language/functions/functions-of-triton.md"),
    include_str!("../docs/language/functions/pythons-math-on-constants.md"),
    include_str!("../docs/language/functions/random-numbers.md"),
    include_str!("../docs/language/libdevice/elementary-functions.md"),
    include_str!("../docs/language/libdevice/rounding-bits-conversions-fast-forms.md"),
    include_str!("../docs/language/values.md"),
    include_str!("../docs/language/triton_helpers.md"),
    include_str!("../docs/formats/tile-ir.md"),
    include_str!("../docs/language/advice.md"),
];

/// The start of an entry's heading, of the second or the third level.
const HEADING: &str = "## `";

/// The page of a code or the entries of a name, or the list of all codes.
///
/// ```
/// assert!(rtc_compiler::explain(Some("tf32")).unwrap().contains("input_precision"));
/// assert!(rtc_compiler::explain(None).unwrap().contains("shape-mismatch"));
/// assert!(rtc_compiler::explain(Some("tl.aragne")).unwrap_err().contains("did you mean `tl.arange`?"));
/// ```
///
/// # Errors
///
/// A sentence with the names that may have been meant, if there is no such name.
pub fn explain(name: Option<&str>) -> Result<String, String> {
    let Some(wanted) = name else {
        let line =
            |(code, page): &(Code, &str)| format!("{:24} {}\n", code.0, page.trim().lines().next().unwrap_or_default());
        return Ok(CODES.iter().map(line).collect());
    };
    if let Some((_, page)) = CODES.iter().find(|(code, _)| code.0 == wanted) {
        let mut text = without_marks(page);
        if let Some((code, level)) = WARNINGS.iter().find(|(code, _)| code.0 == wanted) {
            text.push_str(&format!("\n{}\n", levels(*code, *level)));
        }
        return Ok(text);
    }
    if let Some(refusal) = Refusal::ALL.iter().find(|refusal| refusal.code() == wanted) {
        let (message, help) = (refusal.message(), refusal.help());
        return Ok(format!(
            "A remark of `-v`, about warp specialization and TMA: {message}.\n\nTo change it, {help}.\n"
        ));
    }
    let found = entries_of(wanted);
    if found.is_empty() {
        return Err(unknown(wanted));
    }
    let drawn: Vec<String> = found.iter().map(|(name, text)| plain(name, text)).collect();
    Ok(drawn.join("\n"))
}

/// The ways to change the level of a warning.
fn levels(code: Code, level: Level) -> String {
    match level {
        Level::Allow => {
            format!("As a warning it is off by default: `--warn {code}` shows it, `--deny {code}` makes it an error.")
        }
        Level::Warn => {
            format!("As a warning it is on by default: `--allow {code}` hides it, `--deny {code}` makes it an error.")
        }
        Level::Deny => format!("By default it is an error: `--warn {code}` only shows it, `--allow {code}` hides it."),
    }
}

/// All entries: name and the text below the heading.
fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().flat_map(|page| page.split(HEADING).skip(1)).filter_map(|section| {
        let (name, text) = section.split_once("`\n")?;
        // The last entry of a group ends at the heading of the next one; the next entry may leave its first `#` here.
        Some((name, text.split("\n## ").next().unwrap_or(text).trim_end_matches('#')))
    })
}

/// The entries that a name may mean: its own; for a name without a dot all that end with it.
fn entries_of(wanted: &str) -> Vec<(&'static str, &'static str)> {
    let name = wanted.strip_suffix("()").unwrap_or(wanted);
    let name = name.strip_prefix("triton.language.").map_or(name.to_string(), |rest| format!("tl.{rest}"));
    let aliases = ["tl.math.", "tl.core.", "tl.standard.", "tl.random."];
    let name = aliases.iter().find_map(|a| name.strip_prefix(a)).map_or(name.clone(), |rest| format!("tl.{rest}"));
    let last = name.rsplit('.').next().unwrap_or(&name);
    let ends = |(entry, _): &(&str, &str)| entry.rsplit('.').next() == Some(last);
    let exact: Vec<_> = entries().filter(|(entry, _)| *entry == name).collect();
    match name.split_once('.') {
        None => entries().filter(ends).collect(),
        // A method is the function of that name; many functions of libdevice are members of `tl`.
        Some(("x" | "tl", _)) if exact.is_empty() => {
            let module = |(entry, _): &(&str, &str)| entry.starts_with("tl.") || entry.starts_with("libdevice.");
            entries().filter(module).filter(ends).take(1).collect()
        }
        Some(_) => exact,
    }
}

fn unknown(wanted: &str) -> String {
    let names = entries().map(|(name, _)| name).chain(CODES.iter().map(|(code, _)| code.0));
    let hint = match rtc_sema::suggest(wanted, names) {
        Some(close) => format!("did you mean `{close}`?"),
        None => "`rtc explain` lists all codes".to_string(),
    };
    format!("there is no code or function `{wanted}`; {hint}")
}

/// An entry with its name above it.
fn plain(name: &str, text: &str) -> String {
    format!("{name}\n{}", without_marks(text))
}

/// A text without the marks of Markdown: code is indented, links keep their text.
fn without_marks(text: &str) -> String {
    let (mut out, mut code) = (String::new(), false);
    for line in text.trim_end().lines() {
        if line.starts_with("```") {
            code = !code;
            continue;
        }
        let indent = if code && !line.is_empty() { "    " } else { "" };
        out.push_str(indent);
        out.push_str(&if code { line.to_string() } else { without_links(line) });
        out.push('\n');
    }
    out
}

/// `[text](target)` as `text`.
fn without_links(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, tail)) = after.split_once(')') else { break };
        match before.rsplit_once('[') {
            // Not in code: `kernel[grid](...)`.
            Some((head, text)) if before.matches('`').count() % 2 == 0 => {
                out.push_str(head);
                out.push_str(text);
            }
            _ => {
                out.push_str(before);
                out.push_str("](");
                out.push_str(target);
                out.push(')');
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_all_their_forms() {
        let names = |wanted| entries_of(wanted).iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names("tl.dot"), ["tl.dot"]);
        assert_eq!(names("triton.language.dot()"), ["tl.dot"]);
        assert_eq!(names("tl.math.exp"), ["tl.exp"]);
        assert_eq!(names("x.sum"), ["tl.sum"]);
        assert_eq!(names("tl.tanh"), ["libdevice.tanh"]);
        assert_eq!(names("dot"), ["tl.dot", "dot"]);
        assert_eq!(names("nowhere.dot"), [""; 0]);
    }

    #[test]
    fn entries_lose_their_markdown() {
        let (name, text) = entries_of("tl.arange")[0];
        let drawn = plain(name, text);
        assert!(drawn.starts_with("tl.arange\n\n    tl.arange(start: tl.constexpr, end: tl.constexpr)\n"), "{drawn}");
        assert!(!drawn.contains("](") && !drawn.contains("```"), "{drawn}");
        assert!(drawn.contains("\n    >>> tl.arange(4, 8)\n    int32[4]: [4, 5, 6, 7]\n"), "{drawn}");
        assert_eq!(without_links("a [b](c#d), [`e`](f), `g[h](i)`."), "a b, `e`, `g[h](i)`.");
    }

    #[test]
    fn every_page_with_entries_is_read() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/language");
        let mut pages = 0;
        for folder in ["functions", "libdevice"] {
            for file in std::fs::read_dir(docs.join(folder)).unwrap() {
                let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
                for name in text.split("\n## `").skip(1).filter_map(|entry| entry.split_once('`')) {
                    assert!(entries().any(|(entry, _)| entry == name.0), "{}", name.0);
                    pages += 1;
                }
            }
        }
        assert!(pages > 300, "{pages}");
    }

    #[test]
    fn every_entry_is_found_by_its_name() {
        assert!(entries().count() > 400);
        for (name, _) in entries() {
            assert!(entries_of(name).iter().any(|(found, _)| *found == name), "{name}");
        }
    }
}
