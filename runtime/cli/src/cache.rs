//! The cache of compiled kernels: `rtc cache`, and what `rtc build` and `rtc run` have of it.

use crate::arguments::{CacheArguments, CacheCommand};
use crate::output::outln;
use crate::problem::Problem;
use crate::report::Reporter;
use rtc_cache::{Cache, CacheConfig, EntryInfo, Error, Origin};
use rtc_compiler::{Compiled, Failure, LaunchOptions, Observer, Program, Specialization, TileKernel};
use rtc_runtime::internal;
use rtc_runtime::jit::{self, Cached};
use rtc_source::Code;
use serde_json::{Value, json};
use std::time::SystemTime;

/// The compilation cache, or the reason why there is none.
pub(crate) struct Store(Result<Cache, String>);

impl Store {
    /// The cache of the environment. One that cannot be used is reported and not used.
    pub(crate) fn open(enabled: bool, reporter: &Reporter) -> Store {
        if !enabled {
            return Store(Err("--no-cache".into()));
        }
        Store(CacheConfig::from_env().and_then(Cache::open).map_err(|error| {
            // Without a setting of the cache, its absence is not worth a message at every call.
            if CacheConfig::is_named_by_env() || matches!(error, Error::Limit(_)) {
                reporter.warning(Code::CACHE, &error.to_string());
            }
            error.to_string()
        }))
    }

    /// Compiles a kernel, through the cache if there is one.
    pub(crate) fn compile(
        &self,
        program: &Program,
        specialization: &Specialization,
        arch: &str,
        reporter: &Reporter,
        observer: &mut dyn Observer,
    ) -> Result<Compiled, Failure> {
        let kernel = &specialization.kernel;
        match &self.0 {
            Ok(cache) => {
                let cached = jit::compile_cached(cache, program, specialization, arch, observer)?;
                tell(cache, kernel, &cached, reporter);
                Ok(cached.compiled)
            }
            Err(reason) => {
                reporter.verbose(&format!("cache: {kernel} was compiled without a cache: {reason}"));
                let hash = rtc_compiler::source_hash(program, specialization, arch);
                rtc_compiler::compile(program, specialization, arch, hash, observer)
            }
        }
    }
}

impl Store {
    /// The same for a kernel that is given as tile IR.
    pub(crate) fn compile_tile_ir(
        &self,
        kernel: &TileKernel,
        options: &LaunchOptions,
        arch: &str,
        reporter: &Reporter,
        observer: &mut dyn Observer,
    ) -> Result<Compiled, Failure> {
        match &self.0 {
            Ok(cache) => {
                let cached = jit::compile_tile_ir_cached(cache, kernel, options, arch, observer)?;
                tell(cache, kernel.name(), &cached, reporter);
                Ok(cached.compiled)
            }
            Err(reason) => {
                reporter.verbose(&format!("cache: {} was compiled without a cache: {reason}", kernel.name()));
                kernel.compile(options, arch, observer)
            }
        }
    }
}

/// Reports the use of the cache, with `-v`, and its problems.
fn tell(cache: &Cache, kernel: &str, cached: &Cached, reporter: &Reporter) {
    let Cached { origin, key, problems, .. } = cached;
    let why = match (origin, problems.first()) {
        (Origin::Cache, _) => "hit".into(),
        (Origin::Awaited, _) => "hit, after another process had compiled it".into(),
        (Origin::Made, Some(Error::Corrupt { reason, .. })) => format!("miss, as the entry is corrupt: {reason}"),
        (Origin::Made, _) => "miss, as there is no entry for these sources, arguments, options, target, levels of \
                              warnings and this build of rtc"
            .into(),
    };
    reporter.verbose(&format!("cache: {kernel}: {why} ({})", cache.path(internal::KERNELS, key).display()));
    for problem in problems {
        match problem.is_read_only() {
            true => reporter.verbose(&format!("cache: {problem}")),
            false => reporter.warning(Code::CACHE, &problem.to_string()),
        }
    }
}

/// `rtc cache list|clear|verify`.
pub(crate) fn manage(arguments: &CacheArguments, reporter: &Reporter) -> Result<(), Problem> {
    let cache = CacheConfig::from_env().and_then(Cache::open).map_err(problem)?;
    let is_json = arguments.json || reporter.is_json();
    match arguments.command {
        CacheCommand::List if is_json => outln!("{}", listed(&cache)?),
        CacheCommand::List => list(&cache),
        CacheCommand::Verify => verify(&cache, is_json, reporter),
        CacheCommand::Clear => {
            let cleared = cache.clear().map_err(problem)?;
            let directory = cache.directory().display();
            if is_json {
                let directory = directory.to_string();
                return outln!(
                    "{}",
                    json!({"directory": directory, "removed": cleared.entries, "bytes": cleared.bytes})
                );
            }
            outln!("removed {}, {} from {directory}", counted(cleared.entries), size(cleared.bytes))
        }
    }
}

fn list(cache: &Cache) -> Result<(), Problem> {
    let mut entries = cache.list().map_err(problem)?;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.last_used));
    for entry in &entries {
        let EntryInfo { kind, key, bytes, last_used, .. } = entry;
        let key = &key.to_string()[..12];
        outln!("{key}  {kind:8}  {:>9}  {:>14}  {}", size(*bytes), ago(*last_used), content(cache, entry))?;
    }
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    outln!("{}, {} in {}", counted(entries.len()), size(bytes), cache.directory().display())
}

/// The entries as JSON.
fn listed(cache: &Cache) -> Result<Value, Problem> {
    let mut entries = cache.list().map_err(problem)?;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.last_used));
    let of = |entry: &EntryInfo| {
        let used = entry.last_used.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let metadata = match cache.peek(entry) {
            Ok(bytes) if entry.kind == internal::KERNELS => rtc_compiler::packed_metadata(&bytes),
            _ => None,
        };
        json!({
            "key": entry.key.to_string(), "kind": entry.kind, "bytes": entry.bytes, "last_used": used,
            "symbol": metadata.as_ref().map(|metadata| &metadata.symbol),
            "arch": metadata.as_ref().map(|metadata| &metadata.arch),
        })
    };
    let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    Ok(json!({
        "directory": cache.directory().display().to_string(), "bytes": bytes,
        "entries": entries.iter().map(of).collect::<Vec<_>>(),
    }))
}

/// A short description of an entry.
fn content(cache: &Cache, entry: &EntryInfo) -> String {
    // `peek` changes nothing: neither when the entry was used, nor whether it is there.
    match cache.peek(entry) {
        Ok(bytes) if entry.kind == internal::KERNELS => match rtc_compiler::packed_metadata(&bytes) {
            Some(metadata) => format!("{} for {}", metadata.symbol, metadata.arch),
            None => "of another version of rtc".into(),
        },
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

fn verify(cache: &Cache, is_json: bool, reporter: &Reporter) -> Result<(), Problem> {
    let found = cache.verify().map_err(problem)?;
    for problem in &found.problems {
        reporter.warning(Code::CACHE, &problem.to_string());
    }
    let directory = cache.directory().display();
    if is_json {
        let problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
        let directory = directory.to_string();
        outln!(
            "{}",
            json!({
                "directory": directory, "good": found.good, "bytes": found.bytes, "problems": problems,
                "removed_temporaries": found.temporaries,
            })
        )?;
    } else {
        outln!(
            "{} in {directory}: {}, {}, good",
            counted(found.good + found.problems.len()),
            found.good,
            size(found.bytes)
        )?;
    }
    if found.temporaries > 0 && !is_json {
        outln!("removed {} files that killed processes had left", found.temporaries)?;
    }
    match found.problems.len() {
        0 => Ok(()),
        bad => Err(Problem::input(Code::CACHE, format!("{} corrupt or unreadable", counted(bad)))),
    }
}

fn problem(error: Error) -> Problem {
    Problem::input(Code::CACHE, error.to_string())
}

fn counted(entries: usize) -> String {
    if entries == 1 { "1 entry".into() } else { format!("{entries} entries") }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn ago(time: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(time).map_or(0, |age| age.as_secs());
    let (number, unit) = match seconds {
        0..60 => return "now".into(),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}
