//! Kernels that are compiled for what a specification says, before there are arguments: `triton.compile`, which TorchInductor
//! calls, often in processes that only compile.
#![allow(unsafe_code)]

use crate::assembler;
use crate::compiled::{Ready, compiling};
use crate::error::{compile_error, runtime_error};
use crate::host::Copies;
use crate::instrument;
use crate::interrupted::interruptible;
use crate::journal;
use crate::place::{self, Memory};
use crate::value::{Reading, Value, with_args};
use crate::writes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rtc_compiler::{Failure, Program, Silent, Source, Spec};
use rtc_runtime::internal;
use rtc_runtime::jit::cache::{Cache, CacheConfig};
use rtc_runtime::jit::{self, CompileError};
use smallvec::SmallVec;

/// Modules of a program: name, file, text.
type Modules = Vec<(String, String, String)>;

fn parse(modules: Modules) -> Program {
    let modules: Vec<_> = modules.into_iter().map(|(name, file, text)| (name, Source::new(file, text))).collect();
    Program::parse_modules(&modules)
}

/// Compiles and keeps the result in the cache on disk, with its machine code where there is a `ptxas`; loads nothing, so it needs no device. Gives metadata as JSON and what
/// the kernel is called in the cache.
#[pyfunction]
pub(crate) fn compile_spec(py: Python<'_>, modules: Modules, spec: &str, arch: &str) -> PyResult<(String, String)> {
    let spec = Spec::parse(spec).map_err(|error| PyValueError::new_err(error.to_string()))?;
    assembler::prepare(py);
    compiling(py, || compile(&parse(modules), &spec, arch))?.map_err(|error| compile_error(py, &error))
}

fn compile(program: &Program, spec: &Spec, arch: &str) -> Result<(String, String), CompileError> {
    let failed = |failure| CompileError::new(failure, program.sources());
    if program.has_errors() {
        return Err(failed(Failure::Diagnostics(program.diagnostics().to_vec())));
    }
    let specialization = spec.specialize(program).map_err(failed)?;
    let compiled = match CacheConfig::from_env().and_then(Cache::open) {
        Ok(cache) => {
            let made =
                jit::compile_cached(&cache, program, &specialization, arch, &mut Silent).map_err(failed)?.compiled;
            // Without the machine code the driver assembles it when it is loaded.
            let _ = internal::assemble_ahead(&cache, &made.artifact.ptx, &made.artifact.metadata);
            made
        }
        Err(_) => {
            let hash = rtc_compiler::source_hash(program, &specialization, arch);
            rtc_compiler::compile(program, &specialization, arch, hash, &mut Silent).map_err(failed)?
        }
    };
    Ok((compiled.artifact.metadata.to_json(), internal::key(program, &specialization, arch).to_string()))
}

/// The kernel for a specification, loaded on the current GPU or, for `cpu`, on the device there.
#[pyfunction]
pub(crate) fn ready_for(py: Python<'_>, modules: Modules, kernel: &str, spec: &str, backend: &str) -> PyResult<Ready> {
    let spec = Spec::parse(spec).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let memory = if backend == "cpu" { Memory::Host } else { Memory::Gpu };
    let device = place::device_of(py, Some(memory))?;
    let source = compiling(py, || parse(modules))?;
    let program = device.jit_program(source).map_err(|error| compile_error(py, &error))?;
    let ready = compiling(py, || program.kernel(kernel)?.specialize_for(&spec))?;
    let ready = ready.map_err(|error| compile_error(py, &error))?;
    Ok(Ready { ready, program })
}

/// Launches on a stream that is given by its handle. An argument for each parameter, in order; of constants any.
pub(crate) fn launch(
    py: Python<'_>,
    ready: &Ready,
    grid: [u32; 3],
    stream: u64,
    args: &Bound<'_, PyTuple>,
) -> PyResult<()> {
    let specialization = ready.specialization();
    let expected = specialization.args.len();
    if args.len() != expected {
        let text = format!("the kernel has {expected} parameters, {} arguments were given", args.len());
        return Err(PyTypeError::new_err(text));
    }
    let mut reading = Reading::default();
    reading.stream = Some(stream);
    let mut values: SmallVec<[Value; 16]> = SmallVec::new();
    for (index, (own, arg)) in specialization.args.iter().zip(args).enumerate() {
        reading.param = index;
        values.push(match own.kind {
            rtc_compiler::ArgKind::Constexpr(_) => Value::Int(0),
            _ => reading.value(&arg, false)?,
        });
    }
    let device = ready.device_of_kernel();
    if reading.memory == Some(Memory::Host) && device.is_cuda() {
        return Err(PyValueError::new_err("Pointer argument cannot be accessed from Triton (cpu tensor?)"));
    }
    if let Some(number) = reading.gpu.filter(|number| place::gpu(py, *number).is_ok_and(|own| !own.is_same(device))) {
        return Err(PyValueError::new_err(format!(
            "an argument lies on GPU {number}, the kernel is loaded on {device}"
        )));
    }
    let name_of = |param: usize| specialization.args[param].name.clone();
    reading.check_memory(&specialization.kernel, name_of)?;
    let copies = match reading.memory {
        Some(Memory::Host) => {
            let copies = Copies::upload(device, &reading.ranges, name_of);
            Some(copies.map_err(|error| runtime_error(py, &error))?)
        }
        _ => None,
    };
    let owners = std::mem::take(&mut reading.owners);
    writes::check(&ready.ready, &reading.read_only, name_of)?;
    with_args(device, &values, copies.as_ref(), |args| {
        let stream = place::stream_of(py, device, stream)?;
        place::wait_for(py, device, &stream, &reading.after)?;
        let watched = journal::begin(py, device, &stream, &reading.ranges, copies.is_some())?;
        let recording = match instrument::is_active() {
            true => instrument::begin(py, ready, device, (0..expected).map(name_of))?,
            false => None,
        };
        // SAFETY: as with Triton, the program that launches guarantees the sizes of its arrays.
        let start = || match &recording {
            Some(recording) => unsafe { recording.launch(&stream, grid, args) },
            None => unsafe { ready.ready.launch_unchecked(&stream, grid, args) },
        };
        let launched = match &copies {
            None => Ok(start()),
            Some(_) => interruptible(py, start),
        };
        let ended = match &copies {
            Some(copies) => writes::write_back(py, &specialization.kernel, copies),
            None => place::keep_until_done(py, &stream, owners),
        };
        launched?.map_err(|error| runtime_error(py, &error))?;
        ended?;
        if let Some(watched) = watched {
            watched.end(py, &stream, ready, grid, copies.is_some(), name_of)?;
        }
        match recording {
            Some(recording) => recording.end(py, &stream, grid),
            None => Ok(()),
        }
    })
}
