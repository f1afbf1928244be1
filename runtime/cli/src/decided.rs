//! What `-v` says of a compiled kernel: the decision about each of its loops, and what the whole takes of a
//! multiprocessor.

use crate::report::Reporter;
use rtc_build::Assembler;
use rtc_compiler::{Artifact, Decisions, Failure};
use rtc_source::{Code, SourceMap};
use rtc_tune::Machine;
use rtc_tune::model::{Resources, occupancy};

/// Says it, if `-v` was given; `decide` finds the decisions out.
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
        Err(failure) => return reporter.note(Code::COST, &format!("loops cannot be told of: {failure}")),
    };
    reporter.diagnostics(sources, &decided.loops);
    if let Some(artifact) = artifact {
        reporter.note(Code::COST, &whole(artifact, arch, decided.registers));
    }
}

/// What a kernel takes of a multiprocessor, and how many of its blocks one holds; `estimate` are the registers of a
/// thread where no assembler is at hand.
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
                bytes => format!("{bytes} bytes of others spilled"),
            };
            (usage.registers, format!("{} registers a thread (ptxas{version}, {spilled})", usage.registers))
        }
        None => (estimate, format!("about {estimate} registers a thread (an estimate, as no `ptxas` is at hand)")),
    };
    let resources =
        Resources { threads: metadata.threads_per_block, shared: metadata.shared_bytes, registers, local: 0 };
    let machine = Machine::of_arch(arch);
    let blocks = occupancy(&resources, &machine);
    // What alone allows no more.
    let only = |registers, shared| occupancy(&Resources { registers, shared, ..resources }, &machine) == blocks;
    let limits = match only(0, 0) {
        true => vec!["threads"],
        false => [("registers", only(registers, 0)), ("shared memory", only(0, resources.shared))]
            .into_iter()
            .filter_map(|(what, limits)| limits.then_some(what))
            .collect(),
    };
    format!(
        "`{}` for {arch}: {said}; {} threads and {} bytes of shared memory a block; {blocks} block{} on a multiprocessor at a \
         time; {} allow no more",
        metadata.symbol,
        resources.threads,
        resources.shared,
        if blocks == 1 { "" } else { "s" },
        limits.join(" and ")
    )
}
