//! The public interface of the crates that programs use, as text: `tests/interface/CRATE.txt` has a line for each item.
//!
//! `rtc-interface` makes the lines again from the JSON that rustdoc writes, shows how they differ from the recorded ones and
//! fails if they do; `rtc-interface --accept` records them. `scripts/semver` runs it.

mod compare;
mod render;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use compare::Change;

/// The crates that programs use.
const CRATES: [&str; 7] =
    ["rtc-abi", "rtc-assembler", "rtc-build", "rtc-cache", "rtc-runtime", "rtc-testing", "rtc-tune"];

/// All features that bring items. `scripts/check` makes the documentation with the same, so that one build serves both.
const FEATURES: [&str; 4] = ["rtc-build/linked", "rtc-runtime/dlpack", "rtc-runtime/jit", "rtc-runtime/ndarray"];

fn main() -> ExitCode {
    let accept = match env::args().nth(1).as_deref() {
        None => false,
        Some("--accept") => true,
        Some(other) => {
            eprintln!("interface: unknown argument `{other}`; `--accept` is the only one");
            return ExitCode::from(2);
        }
    };
    match run(accept) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("interface: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing differs.
fn run(accept: bool) -> Result<bool, String> {
    let recorded_in = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = recorded_in.ancestors().nth(2).ok_or("the crate is not in the repository")?;
    let documented = render::document(root, &CRATES, &FEATURES)?;
    let (mut removed, mut added) = (0, 0);
    for name in CRATES {
        let present = render::interface(&documented, name)?;
        let path = recorded_in.join(format!("{name}.txt"));
        if accept {
            fs::write(&path, present).map_err(|error| format!("{}: {error}", path.display()))?;
            continue;
        }
        let recorded = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let changes = compare::changes(&recorded, &present);
        if changes.is_empty() {
            continue;
        }
        eprintln!("--- {name}");
        for change in &changes {
            eprintln!("{change}");
            match change {
                Change::Removed(_) => removed += 1,
                Change::Added(_) => added += 1,
            }
        }
    }
    if removed > 0 {
        eprintln!(
            "interface: {removed} items of what programs use were removed or changed; if that is meant, \
             `scripts/semver --accept` records the new interface, and the commit message says what programs must change"
        );
    } else if added > 0 {
        eprintln!("interface: {added} items are new, nothing breaks; `scripts/semver --accept` records them");
    } else if !accept {
        println!("interface: {} crates as recorded", CRATES.len());
    }
    Ok(removed + added == 0)
}
