//! `rtc tune --shard` and `--merge`: tuning in parts, by processes that know nothing of each other.

use crate::input;
use crate::output::outln;
use crate::problem::Problem;
use crate::report::Reporter;
use crate::tune::{add_to, open_cache};
use crate::tune_arguments::{Clock, TuneArguments};
use rtc_runtime::{Device, DeviceKind};
use rtc_source::Code;
use rtc_tune::{Entry, Error, Merged, ShardFile};

/// The device that was asked for; with the counters for a clock, an emulator that counts.
pub(crate) fn device(arguments: &TuneArguments) -> Result<Device, Problem> {
    match (arguments.clock, arguments.device) {
        (Clock::Events, kind) => Ok(Device::open(kind)?),
        (Clock::Counters, DeviceKind::Auto | DeviceKind::Emulator) => Ok(Device::emulator().with_counters()?),
        (Clock::Counters, _) => Err(Problem::Usage("--clock counters is for the emulator: leave out --device".into())),
    }
}

/// Joins the files of all shards.
pub(crate) fn merge(arguments: &TuneArguments, reporter: &Reporter) -> Result<(), Problem> {
    let read = |path: &std::path::PathBuf| {
        let text = input::read_text(path)?;
        let file = ShardFile::parse(&text).map_err(|error| Problem::file(Code::TUNED_FILE, path, error.to_string()))?;
        Ok((path.display().to_string(), file))
    };
    let files = arguments.merge.iter().map(read).collect::<Result<Vec<_>, Problem>>()?;
    let merged = Merged::of(&files).map_err(|error| match error {
        Error::ShardMissing(message) => Problem::input(Code::SHARD_MISSING, message),
        other => Problem::input(Code::SHARD_MISMATCH, other.to_string()),
    })?;
    for conflict in &merged.conflicts {
        reporter.warning(Code::SHARD_CONFLICT, conflict);
    }
    let cache = open_cache(arguments.no_cache, reporter);
    let kept = cache.map(|cache| merged.keep(&cache)).unwrap_or_default();
    for note in merged.notes.iter().chain(&kept) {
        reporter.warning(Code::TUNING, note);
    }
    if let Some(path) = &arguments.output {
        add_to(path, &merged.tuned)?;
    }
    for entry in &merged.tuned.entries {
        print(entry, files.iter().filter(|(_, file)| is_of(file, entry)).count())?;
    }
    if let Some(path) = &arguments.output {
        outln!("results    {}", path.display())?;
    }
    Ok(())
}

fn is_of(file: &ShardFile, entry: &Entry) -> bool {
    (&file.entry.device, &file.entry.arch) == (&entry.device, &entry.arch)
}

fn print(entry: &Entry, files: usize) -> Result<(), Problem> {
    outln!("kernel     {}", entry.kernel)?;
    outln!("device     {} ({})", entry.device, entry.arch)?;
    if !entry.key.is_empty() {
        let key: Vec<String> = entry.key.iter().map(|(name, value)| format!("{name}={value}")).collect();
        outln!("key        {}", key.join(" "))?;
    }
    outln!("decided    {} configurations of {files} files", entry.records.len())?;
    let mut records: Vec<_> = entry.records.iter().collect();
    records.sort_by(|a, b| a.milliseconds.total_cmp(&b.milliseconds));
    let name = |setting: &rtc_tune::Setting| setting.choice().map_or_else(|| "-".into(), |choice| choice.to_string());
    outln!("winner     {}\n", name(&entry.winner))?;
    let width = records.iter().map(|record| name(&record.setting).len()).max().unwrap_or(0);
    outln!("  {:width$}  {:>10}  {:>5}", "configuration", "ms", "runs")?;
    for record in records {
        let mark = if record.setting == entry.winner { '*' } else { ' ' };
        outln!("{mark} {:width$}  {:>10.4}  {:>5}", name(&record.setting), record.milliseconds, record.runs)?;
    }
    outln!("")
}
