//! `rtc tune --cluster`: the Python package hands shards to the machines of a Ray cluster, each of which runs `rtc tune --shard`.

use crate::arguments::LevelArguments;
use crate::host;
use crate::problem::Problem;
use crate::tune_arguments::{AssemblerChoice, Clock, TuneArguments};
use rtc_source::Code;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The module of the package that does it.
const MODULE: &str = "rtc._tune_cluster";

/// Tunes on a cluster. The files, first the source and the launch, must have the same paths on all of its machines.
pub(crate) fn tune(
    address: &str,
    files: &[&Path],
    configurations: usize,
    arguments: &TuneArguments,
) -> Result<(), Problem> {
    let files = files.iter().map(|path| absolute(path)).collect::<Result<Vec<_>, _>>()?;
    let python = match &arguments.python {
        Some(python) => python.clone(),
        None => host::find()?,
    };
    host::check(&python)?;
    let mut command = Command::new(&python);
    command.args(["-m", MODULE, "--address", address, "--configurations", &configurations.to_string()]);
    for file in &files {
        command.arg("--file").arg(file);
    }
    if let Some(arch) = &arguments.arch {
        command.args(["--arch", arch]);
    }
    if let Some(limit) = arguments.part_limit {
        command.arg("--part-limit").arg(limit.to_string());
    }
    if let Some(path) = &arguments.output {
        command.arg("--output").arg(path);
    }
    if arguments.clock == Clock::Counters {
        command.arg("--counters");
    }
    command.arg("--").arg(&files[0]).arg("--launch").arg(&files[1]).args(words(arguments)?);
    host::wait(&python, &mut command)
}

/// The options that hold for each shard.
fn words(arguments: &TuneArguments) -> Result<Vec<String>, Problem> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if let Some(seconds) = arguments.budget {
        add("--budget", seconds.to_string());
    }
    match &arguments.assembler {
        AssemblerChoice::Auto => {}
        AssemblerChoice::Driver => add("--assembler", "driver".into()),
        AssemblerChoice::Path(path) => add("--assembler", path.display().to_string()),
    }
    if let Some(arch) = &arguments.arch {
        add("--arch", arch.clone());
    }
    for folder in &arguments.include {
        add("--include", absolute(folder)?.display().to_string());
    }
    let LevelArguments { allow, warn, deny } = &arguments.levels;
    for (name, codes) in [("--allow", allow), ("--warn", warn), ("--deny", deny)] {
        codes.iter().for_each(|code| add(name, code.clone()));
    }
    if arguments.clock == Clock::Counters {
        add("--clock", "counters".into());
    }
    let flags = [("--space", arguments.space), ("--fresh", arguments.fresh), ("--no-cache", arguments.no_cache)];
    words.extend(flags.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name.to_owned()));
    Ok(words)
}

fn absolute(path: &Path) -> Result<PathBuf, Problem> {
    std::path::absolute(path).map_err(|error| Problem::file(Code::IO, path, error.to_string()))
}
