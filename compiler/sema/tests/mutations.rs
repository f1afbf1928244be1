//! Robustness: random changes of published kernels are compiled or refused, quickly and without a panic.

mod kernels;
mod mutate;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kernels::analyse;
use mutate::{Random, mutant, tokens};
use rtc_sema::spec::{ArgKind, ArgSpec, ConstValue, ValueType};
use rtc_source::render;
use serde_json::Value;

/// How many mutants are compiled; `RTC_MUTANTS` changes it.
const MUTANTS: u64 = 2000;
/// No mutant takes longer.
const LIMIT: Duration = Duration::from_secs(2);

/// Kernel files under `tests/golden` and `tests/seeds`, with a launch next to them.
fn kernel_files() -> Vec<(PathBuf, String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut out = Vec::new();
    let mut folders = vec![root.join("golden"), root.join("seeds")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for entry in entries {
            let path = entry.expect("a directory entry").path();
            let extension = path.extension().and_then(|x| x.to_str());
            if path.is_dir() {
                folders.push(path);
            } else if matches!(extension, Some("rt" | "py")) {
                let text = fs::read_to_string(&path).expect("the file is text");
                if text.contains("@triton.jit") {
                    let launch = launch_beside(&path);
                    out.push((path, text, launch));
                }
            }
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

fn launch_beside(path: &Path) -> Value {
    let entries = path.parent().and_then(|p| fs::read_dir(p).ok()).into_iter().flatten().flatten();
    let mut launches: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    launches.retain(|p| p.to_string_lossy().ends_with(".launch.json"));
    launches.sort();
    let text = launches.first().and_then(|p| fs::read_to_string(p).ok());
    text.and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default()
}

/// The arguments of the first launch next to a kernel file; without one, guessed from the names. A few are spoiled.
fn arguments(params: &[String], launch: &Value, mut random: Option<&mut Random>) -> Vec<ArgSpec> {
    let value = |text: &str| ArgKind::Value { ty: ValueType::parse(text).expect("a type"), divisible_by: None };
    let mut args = Vec::new();
    for name in params {
        let known = launch["spec"]["args"].as_array().and_then(|all| all.iter().find(|a| a["name"] == name.as_str()));
        let spoiled = random.as_mut().map(|r| r.below(60));
        let kind = match known {
            _ if spoiled == Some(0) => value(["*i8", "i64", "fp32", "u1", "*kfp16"][name.len() % 5]),
            _ if spoiled == Some(1) => ArgKind::Constexpr(ConstValue::None),
            Some(known) => match (known["type"].as_str(), constant(&known["constexpr"])) {
                (Some(ty), _) => value(ty),
                (None, Some(constant)) => ArgKind::Constexpr(constant),
                // A parameter with a default.
                (None, None) => continue,
            },
            None if launch.is_object() => continue,
            None if name.chars().all(|c| !c.is_lowercase()) && name.len() > 1 => {
                ArgKind::Constexpr(ConstValue::Int(16))
            }
            None if name.contains("ptr") || name.len() == 1 && name.chars().all(char::is_lowercase) => value("*fp16"),
            None if name.contains("eps") || name == "p" => value("fp32"),
            None => value("i32"),
        };
        args.push(ArgSpec { name: name.clone(), kind });
    }
    args
}

fn constant(json: &Value) -> Option<ConstValue> {
    Some(match json {
        Value::Null => return None,
        Value::Bool(b) => ConstValue::Bool(*b),
        Value::Number(n) => match n.as_i64() {
            Some(i) => ConstValue::Int(i.into()),
            None => ConstValue::Float(n.as_f64()?),
        },
        Value::String(text) => ConstValue::Str(text.clone()),
        other => match other["function"].as_str() {
            Some(name) => ConstValue::Function(name.to_owned()),
            None => ConstValue::DType(ValueType::parse(other["dtype"].as_str()?)?),
        },
    })
}

#[test]
fn mutants_neither_panic_nor_hang() {
    let seed = std::env::var("RTC_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0x5eed_1234_5678_9abc);
    let count = std::env::var("RTC_MUTANTS").ok().and_then(|s| s.parse().ok()).unwrap_or(MUTANTS);
    println!("seed {seed}");
    let files = kernel_files();
    assert!(files.len() >= 10, "only {} kernels", files.len());
    let (mut accepted, mut refused, mut slowest) = (0u64, 0u64, Duration::ZERO);
    for i in 0..count {
        let mut random = Random((seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
        random.next();
        let (path, text, launch) = &files[random.below(files.len())];
        let changed = mutant(&tokens(text), &mut random);
        let kernels: Vec<&str> = text.split("@triton.jit").skip(1).filter_map(name_of).collect();
        let named = launch["spec"]["kernel"].as_str();
        let Some(kernel) = named.or(kernels.last().copied()) else { continue };
        let start = Instant::now();
        let run = || {
            let (sources, result) =
                analyse("kernel.rt", &changed, kernel, |p| arguments(p, launch, Some(&mut random)), 90);
            result.map(|_| ()).map_err(|ds| ds.iter().map(|d| render(&sources, d, false)).collect::<Vec<_>>())
        };
        let result = catch_unwind(AssertUnwindSafe(run));
        let took = start.elapsed();
        slowest = slowest.max(took);
        let place = format!("seed {seed}, mutant {i} of {}:\n{changed}", path.display());
        match result {
            Err(_) => panic!("a panic: {place}"),
            Ok(Ok(())) => accepted += 1,
            Ok(Err(findings)) => {
                refused += 1;
                assert!(!findings.is_empty(), "refused without a reason: {place}");
                let internal = findings.iter().find(|f| f.starts_with("error[internal]"));
                assert!(internal.is_none(), "{}{place}", internal.map_or("", |f| f));
            }
        }
        assert!(took < LIMIT, "{took:?}: {place}");
    }
    println!("{accepted} accepted, {refused} refused, the slowest took {slowest:?}");
    assert!(accepted > count / 20 && refused > count / 20, "the mutants are too alike");
}

#[test]
fn the_originals_are_accepted() {
    let mut count = 0;
    for (path, text, launch) in kernel_files() {
        let Some(kernel) = launch["spec"]["kernel"].as_str() else { continue };
        let (sources, result) = analyse("kernel.rt", &text, kernel, |p| arguments(p, &launch, None), 90);
        if let Err(findings) = result {
            let drawn: Vec<String> = findings.iter().map(|d| render(&sources, d, false)).collect();
            panic!("{}: {}", path.display(), drawn.join("\n"));
        }
        count += 1;
    }
    assert!(count >= 10, "only {count} kernels with a launch");
}

fn name_of(block: &str) -> Option<&str> {
    let def = &block[block.find("def ")? + 4..];
    Some(def[..def.find('(')?].trim())
}
