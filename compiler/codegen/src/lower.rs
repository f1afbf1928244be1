//! Tile IR to thread-level MLIR, one function per operation.
//!
//! A tile value of layout `L` becomes `L.registers()` MLIR values, in the order of the layout's registers; a scalar
//! becomes one value, which is the same in every thread; a buffer in shared memory becomes its address. Lowering
//! decides nothing: layouts, vector widths, offsets in shared memory and barriers between operations are in the IR. It
//! adds the implementation of each operation: address arithmetic, predicates, shuffles, the barriers *within* an
//! operation that writes to its scratch buffer and reads it back.
//!
//! | file | operations |
//! | --- | --- |
//! | `coordinates.rs` | the element of a thread's register; which thread stores it |
//! | `operations.rs` | the list of all operations |
//! | `element.rs`, `divide.rs`, `cast.rs`, `byte_float.rs` | one element at a time |
//! | `chain.rs` | long chains of those, a few registers at a time |
//! | `shape.rs` | renaming of registers |
//! | `memory.rs`, `atomic.rs` | global memory |
//! | `buffer.rs` | buffers and barriers in shared memory |
//! | `scratch.rs`, `convert.rs`, `indexed.rs` | shared memory: layout conversions, gather, histogram, sort |
//! | `combine.rs`, `reduce.rs`, `scan.rs` | reductions and scans |
//! | `dot.rs`, `dot_shared.rs` | dots by `mma.sync` and FMAs |
//! | `copy.rs` | asynchronous copies, barriers |
//! | `map.rs` | tensor maps that the kernel makes |
//! | `wgmma.rs` | `wgmma` dots |
//! | `control.rs` | loops and branches |
//! | `groups.rs` | which threads run a region, and their barrier; partitions of warps |
//! | `record.rs` | records of an instrumented kernel |
//! | `effect.rs` | print, assert, inline assembly, calls of bitcode, special registers |

mod atomic;
mod atomic_access;
mod buffer;
mod byte_float;
mod byte_integer;
mod bytes;
mod cast;
mod chain;
mod combine;
mod control;
mod convert;
mod coordinates;
mod copy;
mod divide;
mod dot;
mod dot_shared;
mod dot_steps;
mod effect;
mod element;
mod extremum;
mod groups;
mod indexed;
mod map;
mod memory;
mod operations;
mod record;
mod reduce;
mod rescale;
mod scan;
mod scratch;
mod shape;
mod sort;
mod wgmma;

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    ops::Range,
    rc::Rc,
};

use melior::{Context, ir::Module};
use rtc_abi::Target;
use rtc_ir::{Block, Elem, Kernel, MAP_BYTES, Op, OpKind, Scalar, Type as TileType};
use rtc_layout::Layout;
use rtc_source::SourceMap;

use crate::{
    debug::Lines,
    emit::{self, Emitter, KernelShape, Parameter, Type, Types, Value},
    error::{CodegenError, Result},
};

use effect::Text;
use groups::Threads;

/// The symbol of the block's dynamic shared memory.
const SHARED_SYMBOL: &str = "rtc_shared";
/// Its alignment: what swizzled tiles of `wgmma` and TMA need, the strictest use there is.
const SHARED_ALIGN: u32 = 1024;

/// The MLIR values of one tile value.
type Registers<'c> = Rc<[Value<'c>]>;

/// The state of lowering one kernel.
pub(crate) struct Lowering<'a, 'c> {
    kernel: &'a Kernel,
    e: &'a Emitter<'c>,
    target: &'static Target,
    /// A pass refuses long kernels by an estimate, with better words; this holds where the estimate is too low.
    max_operations: usize,
    lines: &'a Lines<'c>,
    /// The scratch memory of all blocks, where there is some.
    global_scratch: Option<Value<'c>>,
    values: RefCell<HashMap<rtc_ir::Value, Registers<'c>>>,
    /// Which registers of all tiles are being lowered, if not all (`chain.rs`).
    piece: RefCell<Option<Range<usize>>>,
    /// The threads that run the current code.
    threads: RefCell<Rc<Threads<'c>>>,
    /// How many events the warp has recorded, where the kernel records them.
    records: OnceCell<Value<'c>>,
    texts: RefCell<Vec<Text>>,
    externals: RefCell<Vec<effect::External>>,
}

/// Builds the MLIR module of a kernel.
pub(crate) fn module<'c>(
    context: &'c Context,
    kernel: &Kernel,
    sources: &SourceMap,
    target: &'static Target,
    max_operations: usize,
    debug_info: bool,
) -> Result<Module<'c>> {
    let lines = Lines::new(context, kernel, sources, debug_info);
    let module = Module::new(lines.function());
    if kernel.shared_bytes > 0 {
        emit::dynamic_shared_memory(context, &module, SHARED_SYMBOL, SHARED_ALIGN);
    }
    let types = Types::new(context);
    let mut parameters: Vec<Parameter<'c>> =
        kernel.params.iter().map(|param| parameter(&types, kernel, param)).collect();
    let has_scratch = kernel.global_scratch_bytes() > 0;
    parameters.extend(has_scratch.then(|| Parameter::scratch(&types, MAP_BYTES)));
    let shape = KernelShape {
        threads_per_block: threads_per_block(kernel),
        // A change of their number counts from a known one.
        max_registers: kernel.registers_at_start().or(kernel.options.maxnreg),
        cluster: (kernel.options.num_ctas > 1).then_some([kernel.options.num_ctas, 1, 1]),
    };
    let (mut texts, mut externals) = (Vec::new(), Vec::new());
    emit::kernel(context, &module, &kernel.name, &parameters, &shape, lines.function(), |e, arguments| {
        let lowering = Lowering {
            kernel,
            e,
            target,
            max_operations,
            lines: &lines,
            global_scratch: has_scratch.then(|| arguments.last().copied()).flatten(),
            values: RefCell::default(),
            piece: RefCell::default(),
            threads: RefCell::new(Threads::of_block(e.thread, threads_per_block(kernel))),
            records: OnceCell::new(),
            texts: RefCell::default(),
            externals: RefCell::default(),
        };
        for (param, argument) in kernel.params.iter().zip(arguments) {
            if let TileType::Desc(_) = kernel.value_type(param.value) {
                lowering.set(param.value, vec![*argument]);
                continue;
            }
            let elem = lowering.elem(param.value)?;
            let value = if elem == Elem::I1 { lowering.byte_to_truth(*argument) } else { *argument };
            lowering.set(param.value, vec![value]);
        }
        if kernel.options.num_ctas > 1 {
            // The blocks of a cluster are one program, and tiles are not spread over them yet: the first does the work.
            let rank = e.special_register("cluster.ctarank");
            let is_first = e.cmpi(emit::Cmpi::Eq, rank, e.i32(0));
            let body = || lowering.block(kernel.body()).map(|_| Vec::new());
            e.if_else(is_first, &[], body, || Ok::<_, CodegenError>(Vec::new()))?;
        } else {
            lowering.block(kernel.body())?;
        }
        texts = lowering.texts.take();
        externals = lowering.externals.take();
        Ok(())
    })?;
    for text in &texts {
        text.define(context, &module);
    }
    for external in &externals {
        external.declare(context, &module);
    }
    Ok(module)
}

/// The threads that a block is launched with.
pub(crate) fn threads_per_block(kernel: &Kernel) -> u32 {
    kernel.threads_per_block()
}

fn parameter<'c>(types: &Types<'c>, kernel: &Kernel, param: &rtc_ir::Param) -> Parameter<'c> {
    if let TileType::Desc(_) = kernel.value_type(param.value) {
        return Parameter::tensor_map(types);
    }
    let elem = kernel.value_type(param.value).elem().unwrap_or(Elem::I64);
    let mut attributes = String::new();
    if let Elem::Ptr(pointee) = elem {
        let align = if param.divisible_by.is_multiple_of(16) { 16 } else { pointee.bytes() };
        attributes = format!("llvm.align = {align} : i64");
    }
    // A truth value is a byte in the parameter buffer.
    let ty = if elem == Elem::I1 { types.i8 } else { element_type(types, elem) };
    Parameter { ty, attributes }
}

/// The MLIR type of an element in a register.
fn element_type<'c>(types: &Types<'c>, elem: Elem) -> Type<'c> {
    match elem {
        Elem::Ptr(_) => types.global,
        Elem::Num(scalar) => match scalar {
            Scalar::I1 => types.i1,
            Scalar::I8 | Scalar::F8E5 | Scalar::F8E4 | Scalar::F8E4B15 => types.i8,
            Scalar::I16 => types.i16,
            Scalar::I32 => types.i32,
            Scalar::I64 => types.i64,
            Scalar::F16 => types.f16,
            Scalar::BF16 => types.bf16,
            Scalar::F32 => types.f32,
            Scalar::F64 => types.f64,
        },
    }
}

impl<'a, 'c> Lowering<'a, 'c> {
    /// The MLIR type of an element in a register.
    fn element(&self, elem: Elem) -> Type<'c> {
        element_type(&self.e.ty, elem)
    }

    /// The MLIR type of a register of a value.
    fn register_type(&self, value: rtc_ir::Value) -> Result<Type<'c>> {
        match self.kernel.value_type(value) {
            TileType::Desc(_) => Ok(self.e.ty.generic),
            _ => Ok(self.element(self.elem(value)?)),
        }
    }

    /// The element type of a value.
    fn elem(&self, value: rtc_ir::Value) -> Result<Elem> {
        let ty = self.kernel.value_type(value);
        ty.elem().ok_or_else(|| CodegenError::lowering(format!("a value of type {ty}, which has no elements")))
    }

    /// The layout of a tile value.
    fn layout(&self, value: rtc_ir::Value) -> Result<&'a Layout> {
        self.kernel.layout_of(value).ok_or_else(|| {
            CodegenError::lowering(format!("a value of type {} without layout", self.kernel.value_type(value)))
        })
    }

    /// How many registers a value takes; of those that are being lowered.
    fn register_count(&self, value: rtc_ir::Value) -> Result<usize> {
        if let Some(piece) = &*self.piece.borrow() {
            return Ok(piece.len());
        }
        match self.kernel.value_type(value) {
            TileType::Tile(_) => Ok(self.layout(value)?.registers() as usize),
            TileType::Scalar(_) | TileType::Shared(_) | TileType::Barrier { .. } | TileType::Desc(_) => Ok(1),
            TileType::BlockPtr(_) | TileType::Token => Ok(0),
        }
    }

    /// The registers of a value that has been lowered; of those that are being lowered.
    fn get(&self, value: rtc_ir::Value) -> Result<Registers<'c>> {
        let whole = self.piece.borrow().is_none();
        let taken = |all: &Registers<'c>| if whole { all.clone() } else { self.piece_of(all).into() };
        let found = self.values.borrow().get(&value).map(taken);
        found.ok_or_else(|| CodegenError::lowering(format!("{value}, which is used before it is defined")))
    }

    /// The only register of a scalar or a buffer.
    fn scalar(&self, value: rtc_ir::Value) -> Result<Value<'c>> {
        let registers = self.get(value)?;
        registers.first().copied().ok_or_else(|| CodegenError::lowering(format!("{value}, which holds nothing")))
    }

    /// Records the registers of a value, or the next ones of it.
    fn set(&self, value: rtc_ir::Value, registers: Vec<Value<'c>>) {
        let mut values = self.values.borrow_mut();
        let before = values.remove(&value).filter(|_| self.piece.borrow().is_some());
        if let Some(variable) = self.lines.variable(value) {
            let first = before.as_ref().map_or(0, |before| before.len());
            self.e.debug_values(variable.attribute, variable.location, variable.piece, first, &registers);
        }
        let all = before.map(|before| [&*before, &registers].concat()).unwrap_or(registers);
        values.insert(value, all.into());
    }

    /// Records the registers of an operation's first result.
    fn define(&self, op: Op, registers: Vec<Value<'c>>) {
        self.set(self.kernel.result(op, 0), registers);
    }

    /// Operand `index` of an operation.
    fn operand(&self, op: Op, index: usize) -> Result<Registers<'c>> {
        self.get(self.kernel.operand(op, index))
    }

    /// The registers of an operand that may be absent.
    fn present(&self, operand: Option<rtc_ir::Value>) -> Result<Option<Registers<'c>>> {
        operand.map(|value| self.get(value)).transpose()
    }

    /// Lowers the operations of a block; the registers that its terminator hands out.
    fn block(&self, block: Block) -> Result<Vec<Registers<'c>>> {
        let ops: Vec<Op> = self.kernel.ops(block).collect();
        let mut next = 0;
        // Where the latest chain ends that was too short.
        let mut looked_at = 0;
        while let Some(op) = ops.get(next) {
            let data = self.kernel.op(*op);
            match &data.kind {
                OpKind::Yields {} | OpKind::Condition {} => {
                    return data.operands.iter().map(|value| self.get(*value)).collect();
                }
                OpKind::Ret {} if block != self.kernel.body() => {
                    return Err(CodegenError::lowering("a `ret` inside of a loop or branch"));
                }
                OpKind::Ret {} => return Ok(Vec::new()),
                _ => {}
            }
            let chain = if next < looked_at { None } else { self.chain(&ops[next..])? };
            match chain {
                Some(chain) if chain.is_long() => {
                    self.in_pieces(&chain)?;
                    next += chain.len;
                }
                short => {
                    looked_at = short.map_or(looked_at, |chain| next + chain.len);
                    self.at_its_line(*op)?;
                    next += 1;
                }
            }
        }
        Ok(Vec::new())
    }

    /// Lowers an operation.
    fn at_its_line(&self, op: Op) -> Result<()> {
        let data = self.kernel.op(op);
        self.e.set_location(self.lines.at(data.loc));
        self.operation(op, &data.kind)?;
        if self.e.count() > self.max_operations {
            let span = self.kernel.loc(data.loc).span;
            return Err(CodegenError::TooLong { operations: self.e.count(), allowed: self.max_operations, span });
        }
        Ok(())
    }
}
