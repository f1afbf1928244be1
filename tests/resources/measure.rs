//! The resources of kernels, as tables that every change must keep or improve: one for each folder of `tests/golden`
//! and `tests/seeds`, and one for each file of `tests/resources`.
//!
//! A file of `tests/resources` has kernels at realistic sizes. Its header has a line for each row of the table: `# case
//! NAME warps N SIGNATURE`, or `# case NAME warps N kernel KERNEL SIGNATURE`.
//!
//! The columns are, for each target: conversions between layouts through shared memory, the bytes
//! of their tiles (all, and of those in loops), conversions by shuffles, and by renaming registers (each counted once,
//! however often a loop runs it); the instructions of PTX that name `ldmatrix`, `stmatrix`, `mma.sync`,
//! `wgmma.mma_async` and `bar.sync`; and bytes of shared memory. Registers, their estimate and spilled bytes are in a table of their own, which
//! is compared where NVIDIA's assembler is of the release that the table names.
//! `INSTA_UPDATE=always cargo test --test golden resources` writes the tables.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};

use libtest_mimic::{Failed, Trial};
use rtc_compiler::{Program, Signature, Source, Spec};
use rtc_passes::Conversions;
use rtc_test_needs::{Need, missing};

use crate::compilations::Compilations;
use crate::{entries, launches, name_of, ptxas};

/// The targets of the tables.
pub const TARGETS: [&str; 2] = ["sm_80", "sm_90a"];

/// The counts of the PTX.
const INSTRUCTIONS: [&str; 5] = ["ldmatrix.", "stmatrix.", "mma.sync.", "wgmma.mma_async.", "bar.sync"];

/// A kernel to be measured.
struct Row {
    name: String,
    /// The name of its compilation.
    key: String,
    spec: Spec,
}

/// The trial of the table of a folder of cases.
pub fn folder_trial(folder: &Path, compilations: &Arc<Compilations>) -> Trial {
    let (name, folder, shared) = (name_of(folder, "_"), folder.to_path_buf(), compilations.clone());
    Trial::test(format!("resources {name}"), move || compare(&name, &shared, &launched(&folder)?))
}

/// A trial for each table of `tests/resources`.
pub fn file_trials() -> Vec<Trial> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default().join("tests");
    let trial = |source: PathBuf| {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Trial::test(format!("resources {name}"), move || {
            let rows = listed(&fs::read_to_string(&source)?)?;
            compare(&name, &Compilations::new(source), &rows)
        })
    };
    entries(&root.join("resources")).into_iter().filter(|p| is_source(p)).map(trial).collect()
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "rt" || e == "py")
}

/// The specializations of the launches of a folder, each once.
fn launched(folder: &Path) -> Result<Vec<Row>, Failed> {
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for path in launches(folder) {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = file.trim_end_matches(".launch.json");
        let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
        let text = json["spec"].to_string();
        if seen.insert(text.clone()) {
            let spec = Spec::parse(&text).map_err(|e| e.to_string())?;
            rows.push(Row { name: name.into(), key: text, spec });
        }
    }
    Ok(rows)
}

/// The cases of the header of a file.
fn listed(text: &str) -> Result<Vec<Row>, Failed> {
    let program = Program::parse(&[Source::new("kernel.rt", text)]);
    let mut rows = Vec::new();
    for line in text.lines().filter_map(|l| l.strip_prefix("# case ")) {
        let (name, rest) = line.trim().split_once(' ').ok_or("a case has a name")?;
        let rest = rest.trim_start().strip_prefix("warps ").ok_or("a case has warps")?;
        let (warps, rest) = rest.split_once(' ').ok_or("a case has a signature")?;
        let (kernel, signature) = match rest.strip_prefix("kernel ") {
            Some(rest) => rest.split_once(' ').ok_or("a case has a signature")?,
            None => ("kernel", rest),
        };
        let found = program.kernel(Some(kernel)).map_err(|e| e.to_string())?;
        let names: Vec<&str> = found.params.iter().map(|p| p.name.as_str()).collect();
        let args = Signature::parse(signature).and_then(|s| s.bind(&names)).map_err(|e| format!("{name}: {e}"))?;
        let mut spec = Spec { kernel: Some(kernel.into()), args, ..Spec::default() };
        spec.options.num_warps = warps.parse().map_err(|_| format!("`{warps}` is no number of warps"))?;
        rows.push(Row { name: name.into(), key: name.into(), spec });
    }
    Ok(rows)
}

/// Measures the kernels and compares both tables.
fn compare(name: &str, compilations: &Compilations, rows: &[Row]) -> Result<(), Failed> {
    let wide = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let has_release = *HAS_RELEASE;
    if !has_release {
        missing(Need::Ptxas);
    }
    let mut table = format!(
        "{:wide$}  target  shared   bytes  in loops  shuffle  rename  ldmatrix  stmatrix  mma  wgmma  bar  shared memory\n",
        ""
    );
    let mut registers = format!("{:wide$}  target  registers  estimate  spilled bytes\n", "");
    for row in rows {
        for name in TARGETS {
            let made = compilations.compile(&row.key, &row.spec, name).map_err(|e| format!("{}: {e}", row.name))?;
            // Types that an older target lacks.
            let Some(made) = made else {
                writeln!(table, "{:wide$}  {name:6}  refused", row.name)?;
                continue;
            };
            let artifact = &made.compiled.artifact;
            let counts = INSTRUCTIONS.map(|word| artifact.ptx.matches(word).count());
            let [load, store, mma, wgmma, bar] = counts;
            let Conversions { shared, shared_bytes, looped_bytes, shuffles, registers: renamed } = made.conversions;
            let bytes = artifact.metadata.shared_bytes;
            writeln!(
                table,
                "{:wide$}  {name:6}  {shared:6}  {shared_bytes:6}  {looped_bytes:8}  {shuffles:7}  {renamed:6}  {load:8}  {store:8}  {mma:3}  {wgmma:5}  {bar:3}  {bytes:13}",
                row.name
            )?;
            if has_release && let Some(said) = ptxas::assemble(&artifact.ptx, name)? {
                let used = number_before(&said, " registers").unwrap_or(0);
                let spilled = number_before(&said, " bytes spill stores").unwrap_or(0);
                writeln!(registers, "{:wide$}  {name:6}  {used:9}  {:8}  {spilled:13}", row.name, made.registers)?;
            }
        }
    }
    insta::with_settings!({ snapshot_path => "tables", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, table);
        if has_release {
            insta::assert_snapshot!(format!("{name}_registers"), registers);
        }
    });
    Ok(())
}

/// Whether the assembler is there and of the release that the tables come from.
static HAS_RELEASE: LazyLock<bool> = LazyLock::new(|| {
    let Ok(output) = Command::new(ptxas::program()).arg("--version").output() else { return false };
    let wanted = include_str!("ptxas_release.txt").trim();
    String::from_utf8_lossy(&output.stdout).contains(wanted)
});

/// The largest number before these words.
fn number_before(text: &str, words: &str) -> Option<u64> {
    let ends = text.match_indices(words).map(|(at, _)| &text[..at]);
    ends.filter_map(|before| before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).max()
}
