//! Planted bugs in PTX, `tests/planted/*.ptx`: the sanitizer must report each at its line, and nothing else.
//!
//! A line that must be reported ends in `// BUG CODE..`. Each kernel is preceded by lines that start with `//!`:
//! ```text
//! //! launch KERNEL [grid=N] [block=N] [cluster=N] [shared=N]
//! //! in NAME u32: values           an allocation, passed as the next parameter; `a..b` counts, `V*N` repeats
//! //! raw NAME BYTES                an uninitialized one
//! //! arg u32: value                a number, passed as the next parameter
//! ```
#![allow(clippy::unwrap_used)]

use rtc_emulator::sanitize::{Checks, Report};
use rtc_emulator::{LaunchConfig, Memory, Program, Schedule};
use std::collections::BTreeSet;

type Marks = BTreeSet<(u32, String)>;

/// The marks between the `.entry` of a kernel and the brace that ends it.
fn marks(lines: &[&str], kernel: &str) -> Marks {
    let start = lines.iter().position(|l| l.contains(&format!(".entry {kernel}("))).unwrap();
    let length = lines[start..].iter().position(|l| *l == "}").unwrap();
    let marked = lines.iter().enumerate().skip(start).take(length);
    let marked = marked.filter_map(|(i, line)| Some((i as u32 + 1, line.split_once("// BUG ")?.1)));
    marked.flat_map(|(line, codes)| codes.split_whitespace().map(move |code| (line, code.to_string()))).collect()
}

fn numbers(text: &str) -> Vec<u32> {
    let word = |word: &str| -> Vec<u32> {
        match (word.split_once(".."), word.split_once('*')) {
            (Some((a, b)), _) => (a.parse().unwrap()..b.parse().unwrap()).collect(),
            (_, Some((v, n))) => vec![v.parse().unwrap(); n.parse().unwrap()],
            _ => vec![word.parse().unwrap()],
        }
    };
    text.split_whitespace().flat_map(word).collect()
}

/// The expected reports of a launch.
fn run(program: &Program, launch: &str, header: &[&str], schedule: Schedule) -> Vec<Report> {
    let mut words = launch.split_whitespace();
    let mut config = LaunchConfig { sanitize: Checks::ALL, schedule, ..LaunchConfig::new(words.next().unwrap()) };
    config.budget = Some(10_000);
    for word in words {
        let (key, text) = word.split_once('=').unwrap();
        let number = text.parse().unwrap();
        match key {
            "grid" => config.grid[0] = number,
            "block" => config.block[0] = number,
            "cluster" => config.cluster[0] = number,
            "shared" => config.shared_bytes = number,
            _ => panic!("unknown key `{key}`"),
        }
    }
    let mut memory = Memory::new();
    memory.track();
    let mut params: Vec<u8> = Vec::new();
    let mut push = |bytes: &[u8]| {
        params.resize(params.len().next_multiple_of(bytes.len()), 0);
        params.extend_from_slice(bytes);
    };
    for line in header {
        let (words, text) = line.split_once(':').unwrap_or((line, ""));
        match words.split_whitespace().collect::<Vec<_>>()[..] {
            ["in", name, "u32"] => {
                let data: Vec<u8> = numbers(text).into_iter().flat_map(u32::to_le_bytes).collect();
                let address = memory.alloc(data.len(), 16, name);
                memory.write(address, &data).unwrap();
                push(&address.to_le_bytes());
            }
            ["raw", name, bytes] => push(&memory.alloc(bytes.parse().unwrap(), 128, name).to_le_bytes()),
            ["arg", "u32"] => push(&numbers(text)[0].to_le_bytes()),
            _ => panic!("unknown line `{line}`"),
        }
    }
    config.params = &params;
    match program.launch(&mut memory, &config) {
        Ok(report) => report.findings.iter().map(rtc_emulator::Finding::report).chain(report.reports).collect(),
        Err(mut fault) => {
            let last = fault.report().unwrap_or_else(|| panic!("{fault}"));
            let before: Vec<Report> = fault.findings.iter().map(rtc_emulator::Finding::report).collect();
            before.into_iter().chain(std::mem::take(&mut fault.reports)).chain([last]).collect()
        }
    }
}

#[test]
fn every_planted_mistake_is_reported_at_its_line() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted");
    let (mut failures, mut planted) = (Vec::new(), 0);
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let program = Program::load(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let lines: Vec<&str> = text.lines().collect();
        let headers: Vec<&str> = lines.iter().filter_map(|l| l.strip_prefix("//! ")).collect();
        let starts: Vec<usize> = (0..headers.len()).filter(|i| headers[*i].starts_with("launch ")).collect();
        for (n, start) in starts.iter().enumerate() {
            let header = &headers[start + 1..starts.get(n + 1).copied().unwrap_or(headers.len())];
            let launch = headers[*start].trim_start_matches("launch ");
            let wanted = marks(&lines, launch.split_whitespace().next().unwrap());
            planted += usize::from(!wanted.is_empty());
            let reports = run(&program, launch, header, Schedule::InOrder);
            let found: Marks = reports.iter().map(|r| (r.place.ptx_line, r.code.to_string())).collect();
            if found != wanted {
                let all: Vec<String> = reports.iter().map(ToString::to_string).collect();
                failures.push(format!("{name}, {launch}: wanted {wanted:?}, found:\n  {}", all.join("\n  ")));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(planted >= 43, "only {planted} planted mistakes");
}
