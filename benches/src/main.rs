//! The table of `make bench`: medians measured by criterion, compared with the baseline of this machine.
//!
//! `rtc-benches CRITERION BASELINE [--save]`: the folder that criterion writes to, the file of the baseline, and whether the
//! present values become the baseline.

use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, baseline, rest @ ..] = &arguments[..] else {
        eprintln!("usage: rtc-benches CRITERION BASELINE [--save]");
        std::process::exit(2);
    };
    let mut found = Vec::new();
    estimates(Path::new(folder), &mut found)?;
    found.sort();
    let before: Map<String, Value> = match std::fs::read_to_string(baseline) {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Map::new(),
    };
    println!("{:44} {:>12} {:>12} {:>9}", "benchmark", "now", "baseline", "change");
    let mut now = Map::new();
    for path in found {
        let (name, median) = read(&path)?;
        let old = before.get(&name).and_then(Value::as_f64);
        let change = old.map_or("new".to_owned(), |old| format!("{:+.1} %", (median / old - 1.0) * 100.0));
        let old = old.map_or("-".to_owned(), shown);
        println!("{name:44} {:>12} {old:>12} {change:>9}", shown(median));
        now.insert(name, median.into());
    }
    if rest.iter().any(|argument| argument == "--save") {
        std::fs::write(baseline, serde_json::to_string_pretty(&now)?)?;
        println!("saved as the baseline of this machine: {baseline}");
    }
    Ok(())
}

/// The folders `new` below, each with the result of one benchmark.
fn estimates(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.ends_with("new") && path.join("estimates.json").exists() {
            found.push(path);
        } else if path.is_dir() {
            estimates(&path, found)?;
        }
    }
    Ok(())
}

/// Name and median in nanoseconds.
fn read(folder: &Path) -> std::io::Result<(String, f64)> {
    let json = |file: &str| -> std::io::Result<Value> {
        Ok(serde_json::from_str(&std::fs::read_to_string(folder.join(file))?)?)
    };
    let name = json("benchmark.json")?["full_id"].as_str().unwrap_or("?").to_owned();
    Ok((name, json("estimates.json")?["median"]["point_estimate"].as_f64().unwrap_or(f64::NAN)))
}

fn shown(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e3 => format!("{n:.1} ns"),
        n if n < 1e6 => format!("{:.2} us", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}
