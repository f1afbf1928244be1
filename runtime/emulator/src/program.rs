//! PTX made ready to execute, and launches.

use crate::code::{Code, FunctionCode};
use crate::decode::decode;
use crate::exec::{Actor, Counting, Launch, Raw, RawFinding, Recorder, Sanitizer, State, Stop, run_grid};
use crate::finding::{Finding, FindingKind};
use crate::sanitize::{Check, Place, Related, Report};
use crate::{Fault, FaultKind, LaunchConfig, LaunchReport, Memory};

/// Warp instructions after which a block has an endless loop in a launch that is checked for them, unless the launch says how
/// many it or its blocks may take.
const SANITIZED_BUDGET: u64 = 1_000_000_000;

/// PTX that cannot be executed: where and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {message}")]
pub struct LoadError {
    /// Line in the PTX text, from 1.
    pub line: u32,
    /// The error.
    pub message: String,
}

/// A PTX module, decoded for execution.
#[derive(Clone, Debug)]
pub struct Program {
    code: Code,
}

impl Program {
    /// Reads PTX text and resolves every name in it.
    pub fn load(ptx: &str) -> Result<Program, LoadError> {
        let module = rtc_ptx::parse(ptx).map_err(|e| LoadError { line: e.line, message: e.message })?;
        Ok(Program { code: decode(&module)? })
    }

    /// Names of the kernels, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.code.functions.iter().filter(|f| f.entry).map(|f| f.name.as_str())
    }

    /// Runs a kernel to its end. Variables of the module start from their initial values in every launch.
    #[allow(clippy::result_large_err, reason = "a fault ends the launch: its size costs nothing")]
    pub fn launch(&self, memory: &mut Memory, config: &LaunchConfig<'_>) -> Result<LaunchReport, Fault> {
        let found = self.code.functions.iter().position(|f| f.entry && f.name == config.kernel);
        let Some(kernel) = found else {
            let names: Vec<&str> = self.kernels().collect();
            let text = format!("the PTX has no such kernel; it has: {}", names.join(", "));
            return Err(self.launch_fault(config, text));
        };
        if let Err(text) = check(&self.code, &self.code.functions[kernel], config) {
            return Err(self.launch_fault(config, text));
        }
        let mut constants = self.code.constants.clone();
        let addresses: Vec<u64> = self
            .code
            .globals
            .iter()
            .map(|global| memory.alloc(global.bytes.len(), global.align as usize, &global.name))
            .collect();
        for (global, address) in self.code.globals.iter().zip(&addresses) {
            let mut bytes = global.bytes.clone();
            for (at, target, offset) in &global.pointers {
                let value = addresses[*target].wrapping_add(*offset as u64);
                bytes[*at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            memory.write(*address, &bytes).expect("just allocated with this size");
            if global.constant {
                memory.protect(*address);
            }
        }
        for (constant, global, offset) in &self.code.relocations {
            constants[*constant] = [addresses[*global].wrapping_add(*offset as u64); 32];
        }
        let has_limit = config.budget.is_some() || !config.sanitize.has(Check::Sync);
        let endless = if has_limit { u64::MAX } else { SANITIZED_BUDGET };
        let launch = Launch {
            code: &self.code,
            constants: &constants,
            kernel,
            params: config.params,
            grid: config.grid,
            block: config.block,
            cluster: config.cluster,
            dynamic_shared: config.shared_bytes,
            budget: config.budget.unwrap_or(u64::MAX),
            block_budget: config.block_budget.unwrap_or(endless),
            interrupt: config.interrupt,
            checks: config.sanitize,
        };
        let mut state = State {
            memory,
            printed: String::new(),
            warp_instructions: 0,
            thread_instructions: 0,
            findings: Vec::new(),
            sanitizer: Sanitizer::new(&launch),
            counting: config.counts.then(|| Box::new(Counting::new(&self.code))),
            recorder: config.records.then(|| Box::new(Recorder::new(&self.code))),
        };
        let result = run_grid(&launch, &mut state, config.schedule, config.threads);
        let State { printed, warp_instructions, thread_instructions, findings, sanitizer, counting, recorder, .. } =
            state;
        let reports: Vec<Report> =
            sanitizer.iter().flat_map(|s| &s.found).map(|raw| self.report(config, raw)).collect();
        let findings: Vec<Finding> = findings.iter().map(|raw| self.finding(config, raw)).collect();
        for address in addresses {
            memory.remove(address);
        }
        if !config.sanitize.has(Check::Init) {
            memory.mark_all();
        }
        match result {
            Ok(()) => {
                let counters = counting.map(|counting| counting.finish(&self.code));
                let threads: u32 = config.block.iter().product();
                let blocks: u32 = config.cluster.iter().product();
                let each = threads.div_ceil(32);
                let trace = recorder.map(|recorder| recorder.finish(&self.code, (each * blocks) as usize, each));
                Ok(LaunchReport { printed, warp_instructions, thread_instructions, findings, reports, counters, trace })
            }
            Err((stop, block)) => Err(Fault { findings, reports, ..self.fault(config, stop, block) }),
        }
    }

    fn launch_fault(&self, config: &LaunchConfig<'_>, text: String) -> Fault {
        Fault {
            kind: FaultKind::Launch(text),
            kernel: config.kernel.to_string(),
            block: [0; 3],
            thread: [0; 3],
            warp: 0,
            lane: 0,
            ptx_line: 0,
            instruction: String::new(),
            location: None,
            findings: Vec::new(),
            reports: Vec::new(),
        }
    }

    fn finding(&self, config: &LaunchConfig<'_>, raw: &RawFinding) -> Finding {
        let origin = self.code.origins[raw.origin as usize];
        Finding {
            kind: FindingKind::AddressOverflow { exact: raw.value },
            kernel: config.kernel.to_string(),
            block: raw.block,
            thread: thread_index(config, raw.warp, raw.lane),
            warp: raw.warp,
            lane: raw.lane,
            ptx_line: origin.line,
            instruction: self.code.instruction(origin),
            location: self.code.location(origin.location),
            access_line: self.code.origins[raw.access as usize].line,
        }
    }

    fn report(&self, config: &LaunchConfig<'_>, raw: &Raw) -> Report {
        let place = |actor: &Actor| {
            let origin = self.code.origins[actor.pc as usize];
            Place {
                block: actor.block,
                warp: actor.warp,
                lane: actor.lane,
                thread: actor.lane.map(|lane| thread_index(config, actor.warp, lane)),
                ptx_line: origin.line,
                instruction: self.code.instruction(origin),
                location: self.code.location(origin.location),
            }
        };
        Report {
            check: raw.check,
            code: raw.code,
            message: raw.message.clone(),
            kernel: config.kernel.to_string(),
            place: place(&raw.at),
            related: raw.other.map(|(what, actor)| Related { what: what.to_string(), place: place(&actor) }),
            count: raw.count,
            is_fatal: false,
        }
    }

    fn fault(&self, config: &LaunchConfig<'_>, stop: Stop, block: [u32; 3]) -> Fault {
        let origin = self.code.origins[stop.pc as usize];
        Fault {
            kind: stop.kind,
            kernel: config.kernel.to_string(),
            block,
            thread: thread_index(config, stop.warp, stop.lane),
            warp: stop.warp,
            lane: stop.lane,
            ptx_line: origin.line,
            instruction: self.code.instruction(origin),
            location: self.code.location(origin.location),
            findings: Vec::new(),
            reports: Vec::new(),
        }
    }
}

fn thread_index(config: &LaunchConfig<'_>, warp: u32, lane: u32) -> [u32; 3] {
    let thread = warp * 32 + lane;
    let [x, y, _] = config.block;
    [thread % x, thread / x % y, thread / (x * y)]
}

/// Whether the launch fits the kernel.
fn check(code: &Code, function: &FunctionCode, config: &LaunchConfig<'_>) -> Result<(), String> {
    let threads: u64 = config.block.iter().map(|n| u64::from(*n)).product();
    if config.grid.contains(&0) || threads == 0 {
        return Err(format!("empty grid {:?} or block {:?}", config.grid, config.block));
    }
    if threads > 1024 {
        return Err(format!("{threads} threads per block are more than 1024"));
    }
    if config.cluster.contains(&0) || (0..3).any(|i| !config.grid[i].is_multiple_of(config.cluster[i])) {
        return Err(format!("the grid {:?} is not a multiple of the cluster {:?}", config.grid, config.cluster));
    }
    if let Some(required) = function.required_threads
        && required != config.block
    {
        return Err(format!("the kernel requires blocks of {required:?} threads, not {:?}", config.block));
    }
    if let Some(max) = function.max_threads
        && threads > u64::from(max)
    {
        return Err(format!("{threads} threads per block are more than the kernel's {max}"));
    }
    if let Some(required) = function.required_cluster
        && required != config.cluster
    {
        return Err(format!("the kernel requires clusters of {required:?} blocks, not {:?}", config.cluster));
    }
    if config.params.len() < function.param_bytes as usize {
        let (has, needs) = (config.params.len(), function.param_bytes);
        return Err(format!("the parameter buffer has {has} bytes, the kernel takes {needs}"));
    }
    let shared = u64::from(code.static_shared) + u64::from(config.shared_bytes);
    let available = shared_limit(&code.target);
    if shared > available {
        return Err(format!("{shared} bytes of shared memory are needed, {} has {available}", code.target));
    }
    Ok(())
}

/// Most shared memory that a block can have on a target.
fn shared_limit(target: &str) -> u64 {
    let number: u32 =
        target.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_alphabetic()).parse().unwrap_or(0);
    match number {
        80 | 87 => 163 << 10,
        86 | 88 | 89 | 120 | 121 => 99 << 10,
        0..80 => 96 << 10,
        _ => 227 << 10,
    }
}
