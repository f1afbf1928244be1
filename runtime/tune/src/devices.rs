//! The devices of a tuning.

use crate::{Error, Machine, Tuner};
use rtc_runtime::internal::ArgumentCopies;
use rtc_runtime::{Arg, Device};

/// The first device; an error where there is none, or one is of another model.
pub(crate) fn alike(devices: &[Device]) -> Result<&Device, Error> {
    let (first, others) =
        devices.split_first().ok_or_else(|| Error::Devices("there is no device to tune on".into()))?;
    for other in others {
        if !Tuner::is_alike(first, other) {
            let message = format!("{other} is another model than {first}, so that their times do not compare");
            return Err(Error::Devices(message));
        }
    }
    let twice = devices.iter().enumerate().find(|(i, device)| devices[..*i].iter().any(|d| d.is_same(device)));
    match twice {
        Some((_, device)) => Err(Error::Devices(format!("{device} is named twice"))),
        None => Ok(first),
    }
}

/// The arguments, which are of the first device, on each of the others.
pub(crate) fn replicas(devices: &[Device], args: &[Arg<'_>]) -> Result<Vec<ArgumentCopies>, Error> {
    let copies = devices[1..].iter().map(|other| ArgumentCopies::new(&devices[0], args, other));
    Ok(copies.collect::<Result<_, _>>()?)
}

/// The GPU as the cost model has it: the usual one of the target, with as many SMs as this one.
pub(crate) fn machine_of(device: &Device, arch: &str) -> Machine {
    let machine = Machine::of_arch(arch);
    if device.is_cuda() { machine.with_sm_count(device.sm_count()) } else { machine }
}

/// The name that results are kept under: that of the GPU, without its number.
pub(crate) fn name_of(device: &Device) -> String {
    let name = device.to_string();
    name.split_once(" (").and_then(|(_, rest)| rest.strip_suffix(')')).map_or(name.clone(), str::to_owned)
}
