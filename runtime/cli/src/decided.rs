//! The remarks of `-v` about a compiled kernel: the decision about each of its loops, its resources and its occupancy.

use crate::report::Reporter;
use rtc_build::Assembler;
use rtc_compiler::{Artifact, Decisions, Failure};
use rtc_explore::Resources as Page;
use rtc_source::{Code, SourceMap};
use rtc_tune::Machine;
use rtc_tune::model::{Resources, limited_by, occupancy};

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
    reporter.diagnostics(sources, &decided.plan);
    if let Some(artifact) = artifact {
        reporter.note(Code::COST, &whole(artifact, arch, decided.registers));
    }
}

/// Where the number of registers comes from.
pub(crate) enum Registers {
    /// From an assembler, of this version if it says it.
    Assembler(Option<(u32, u32)>),
    /// An estimate: no assembler was found.
    NoAssembler,
    /// An estimate: the assembler failed with this message.
    Failed(String),
}

/// The resources and the occupancy of a kernel in words.
fn whole(artifact: &Artifact, arch: &str, estimate: u32) -> String {
    let (resources, source) = resources(artifact, arch, estimate);
    let registers = resources.registers;
    let said = match source {
        Registers::Assembler(version) => {
            let version = version.map_or(String::new(), |(major, minor)| format!(" {major}.{minor}"));
            let spilled = match resources.spilled {
                None | Some(0) => "none spilled".to_owned(),
                Some(bytes) => format!("{bytes} bytes spilled"),
            };
            format!("{registers} registers per thread (ptxas{version}, {spilled})")
        }
        Registers::NoAssembler => {
            format!("about {registers} registers per thread (an estimate: no `ptxas` found)")
        }
        Registers::Failed(message) => {
            let first = message.lines().next().unwrap_or_default().trim_end_matches(':');
            format!("about {registers} registers per thread (an estimate: {first})")
        }
    };
    let blocks = resources.blocks_per_sm;
    format!(
        "`{}` for {arch}: {said}; {} threads and {} bytes of shared memory per block; {blocks} block{} per SM, limited by {}",
        artifact.metadata.symbol,
        resources.threads,
        resources.shared_bytes,
        if blocks == 1 { "" } else { "s" },
        resources.limited_by.join(" and ")
    )
}

/// The resources and the occupancy of a kernel, and where its number of registers comes from; `estimate` is that number without
/// an assembler.
pub(crate) fn resources(artifact: &Artifact, arch: &str, estimate: u32) -> (Page, Registers) {
    let metadata = &artifact.metadata;
    let (usage, source) = match Assembler::find_for(arch) {
        None => (None, Registers::NoAssembler),
        Some(assembler) => match assembler.usage(&artifact.ptx, &metadata.symbol, arch) {
            Ok(usage) => (Some(usage), Registers::Assembler(assembler.version())),
            Err(error) => (None, Registers::Failed(error.to_string())),
        },
    };
    let registers = usage.map_or(estimate, |usage| usage.registers);
    let resources = Resources {
        threads: metadata.threads_per_block,
        shared_bytes: metadata.shared_bytes,
        registers,
        local_bytes: 0,
    };
    let machine = Machine::of_arch(arch);
    let page = Page {
        registers,
        registers_are_estimated: usage.is_none(),
        spilled: usage.map(|usage| usage.spilled),
        threads: resources.threads,
        shared_bytes: resources.shared_bytes,
        blocks_per_sm: occupancy(&resources, &machine),
        limited_by: limited_by(&resources, &machine).into_iter().map(str::to_owned).collect(),
    };
    (page, source)
}
