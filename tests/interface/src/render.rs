//! From crates to the lines of their interfaces.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use public_api::Builder;

/// The format of rustdoc's JSON that `public-api` reads, which is that of Rust 1.95.
const FORMAT: u64 = 57;

/// Traits that the compiler implements and programs do not name. Which there are depends on the release of Rust.
const UNNAMED: [&str; 6] = [
    "core::marker::Freeze",
    "core::marker::StructuralPartialEq",
    "core::marker::Unpin",
    "core::marker::UnsafeUnpin",
    "core::panic::unwind_safe::RefUnwindSafe",
    "core::panic::unwind_safe::UnwindSafe",
];

/// Makes rustdoc write the items of the crates as JSON, all in one run, and returns the folder.
pub fn document(root: &Path, crates: &[&str], features: &[&str]) -> Result<PathBuf, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).stdout(Stdio::null());
    command.env("RUSTDOC", root.join("tests/interface/rustdoc.sh"));
    command.env("RUSTDOCFLAGS", "-Zunstable-options --output-format=json --cap-lints=allow");
    command.args(["doc", "--quiet", "--locked", "--lib", "--no-deps", "--features", &features.join(",")]);
    for name in crates {
        command.args(["-p", name]);
    }
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err("rustdoc failed".into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root.join(target).join("doc"))
}

/// The interface of a crate as rustdoc described it in `folder`, an item on each line.
pub fn interface(folder: &Path, name: &str) -> Result<String, String> {
    let json = folder.join(name.replace('-', "_")).with_extension("json");
    let text = fs::read_to_string(&json).map_err(|error| format!("{}: {error}", json.display()))?;
    check_format(&text)?;
    let api = Builder::from_rustdoc_json(&json).omit_blanket_impls(true).build();
    let api = api.map_err(|error| format!("{}: {error}", json.display()))?;
    Ok(named(api.items().map(ToString::to_string)))
}

fn check_format(json: &str) -> Result<(), String> {
    let value: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    match value["format_version"].as_u64() {
        Some(FORMAT) => Ok(()),
        other => Err(format!(
            "rustdoc writes format {} here and format {FORMAT} is read, that of Rust 1.95: \
             compare with that release, or take the release of `public-api` for this one (tests/interface/Cargo.toml)",
            other.map_or("(none)".into(), |number| number.to_string())
        )),
    }
}

/// The lines without those that follow from others: the methods of an implemented trait, whose signatures the trait
/// has, and auto traits.
fn named(items: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    let mut methods = None;
    for item in items {
        if let Some(signature) = item.strip_prefix("impl") {
            let implemented = signature.split_once(" for ");
            methods = implemented.map(|(_, own)| format!(" {}::", own.split(" where ").next().unwrap_or(own)));
            let of_compiler = |(head, _): (&str, &str)| UNNAMED.iter().any(|name| head.ends_with(name));
            if implemented.is_some_and(of_compiler) {
                continue;
            }
        } else if methods.as_ref().is_some_and(|own| item.contains("fn ") && item.contains(own.as_str())) {
            continue;
        } else if !item.starts_with("pub type") {
            methods = None;
        }
        out.push_str(&item);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_other_lines_is_left_out() {
        let items = [
            "pub struct a::S<T>",
            "impl<T> a::S<T>",
            "pub fn a::S<T>::len(&self) -> usize",
            "impl<T> core::clone::Clone for a::S<T> where T: core::clone::Clone",
            "pub fn a::S<T>::clone(&self) -> a::S<T>",
            "impl<T> core::iter::Iterator for a::S<T>",
            "pub type a::S<T>::Item = T",
            "pub fn a::S<T>::next(&mut self) -> core::option::Option<T>",
            "impl<T> core::marker::Freeze for a::S<T>",
            "impl<T> !core::marker::Sync for a::S<T>",
            "pub fn a::free()",
        ];
        let kept = [0, 1, 2, 3, 5, 6, 9, 10].map(|at: usize| format!("{}\n", items[at])).concat();
        assert_eq!(named(items.iter().map(ToString::to_string)), kept);
    }

    #[test]
    fn another_format_is_named() {
        let error = check_format("{\"format_version\": 60}").expect_err("not 57");
        assert!(error.contains("format 60") && error.contains("Rust 1.95"), "{error}");
    }
}
