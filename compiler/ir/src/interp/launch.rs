//! A launch: its arguments, and one program after the other.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::frame::WarpGroup;
use super::machine::Machine;
use super::open::Opening;
use super::overflow::address_values;
use super::scheduler::Turns;
use super::shared::SharedMemory;
use super::value::Data;
use super::{ArgValue, Fault, FaultKind, GlobalMemory, LaunchConfig, Report, RunOptions, Storage};
use crate::ops::eval::mask;
use crate::{Elem, Kernel, Phase, Rounding, Scalar, Type, Verified, encode_float};

/// Runs a kernel over a grid.
///
/// ```
/// use rtc_ir::interp::{ArgValue, GlobalMemory, HostMemory, LaunchConfig, RunOptions, run};
/// let kernel = rtc_ir::text::parse(
///     "kernel @k(%x: ptr<i32> {sig = \"*i32\"}) warps 1 phase tile {
///        %i = arange {start = 0, end = 4} : tile<4xi32>
///        %p = splat %x : tile<4xptr<i32>>
///        %q = addptr %p, %i : tile<4xptr<i32>>
///        store %q, %i
///        ret
///      }",
/// )?;
/// let mut memory = HostMemory::new();
/// let x = memory.alloc_uninit("x", 16);
/// let launch = LaunchConfig { grid: [1, 1, 1], args: vec![ArgValue::Pointer(x)] };
/// let kernel = rtc_ir::verify(&kernel).expect("it is well-formed");
/// run(kernel, &mut memory, &launch, &RunOptions::default())?;
/// assert_eq!(memory.bytes(x), Some(&[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// There is one fault per launch: its size does not matter.
#[allow(clippy::result_large_err)]
pub fn run(
    kernel: Verified<'_>,
    memory: &mut dyn GlobalMemory,
    launch: &LaunchConfig,
    options: &RunOptions,
) -> Result<Report, Fault> {
    run_open(kernel, memory, launch, options, &mut None)
}

/// The same; what it says of open results is handed back.
#[allow(clippy::result_large_err)]
pub(super) fn run_open(
    kernel: Verified<'_>,
    memory: &mut dyn GlobalMemory,
    launch: &LaunchConfig,
    options: &RunOptions,
    opening: &mut Option<Opening>,
) -> Result<Report, Fault> {
    let kernel = kernel.kernel();
    let args = arguments(kernel, launch, options).map_err(|text| Fault {
        kind: FaultKind::Launch(text),
        op: None,
        span: None,
        callers: Vec::new(),
        program: [0; 3],
        element: None,
        printed: String::new(),
        findings: Vec::new(),
    })?;
    let mut machine = Machine::new(kernel, memory, launch, options);
    machine.open = opening.take();
    let result = machine.run_grid(launch.grid, &args);
    *opening = machine.open.take();
    result.map(|()| machine.report)
}

impl Machine<'_> {
    #[allow(clippy::result_large_err)]
    fn run_grid(&mut self, [x, y, z]: [u32; 3], args: &[Data]) -> Result<(), Fault> {
        for z in 0..z {
            for y in 0..y {
                for x in 0..x {
                    self.program = [x, y, z];
                    self.operations = 0;
                    for (param, arg) in self.kernel.params.iter().zip(args) {
                        self.set(param.value, arg.clone());
                    }
                    if let Err(stop) = self.run_program() {
                        return Err(self.fault(stop));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Runs a kernel like [`run`]; `look` is called after each operation that is not in a block which is evaluated like a
/// function.
#[cfg(test)]
#[allow(clippy::result_large_err)]
pub(crate) fn traced(
    kernel: Verified<'_>,
    memory: &mut dyn GlobalMemory,
    launch: &LaunchConfig,
    options: &RunOptions,
    look: &mut dyn FnMut(&Machine<'_>, crate::Op),
) -> Result<(), Fault> {
    use super::frame::{Exit, RunOutcome};
    let kernel = kernel.kernel();
    let args = arguments(kernel, launch, options).expect("they fit the kernel");
    let mut machine = Machine::new(kernel, memory, launch, options);
    let [x, y, z] = launch.grid;
    let programs = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])));
    for program in programs {
        machine.program = program;
        kernel.params.iter().zip(&args).for_each(|(param, arg)| machine.set(param.value, arg.clone()));
        machine.group.push(kernel, kernel.body(), Exit::Return);
        loop {
            match machine.turn(1) {
                Ok(RunOutcome::Done) => break,
                Ok(_) => machine.group.current.into_iter().for_each(|op| look(&machine, op)),
                Err(stop) => return Err(machine.fault(stop)),
            }
        }
    }
    Ok(())
}

/// The values of the parameters.
fn arguments(kernel: &Kernel, launch: &LaunchConfig, options: &RunOptions) -> Result<Vec<Data>, String> {
    if options.storage == Storage::Registers && kernel.phase == Phase::Tile {
        return Err("registers can be interpreted from phase `laid` on only".into());
    }
    if kernel.params.len() != launch.args.len() {
        return Err(format!("the kernel has {} parameters, not {}", kernel.params.len(), launch.args.len()));
    }
    let bits = |(param, arg): (&crate::Param, &ArgValue)| {
        let elem = kernel.value_type(param.value).elem().unwrap_or(Elem::I64);
        match (*arg, elem) {
            (ArgValue::Bits(bits), _) => Ok(mask(bits, elem)),
            (ArgValue::Pointer(address), Elem::Ptr(_)) => Ok(address),
            (ArgValue::Int(i), Elem::Num(s)) if s.is_int() => Ok(mask(i as u64, elem)),
            (ArgValue::Float(x), Elem::Num(Scalar::BF16)) => {
                Ok(encode_float(f64::from(x as f32), Scalar::BF16, Rounding::TowardZero))
            }
            (ArgValue::Float(x), Elem::Num(s)) if s.is_float() => Ok(encode_float(x, s, Rounding::NearestEven)),
            (arg, elem) => Err(format!("parameter `{}` is {elem}, not {arg:?}", param.name)),
        }
    };
    let data = |(param, arg): (&crate::Param, &ArgValue)| match (arg, kernel.value_type(param.value)) {
        (ArgValue::Desc(desc), Type::Desc(_)) => Ok(Data::Desc(Rc::new(*desc))),
        (arg, ty @ Type::Desc(_)) => Err(format!("parameter `{}` is {ty}, not {arg:?}", param.name)),
        (arg, _) => bits((param, arg)).map(Data::Scalar),
    };
    kernel.params.iter().zip(&launch.args).map(data).collect()
}

impl<'a> Machine<'a> {
    /// Before the first program.
    pub(crate) fn new(
        kernel: &'a Kernel,
        memory: &'a mut dyn GlobalMemory,
        launch: &LaunchConfig,
        options: &RunOptions<'a>,
    ) -> Machine<'a> {
        Machine {
            kernel,
            memory,
            storage: options.storage,
            grid: launch.grid,
            program: [0; 3],
            report: Report::default(),
            placements: HashMap::new(),
            offsets: HashMap::new(),
            sources: HashMap::new(),
            addresses: address_values(kernel),
            group: WarpGroup::new(0, vec![Data::Nothing; kernel.value_count()]),
            shared: SharedMemory::default(),
            turns: Turns::new(options.schedule),
            max_steps: options.max_steps,
            max_operations: options.max_operations,
            interrupt: options.interrupt,
            operations: 0,
            found: HashSet::new(),
            open: None,
        }
    }
}
