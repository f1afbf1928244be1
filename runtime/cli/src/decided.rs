//! The remarks of `-v` about a compiled kernel: the decision about each of its loops, its resources and its occupancy.

use crate::report::Reporter;
use rtc_build::Assembler;
use rtc_compiler::{Artifact, Decisions, Failure};
use rtc_source::{Code, SourceMap};
use rtc_tune::Machine;
use rtc_tune::model::{Resources, occupancy};

/// Prints them if `-v` was given; `decide` computes the decisions.
pub(crate) fn tell(
    reporter: &Reporter,
    sources: &SourceMap,
    artifact: Option<&Artifact>,
    arch: &str,
    decide: impl FnOnce() -> Result<Decisions, Failure>,
) {
    if !reporter.verbose {
        return;
    }
    let decided = match decide() {
        Ok(decided) => decided,
        // The kernel itself was compiled.
        Err(failure) => {
            return reporter.note(Code::COST, &format!("the decisions about loops are not available: {failure}"));
        }
    };
    reporter.diagnostics(sources, &decided.loops);
    if let Some(artifact) = artifact {
        reporter.note(Code::COST, &whole(artifact, arch, decided.registers));
    }
}

/// The resources and the occupancy of a kernel; `estimate` is the number of registers per thread if there is no assembler.
fn whole(artifact: &Artifact, arch: &str, estimate: u32) -> String {
    let metadata = &artifact.metadata;
    let usage = Assembler::find().and_then(|assembler| {
        let usage = assembler.usage(&artifact.ptx, &metadata.symbol, arch).ok()?;
        Some((usage, assembler.version()))
    });
    let (registers, said) = match usage {
        Some((usage, version)) => {
            let version = version.map_or(String::new(), |(major, minor)| format!(" {major}.{minor}"));
            let spilled = match usage.spilled {
                0 => "none spilled".to_owned(),
                bytes => format!("{bytes} bytes spilled"),
            };
            (usage.registers, format!("{} registers per thread (ptxas{version}, {spilled})", usage.registers))
        }
        None => (estimate, format!("about {estimate} registers per thread (an estimate: no `ptxas` found)")),
    };
    let resources =
        Resources { threads: metadata.threads_per_block, shared: metadata.shared_bytes, registers, local: 0 };
    let machine = Machine::of_arch(arch);
    let blocks = occupancy(&resources, &machine);
    // The resources that alone limit the occupancy.
    let only = |registers, shared| occupancy(&Resources { registers, shared, ..resources }, &machine) == blocks;
    let limits = match only(0, 0) {
        true => vec!["threads"],
        false => [("registers", only(registers, 0)), ("shared memory", only(0, resources.shared))]
            .into_iter()
            .filter_map(|(what, limits)| limits.then_some(what))
            .collect(),
    };
    format!(
        "`{}` for {arch}: {said}; {} threads and {} bytes of shared memory per block; {blocks} block{} per SM, limited by {}",
        metadata.symbol,
        resources.threads,
        resources.shared,
        if blocks == 1 { "" } else { "s" },
        limits.join(" and ")
    )
}
