//! Compiling and loading configurations on all processors.
#![allow(unsafe_code)]

use crate::candidate::{Candidate, reason};
use crate::parallel;
use rtc_abi::{Access, Param, ParamType};
use rtc_build::Assembler;
use rtc_cache::Cache;
use rtc_compiler::{ArgKind, Compiled, ConstValue, Failure, Metadata, Program, Silent, Spec, Specialization};
use rtc_runtime::internal::Passed;
use rtc_runtime::jit;
use rtc_runtime::{Arg, Device, Kernel, Stream};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What tells launches apart: PTX, shared memory, threads of a block, grid.
type Code = (String, u32, u32, [u32; 3]);

/// A configuration that is ready on one device, and what it takes to load it on another.
pub(crate) struct Ready {
    pub(crate) kernel: Kernel,
    /// What it is passed of the arguments.
    passed: Passed,
    ptx: String,
    /// What the assembler made of that.
    cubin: Option<Vec<u8>>,
    metadata: Metadata,
    in_bounds: bool,
}

impl Ready {
    /// With machine code the device is given that. `in_bounds` is what [`Tuner::assume_in_bounds`](crate::Tuner) guarantees.
    fn load(
        device: &Device,
        ptx: String,
        cubin: Option<Vec<u8>>,
        metadata: Metadata,
        params: &[Param],
        in_bounds: bool,
    ) -> Result<Ready, String> {
        let whole = ArgKind::Constexpr(ConstValue::None);
        let kinds: Vec<ArgKind> =
            params.iter().map(|param| descriptor(param).unwrap_or_else(|| whole.clone())).collect();
        let args: Vec<(&str, &ArgKind)> = params.iter().map(|param| param.name.as_str()).zip(&kinds).collect();
        let passed = Passed::of(&metadata, &args);
        let passed = passed.map_err(|param| format!("no argument of the launch stands for its parameter `{param}`"))?;
        // The driver's linker would compile in parallel, too, but it gives other code than a launch gets: slower by far
        // where partitions change registers.
        // SAFETY: the compiler made PTX and metadata together, and the assembler the machine code of that PTX.
        let kernel = unsafe { device.load_cubin(&ptx, cubin.as_deref(), &metadata) };
        let mut kernel = kernel.map_err(|error| error.to_string())?;
        if in_bounds {
            // SAFETY: the creator of the tuner guaranteed its launches.
            kernel = unsafe { kernel.assume_in_bounds() };
        }
        Ok(Ready { kernel, passed, ptx, cubin, metadata, in_bounds })
    }

    /// The same on another device of the same model.
    pub(crate) fn on(&self, device: &Device, params: &[Param]) -> Result<Ready, String> {
        Ready::load(device, self.ptx.clone(), self.cubin.clone(), self.metadata.clone(), params, self.in_bounds)
    }

    /// The same on this device as a launch gets it, compiled by the driver.
    pub(crate) fn as_launched(&self, device: &Device, params: &[Param]) -> Result<Ready, String> {
        Ready::load(device, self.ptx.clone(), None, self.metadata.clone(), params, self.in_bounds)
    }

    /// Whether it may write to what a parameter points to, or to a part of it where that is a tensor descriptor.
    pub(crate) fn writes(&self, name: &str) -> bool {
        let is_part =
            |param: &str| param.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.metadata.params.iter().any(|param| is_part(&param.name) && param.access != Some(Access::Read))
    }

    /// Launches it.
    pub(crate) fn launch(&self, stream: &Stream, grid: [u32; 3], args: &[Arg<'_>]) -> rtc_runtime::Result<()> {
        match self.passed.is_all() {
            true => self.kernel.launch(stream, grid, args),
            false => self.kernel.launch(stream, grid, &self.passed.pick(args)),
        }
    }
}

/// What became of a configuration.
pub(crate) enum Loaded {
    /// It is ready: with machine code on all devices, as that is loaded in no time; else on one, whose number comes first.
    Ready(usize, Vec<Ready>),
    /// Another one is the same code for the same grid.
    Same(usize),
    /// It does not compile or does not fit, for that reason.
    Dropped(String),
}

fn descriptor(param: &Param) -> Option<ArgKind> {
    match &param.ty {
        ParamType::Descriptor { element, block_shape } => {
            Some(ArgKind::Descriptor { element: *element, block_shape: block_shape.clone() })
        }
        _ => None,
    }
}

/// The arguments of a launch for kernels with parameters such as these: a descriptor of the source is one argument, whichever
/// parts of it a kernel is passed.
pub(crate) fn arguments(metadata: &Metadata, spec: &Spec) -> Vec<Param> {
    let mut out: Vec<Param> = Vec::new();
    for param in metadata.visible_params() {
        let of = |arg: &&rtc_compiler::ArgSpec| {
            matches!(arg.kind, ArgKind::Descriptor { .. })
                && param
                    .name
                    .strip_prefix(arg.name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        match spec.args.iter().find(of).map(|arg| (&arg.name, &arg.kind)) {
            Some((name, _)) if out.iter().any(|known| known.name == *name) => {}
            Some((name, ArgKind::Descriptor { element, block_shape })) => out.push(Param {
                name: name.clone(),
                ty: ParamType::Descriptor { element: *element, block_shape: block_shape.clone() },
                ..param.clone()
            }),
            _ => out.push(param.clone()),
        }
    }
    out
}

/// What all configurations have in common.
pub(crate) struct Load<'l> {
    pub params: &'l [Param],
    pub program: &'l Program,
    pub spec: &'l Spec,
    pub arch: &'l str,
    /// Assembles on all processors, where the driver compiles one kernel at a time.
    pub assembler: Option<&'l Assembler>,
    pub shows_progress: bool,
    /// Whether launches go without the check of lengths.
    pub in_bounds: bool,
    /// Where compilations are kept.
    pub cache: Option<&'l Cache>,
}

impl Load<'_> {
    /// Compiles, or takes from the cache what another process or machine compiled. A cache that fails costs time, no more.
    pub(crate) fn compiled(&self, specialization: &Specialization) -> Result<Compiled, Failure> {
        match self.cache {
            Some(cache) => {
                jit::compile_cached(cache, self.program, specialization, self.arch, &mut Silent).map(|c| c.compiled)
            }
            None => rtc_compiler::compile(self.program, specialization, self.arch, String::new(), &mut Silent),
        }
    }

    /// Compiles the configurations `wanted`, the first ones first, and loads them. Gives nothing for
    /// those that were not begun before `is_late`; the first is always begun.
    pub(crate) fn all(
        &self,
        devices: &[Device],
        candidates: &[Candidate],
        wanted: &[usize],
        is_late: impl Fn() -> bool + Sync,
    ) -> Vec<Option<Loaded>> {
        let mut firsts: HashMap<String, usize> = HashMap::new();
        let first_of = |number: &usize| match candidates[*number].same() {
            Some(same) => *firsts.entry(same).or_insert(*number),
            None => *number,
        };
        let first: Vec<usize> = wanted.iter().map(first_of).collect();
        let seen: Mutex<HashMap<Code, usize>> = Mutex::default();
        parallel::each(wanted.len(), "compiling", self.shows_progress, |i| {
            if i > 0 && is_late() {
                return None;
            }
            let number = wanted[i];
            if first[i] != number {
                return Some(Loaded::Same(first[i]));
            }
            let candidate = &candidates[number];
            let spec = self.spec.with_choice(&candidate.choice);
            let compiled = spec.specialize(self.program).and_then(|specialization| self.compiled(&specialization));
            let artifact = match compiled {
                Ok(compiled) => compiled.artifact,
                Err(failure) => return Some(Loaded::Dropped(reason(&failure))),
            };
            let (ptx, metadata) = (artifact.ptx, artifact.metadata);
            let code: Code = (ptx.clone(), metadata.shared_bytes, metadata.threads_per_block, candidate.grid);
            // The first of several that are the same is loaded.
            let first = *seen.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_insert(number);
            if first != number {
                return Some(Loaded::Same(first));
            }
            // What the assembler refuses, or may get wrong, the driver judges.
            let trusted = self.assembler.filter(|a| a.defect(&metadata.kernel, &metadata.arch, &ptx).is_none());
            let cubin = trusted.and_then(|a| a.assemble(&ptx, &metadata.kernel, &metadata.arch).ok());
            let (from, some) = match cubin {
                Some(_) => (0, devices),
                None => (i % devices.len(), std::slice::from_ref(&devices[i % devices.len()])),
            };
            let load =
                |device| Ready::load(device, ptx.clone(), cubin.clone(), metadata.clone(), self.params, self.in_bounds);
            Some(match some.iter().map(load).collect() {
                Ok(ready) => Loaded::Ready(from, ready),
                Err(why) => Loaded::Dropped(why),
            })
        })
    }
}
