//! The language reference, as resources.

/// A page: the end of its address, its text.
pub(crate) type Page = (&'static str, &'static str);

macro_rules! pages {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../pages/", $name)))),*]
    };
}

/// The pages of `docs/language`.
pub(crate) const PAGES: &[Page] = pages![
    "README.md",
    "language.md",
    "values.md",
    "differences.md",
    "advice.md",
    "autotuning.md",
    "diagnostics.md",
    "functions/README.md",
    "functions/atomic-operations.md",
    "functions/choice.md",
    "functions/functions-of-python.md",
    "functions/functions-of-triton.md",
    "functions/making-blocks-casts-types.md",
    "functions/mathematics.md",
    "functions/matrix-multiplication.md",
    "functions/memory.md",
    "functions/messages-hints-inline-assembly.md",
    "functions/programs-and-ranges.md",
    "functions/random-numbers.md",
    "functions/reductions-scans-sorting.md",
    "functions/shapes.md",
    "functions/tensor-descriptors.md",
];

const PREFIX: &str = "rtc://language/";

/// The address of a page.
pub(crate) fn address(page: &Page) -> String {
    format!("{PREFIX}{}", page.0)
}

/// Its heading.
pub(crate) fn title(page: &Page) -> &'static str {
    let heading = page.1.lines().find_map(|line| line.strip_prefix("# "));
    heading.unwrap_or(page.0)
}

/// The page of an address.
pub(crate) fn find(address: &str) -> Option<&'static Page> {
    let name = address.strip_prefix(PREFIX)?;
    PAGES.iter().find(|page| page.0 == name)
}
