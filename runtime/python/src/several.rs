//! Compiles a kernel for several calls at the same time: for the configurations of a search, before it tries the first.
//!
//! What needs Python is done on the calling thread, call by call: binding, reading the arguments, the source. Only the compiler
//! runs on other threads, one for each processor. A call that cannot be bound or compiled is passed over: its launch says why.

use crate::bind;
use crate::compiled::STACK_BYTES;
use crate::error::runtime_error;
use crate::host::{Copies, OfArgument, detached};
use crate::kernel::{Kernel, REQUEST, Variant};
use crate::place::{Current, Memory};
use crate::value::{Reading, Value, with_args};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rtc_runtime::Device;
use rtc_runtime::jit::Options;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A call that was read.
struct Request {
    variant: Arc<Variant>,
    values: SmallVec<[Value; 16]>,
    options: Options,
}

/// Makes the kernel ready for calls, pairs of positional arguments and keywords. The next is asked for when the one before has
/// been read.
pub(crate) fn prepare(slf: &Bound<'_, Kernel>, calls: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = slf.py();
    let mut requests: Vec<Request> = Vec::new();
    let (mut ranges, mut device, mut on_host): (Vec<OfArgument>, Option<&'static Device>, bool) =
        (Vec::new(), None, false);
    let mut owners = Vec::new();
    for call in calls.try_iter()? {
        let call = call?;
        let (args, kwargs): (Bound<'_, PyTuple>, Bound<'_, PyDict>) = call.extract()?;
        let Ok((request, reading, own)) = read(slf, &args, &kwargs) else { continue };
        if device.is_some_and(|known| !known.is_same(own)) {
            continue;
        }
        device = Some(own);
        on_host |= reading.memory == Some(Memory::Host) && !own.is_cuda();
        ranges.extend(reading.ranges);
        owners.extend(reading.owners);
        requests.push(request);
    }
    let Some(device) = device else { return Ok(()) };
    let copies = match on_host {
        // Nothing is launched, and so nothing asks for names.
        true => Some(Copies::upload(device, &ranges, |_| String::new()).map_err(|error| runtime_error(py, &error))?),
        false => None,
    };
    let done = detached(py, || compile_all(device, &requests, copies.as_ref()));
    let mut variants: Vec<&Arc<Variant>> = Vec::new();
    for request in &requests {
        if !variants.iter().any(|known| Arc::ptr_eq(known, &request.variant)) {
            variants.push(&request.variant);
        }
    }
    variants.into_iter().try_for_each(|variant| variant.say(py, |request| done[request]))
}

fn read(
    slf: &Bound<'_, Kernel>,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<(Request, Reading, &'static Device)> {
    let py = slf.py();
    let core = slf.get().core()?;
    let call = bind::bind(&core.name, &core.params, args, Some(kwargs))?;
    let options = core.options.of(&call, core.defaults.bind(py))?;
    let (mut reading, mut values) = (Reading::default(), SmallVec::new());
    for (param, object) in core.params.iter().zip(&call.values) {
        let Some(object) = object else { continue };
        values.push(reading.value(object, param.is_constexpr)?);
    }
    let device = Current::of(py, reading.memory, reading.gpu)?.device;
    let variant = core.variant(slf, device, &reading)?;
    Ok((Request { variant, values, options }, reading, device))
}

/// Compiles on as many threads as there are processors; says of each whether it went well.
fn compile_all(device: &Device, requests: &[Request], copies: Option<&Copies>) -> Vec<bool> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = requests.get(at) else { return done };
            REQUEST.set(at);
            let ready = with_args(device, &request.values, copies, |args| {
                request.variant.kernel.specialize(args, &request.options)
            });
            done.push((at, ready.is_ok()));
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = vec![false; requests.len()];
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let workers: Vec<_> = (0..processors.min(requests.len())).map(start).collect();
        // A thread that cannot start, or that panics, leaves the rest to the launches.
        for (at, went_well) in workers.into_iter().flatten().filter_map(|worker| worker.join().ok()).flatten() {
            all[at] = went_well;
        }
    });
    all
}
