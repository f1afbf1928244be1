//! `--instrument`: a launch whose warps record when they come to copies, waits and dots.

use crate::output;
use crate::problem::Problem;
use crate::results::Results;
use clap::Args;
use rtc_abi::Metadata;
use rtc_abi::records::{self, MAX_BLOCKS};
use rtc_compiler::Artifact;
use rtc_explore::{Recorded, recorded};
use rtc_runtime::Device;
use rtc_testing::{Dtype, LaunchFile, Tensor, Tensors};
use serde_json::json;
use std::path::Path;

/// Blocks that record, unless the command line has another number.
const BLOCKS: u32 = 4;

/// How many blocks record.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct InstrumentArguments {
    /// With --instrument: how many blocks record, the first ones of the grid [default: 4]
    #[arg(long, value_name = "N", requires = "instrument", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_BLOCKS)))]
    pub(crate) instrument_blocks: Option<u32>,
}

impl InstrumentArguments {
    /// The value of the compiler's option: 0 where nothing is recorded.
    pub(crate) fn option(self, is_given: bool) -> u32 {
        if is_given { self.instrument_blocks.unwrap_or(BLOCKS) } else { 0 }
    }
}

/// Refuses a device that has no clock to record.
pub(crate) fn check_device(device: &Device) -> Result<(), Problem> {
    if !device.is_interpreter() {
        return Ok(());
    }
    Err(Problem::Usage("--instrument needs a GPU or the emulator: the interpreter has no time to record".into()))
}

/// The launch with memory for the records of so many blocks.
pub(crate) fn with_records(
    (launch, tensors): (&LaunchFile, &Tensors),
    metadata: &Metadata,
    blocks: u32,
) -> Result<(LaunchFile, Tensors), Problem> {
    let bytes = records::bytes(blocks, warps(metadata)) as usize;
    let mut tensors = tensors.clone();
    tensors.insert(records::PARAM, Tensor::new(Dtype::I64, vec![bytes / 8], vec![0; bytes])?);
    Ok((launch.clone().with_tensor(records::PARAM), tensors))
}

fn warps(metadata: &Metadata) -> u32 {
    metadata.threads_per_block / 32
}

/// Takes the records out of the tensors after a launch.
pub(crate) fn take(outputs: &mut Tensors, artifact: &Artifact) -> Recorded {
    let records = outputs.remove(records::PARAM).map(|tensor| tensor.data).unwrap_or_default();
    recorded(&artifact.ptx, &records, warps(&artifact.metadata))
}

/// Writes the timeline for Perfetto, and adds it to the results.
pub(crate) fn write(path: &Path, recorded: &Recorded, results: &mut Results) -> Result<(), Problem> {
    output::write(path, rtc_explore::chrome_trace(&recorded.timeline).to_string().as_bytes())?;
    let Recorded { blocks, events, lost, .. } = recorded;
    let lost_text = if *lost == 0 { "none lost".to_owned() } else { format!("the last {lost} of warps lost") };
    let path = path.display().to_string();
    results.add(
        "timeline",
        &format!("{path} ({blocks} blocks, {events} events, {lost_text})"),
        json!({"timeline": {"file": path, "blocks": blocks, "events": events, "lost": lost}}),
    )
}
