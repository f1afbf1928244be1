//! The data of a page, which `rtc explore --json` prints.

use serde::Serialize;

/// All that is known of a kernel. Lines refer to [`Page::places`] by index, so that those of one place can be found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    /// The format of this data.
    pub format: u32,
    /// The version of the compiler.
    pub version: String,
    /// The name of the kernel.
    pub kernel: String,
    /// The target.
    pub arch: String,
    /// The files that places are in, the kernel's first.
    pub files: Vec<File>,
    /// Lines of files: index of the file, line from 1.
    pub places: Vec<(u32, u32)>,
    /// Lines of tile IR, which passes refer to by index.
    pub lines: Vec<Line>,
    /// The kernel as the semantic analysis leaves it, and after each pass that changes it.
    pub passes: Vec<Pass>,
    /// Types of values, which lines of tile IR refer to by index.
    pub types: Vec<ValueType>,
    /// Layouts, which types refer to by index.
    pub layouts: Vec<Layout>,
    /// PTX.
    pub ptx: Vec<Line>,
    /// Machine code, where a disassembler was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sass: Option<Vec<Line>>,
    /// Warnings and remarks.
    pub remarks: Vec<Remark>,
    /// Resources and occupancy.
    pub resources: Resources,
    /// A launch in the emulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its lines.
    pub text: Vec<String>,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Line {
    /// The text.
    #[serde(rename = "t")]
    pub text: String,
    /// Its places: its own, then those of the calls that it was inlined at.
    #[serde(rename = "p", skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<u32>,
    /// The values that it defines: name, and index of the type.
    #[serde(rename = "v", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(String, u32)>,
}

/// A pass that changes the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pass {
    /// Its name; `sema` for the kernel as the semantic analysis leaves it.
    pub name: String,
    /// Indices of the lines of the kernel after it.
    pub lines: Vec<u32>,
    /// The difference to the pass before: runs of kept (0), removed (1) and added (2) lines. Numbers in names do not count.
    pub changes: Vec<(u8, u32)>,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ValueType {
    /// As tile IR prints it.
    pub text: String,
    /// Sizes; none for scalars.
    pub shape: Vec<u32>,
    /// The type of the elements.
    pub dtype: String,
    /// Slots of a ring in shared memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Index of the layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<u32>,
}

/// A layout: the coordinates of an element are the XOR of the bases of all bits that are set in its register, lane and
/// warp, or in its offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Layout {
    /// As tile IR prints it.
    pub text: String,
    /// The layout in words.
    pub words: String,
    /// Sizes.
    pub shape: Vec<u32>,
    /// Bits of an element, for shared memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<u32>,
    /// Bases of the bits of a register.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub register: Vec<Vec<u32>>,
    /// Bases of the bits of a lane.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lane: Vec<Vec<u32>>,
    /// Bases of the bits of a warp.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warp: Vec<Vec<u32>>,
    /// Bases of the bits of an offset in shared memory, in elements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offset: Vec<Vec<u32>>,
}

/// A warning, a remark, or a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remark {
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// Its code.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Its place, and further places.
    pub places: Vec<u32>,
    /// Further facts.
    pub notes: Vec<String>,
    /// The remedy.
    pub help: Option<String>,
}

/// Resources of a block, and the occupancy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Whether they are an estimate, for want of an assembler.
    pub registers_are_estimated: bool,
    /// Bytes of spilled registers, where an assembler was found.
    pub spilled: Option<u32>,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Blocks per SM.
    pub blocks_per_sm: u32,
    /// The resources that limit the occupancy.
    pub limited_by: Vec<String>,
}

/// A launch in the emulator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Launch {
    /// `emulator` or `interpreter`; counts, the timeline and rooflines are those of the emulator. Or `program`: only the
    /// timeline is known.
    pub executor: &'static str,
    /// Blocks.
    pub grid: [u32; 3],
    /// Instructions by class: name, once for each warp, once for each thread.
    pub instructions: Vec<(String, u64, u64)>,
    /// Accesses by kind.
    pub traffic: Vec<Traffic>,
    /// Bytes moved by each level of memory.
    pub levels: Vec<Level>,
    /// Counts by place.
    pub heat: Vec<Heat>,
    /// Counts by line of the PTX.
    pub ptx_heat: Vec<(u32, u64)>,
    /// The tensors that it changed.
    pub outputs: Vec<Output>,
    /// Findings of the sanitizer.
    pub findings: Vec<Remark>,
    /// Why the launch ended early.
    pub fault: Option<String>,
    /// Rooflines.
    pub rooflines: Vec<Roofline>,
    /// Operations per byte of memory.
    pub intensity: f64,
    /// Operations of MMAs, and of threads.
    pub flops: (u64, u64),
    /// Jumps with a condition, and those of them that split the lanes of a warp.
    pub branches: (u64, u64),
    /// The first cluster against time.
    pub timeline: TimelineData,
}

/// A tensor that a launch has changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// The type of the elements.
    pub dtype: String,
    /// Sizes.
    pub shape: Vec<usize>,
    /// The first elements after the launch, as text: JSON has no NaN.
    pub first: Vec<String>,
}

/// Accesses of a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// The kind.
    pub name: &'static str,
    /// Requests of warps.
    pub requests: u64,
    /// Sectors of 32 bytes, or cycles of shared memory.
    pub sectors: u64,
    /// Bytes that threads asked for.
    pub bytes: u64,
}

/// A level of memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Its name.
    pub name: &'static str,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// The counts of the instructions of a place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Heat {
    /// Index of the place.
    pub place: u32,
    /// Instructions, once for each warp.
    pub warps: u64,
    /// Instructions, once for each active thread.
    pub threads: u64,
    /// Requests of global memory.
    pub requests: u64,
    /// Sectors that they touched.
    pub sectors: u64,
    /// Bytes that threads asked for.
    pub bytes: u64,
    /// Cycles of shared memory.
    pub shared_cycles: u64,
    /// Those of them that are due to bank conflicts.
    pub conflicts: u64,
    /// Jumps that split the lanes of a warp.
    pub divergent: u64,
    /// Instructions by class.
    pub classes: Vec<(String, u64)>,
}

/// The least time of a launch on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Roofline {
    /// The device.
    pub machine: String,
    /// Bytes of its memory per second.
    pub bytes: f64,
    /// Operations of MMAs on 16-bit floats per second.
    pub matrix_flops: f64,
    /// Operations of threads on 32-bit floats per second.
    pub thread_flops: f64,
    /// Seconds for memory, MMAs, and threads.
    pub seconds: (f64, f64, f64),
}

/// A launch whose warps recorded when they came to copies, waits and dots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// The device that it ran on.
    pub device: String,
    /// The blocks that recorded.
    pub blocks: u32,
    /// Events of all warps.
    pub events: u64,
    /// Events for which there was no room.
    pub lost: u64,
}

/// Warps against time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineData {
    /// The model of the times.
    pub model: &'static str,
    /// Where the times were recorded, if they are not those of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    /// Warps.
    pub warps: u32,
    /// Warps of a block.
    pub warps_per_block: u32,
    /// Cycles until the last event.
    pub cycles: u64,
    /// Bars by warp, then by start.
    pub bars: Vec<BarData>,
    /// Rings of buffers in shared memory that copies in a loop fill.
    pub rings: Vec<Ring>,
    /// Whether later bars are left out.
    pub is_truncated: bool,
}

/// A ring of buffers in shared memory, filled by the copies of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ring {
    /// Index of the place of the copies.
    pub place: u32,
    /// Buffers that copies were seen to fill.
    pub stages: u32,
    /// How many iterations before the wait for them copies in the loop are issued: least and most.
    pub ahead: (u32, u32),
}

/// A stretch of time of a warp.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BarData {
    /// The warp.
    pub warp: u32,
    /// `compute`, `load`, `store`, `copy`, `copy-out`, `mma`, `wait` or `barrier`.
    pub kind: &'static str,
    /// First cycle.
    pub start: u64,
    /// The cycle after the last.
    pub end: u64,
    /// The line of its first instruction in the PTX, from 1.
    pub ptx_line: u32,
    /// Index of its place in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// Bytes that it moves.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Instructions in it, where there are several.
    #[serde(skip_serializing_if = "is_one")]
    pub events: u32,
    /// The iteration of its loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Of a copy: the buffer of the ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// Of a copy: the iteration at whose wait it must be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_iteration: Option<u32>,
    /// Of a copy: that iteration less the one in which the waiting warp was when it was issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_one(value: &u32) -> bool {
    *value == 1
}
