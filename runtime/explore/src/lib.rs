//! `rtc explore`: all that is known of one kernel as data, and that data as one self-contained HTML page.
//!
//! [`explore`] makes a [`Page`] of texts and reports of other crates: the tile IR after each pass, PTX, remarks, and from a
//! launch in the emulator counters, findings and a timeline. Lines of all of them refer to the same places of the source.
//! [`html`] writes the page, which needs no network; [`chrome_trace`] writes the timeline for Perfetto.
//!
//! This crate compiles and launches nothing, so that it needs no LLVM.

mod assembly;
mod diagnostics;
mod edit;
mod heat;
mod html;
mod layouts;
mod model;
mod passes;
mod places;
mod recorded;
mod serve;
mod timeline;
mod trace_file;

pub use edit::{EditSetup, Editing, Limits, edit};
pub use html::{failure, html};
pub use model::*;
pub use recorded::{Recorded, recorded};
pub use serve::{Served, serve};
pub use timeline::chrome_trace;
pub use trace_file::{NotATrace, TraceOf, recorded_trace, trace_of, trace_timeline};

use places::Places;
use rtc_emulator::counters::Counters;
use rtc_emulator::sanitize::Report;
use rtc_emulator::timeline::Timeline;
use rtc_source::{Diagnostic, SourceMap};

/// What is known of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The name of the kernel in the source.
    pub kernel: &'a str,
    /// The target, such as `sm_90a`.
    pub arch: &'a str,
    /// The version of the compiler.
    pub version: &'a str,
    /// The files.
    pub sources: &'a SourceMap,
    /// Tile IR with the locations of operations: as the semantic analysis leaves it, then after each pass.
    pub passes: &'a [(&'a str, String)],
    /// PTX.
    pub ptx: &'a str,
    /// Machine code as a disassembler shows it, with line information.
    pub sass: Option<&'a str>,
    /// Warnings and remarks.
    pub remarks: &'a [Diagnostic],
    /// Resources of a block.
    pub resources: &'a Resources,
    /// A launch.
    pub launch: Option<&'a LaunchInput>,
}

/// A launch in the emulator or the interpreter.
#[derive(Clone, Debug)]
pub struct LaunchInput {
    /// The executor: `emulator`; `interpreter`, which has neither counters nor a timeline; `program` for a launch of another
    /// program that recorded its timeline, which has no counters.
    pub executor: &'static str,
    /// Blocks.
    pub grid: [u32; 3],
    /// Counters.
    pub counters: Counters,
    /// The first cluster against time.
    pub timeline: Timeline,
    /// The model that the times are from.
    pub model: &'static str,
    /// Where the timeline was recorded, if it was not made by the model.
    pub recording: Option<Recording>,
    /// The tensors that it changed.
    pub outputs: Vec<Output>,
    /// Findings of the sanitizer.
    pub findings: Vec<Report>,
    /// Why the launch ended early, if it did.
    pub fault: Option<String>,
}

/// The text of a kernel with the locations of its operations, for [`Input::passes`].
pub fn tile_ir(kernel: &rtc_ir::Kernel) -> String {
    rtc_ir::text::print_with(kernel, rtc_ir::text::PrintOptions { locs: true })
}

/// The page of a kernel.
pub fn explore(input: &Input<'_>) -> Page {
    let mut places = Places::new(input.sources);
    let mut layouts = layouts::Layouts::default();
    let ir = passes::passes(input.passes, &mut places, &mut layouts);
    let ptx = assembly::ptx(input.ptx, &mut places);
    let sass = input.sass.map(|text| assembly::sass(text, &mut places));
    let remarks = input.remarks.iter().map(|remark| diagnostics::remark(remark, input.sources, &mut places)).collect();
    let launch = input.launch.map(|launch| heat::launch(launch, &mut places));
    Page {
        format: 1,
        version: input.version.to_owned(),
        kernel: input.kernel.to_owned(),
        arch: input.arch.to_owned(),
        files: places.files(),
        places: places.finish(),
        lines: ir.lines,
        passes: ir.passes,
        types: layouts.types,
        layouts: layouts.layouts,
        ptx,
        sass,
        remarks,
        resources: input.resources.clone(),
        launch,
    }
}
