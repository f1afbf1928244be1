//! From a parsed module to [`Code`]: names to registers and addresses, instructions to operations.
//!
//! Some instructions become several operations: a second destination, a carry, a special register as an operand.
//! Temporaries are written without the guard, destinations under it.

mod addresses;
mod asynchronous;
mod checks;
mod control;
mod instruction;
mod memory;
mod products;
mod scope;
mod variables;

use std::collections::HashMap;

use rtc_ptx::Modifier;
use rtc_ptx::module::{Function, Immediate, Line, Loc, Module, Operand, StateSpace, Statement};
use rtc_ptx::types::{bits, is_float};

use crate::alu::AluFn;
use crate::code::{CONSTANT, Code, Kind, NONE, Op, Origin, Reg, Src};
use crate::program::LoadError;
use scope::{Scope, Symbol};

type Result<T, E = LoadError> = std::result::Result<T, E>;

/// Decodes a module.
pub fn decode(module: &Module) -> Result<Code> {
    let mut code = Code { target: module.target.first().cloned().unwrap_or_default(), ..Code::default() };
    code.files = module.files.iter().map(|file| (file.index, file.name.clone())).collect();
    let outer = variables::module_scope(module, &mut code)?;
    let mut decoder = Decoder {
        code,
        constants: HashMap::new(),
        locations: HashMap::new(),
        functions: HashMap::new(),
        scopes: vec![outer],
        frame: Frame::default(),
    };
    for function in module.functions.iter().filter(|f| f.body.is_some()) {
        decoder.declare(function)?;
    }
    let mut index = 0;
    for function in &module.functions {
        if let Some(body) = &function.body {
            decoder.function(index, function, body)?;
            index += 1;
        }
    }
    addresses::keep_addresses(&mut decoder.code);
    checks::choose(&mut decoder.code);
    Ok(decoder.code)
}

/// Most registers of a function.
const MAX_REGISTERS: u32 = 1 << 20;
/// Most local memory of a function.
const MAX_FRAME: u32 = 1 << 24;

fn error<T>(line: Line, message: impl Into<String>) -> Result<T> {
    Err(LoadError { line: line.0, message: message.into() })
}

/// State of the function being decoded.
#[derive(Default)]
struct Frame {
    entry: bool,
    registers: u32,
    bytes: u32,
    carry: Option<Reg>,
    /// Operations of jumps and the labels they wait for.
    fixups: Vec<(usize, usize)>,
    /// Positions of labels.
    labels: Vec<Option<u32>>,
    location: u32,
    line: Line,
    instruction: u32,
    /// Registers and negation of the present guard.
    guard: u32,
    /// Index of the function.
    function: usize,
}

struct Decoder {
    code: Code,
    constants: HashMap<u64, Src>,
    locations: HashMap<Loc, u32>,
    functions: HashMap<String, usize>,
    scopes: Vec<Scope>,
    frame: Frame,
}

impl Decoder {
    fn function(&mut self, index: usize, function: &Function, body: &[Statement]) -> Result<()> {
        let (entry, bytes) = (function.entry, self.code.functions[index].frame_bytes);
        self.frame = Frame {
            entry,
            bytes,
            location: NONE,
            guard: NONE,
            line: function.line,
            function: index,
            ..Frame::default()
        };
        let mut scope = Scope::default();
        let mut offset = 0;
        for (i, variable) in function.params.iter().chain(&function.returns).enumerate() {
            let size = variables::size_of(variable)?;
            let symbol = if entry {
                offset = variables::align_up(offset, variables::align_of(variable));
                let symbol = Symbol::Param(offset);
                offset = offset.saturating_add(size);
                symbol
            } else {
                let slots = &self.code.functions[index];
                let (at, _) = *slots.params.iter().chain(&slots.results).nth(i).unwrap_or(&(0, 0));
                Symbol::Frame(at, size)
            };
            scope.names.insert(variable.name.clone(), symbol);
        }
        self.scopes.push(scope);
        self.enter(body);
        self.code.functions[index].start = self.code.ops.len() as u32;
        let mut at = 0;
        while at < body.len() {
            self.statement(&body[at], &body[at + 1..])?;
            at += 1;
        }
        // Running off the end is a return.
        self.push(Kind::Return);
        self.finish_instruction();
        self.scopes.truncate(1);
        for (op, label) in std::mem::take(&mut self.frame.fixups) {
            // Every label was entered with its scope, so each has its place by now.
            let place = |label: u32| self.frame.labels[label as usize].unwrap_or(0);
            match &mut self.code.ops[op].kind {
                Kind::BranchTable(_, table) => table.iter_mut().for_each(|to| *to = place(*to)),
                kind => *kind = Kind::Branch(place(label as u32)),
            }
        }
        if self.frame.bytes > MAX_FRAME {
            return error(function.line, format!("`{}` needs too much local memory", function.name));
        }
        let slot = &mut self.code.functions[index];
        slot.registers = self.frame.registers;
        slot.frame_bytes = variables::align_up(self.frame.bytes, 16);
        Ok(())
    }

    /// Opens a scope whose labels are those of `rest` up to its closing brace.
    fn enter(&mut self, rest: &[Statement]) {
        let mut scope = Scope::default();
        let mut depth = 0;
        for statement in rest {
            match statement {
                Statement::Open => depth += 1,
                Statement::Close if depth == 0 => break,
                Statement::Close => depth -= 1,
                Statement::Label(name) if depth == 0 => {
                    scope.names.insert(name.clone(), Symbol::Label(self.frame.labels.len()));
                    self.frame.labels.push(None);
                }
                Statement::BranchTargets { name, targets } if depth == 0 => {
                    scope.names.insert(name.clone(), Symbol::Targets(targets.clone()));
                }
                _ => {}
            }
        }
        self.scopes.push(scope);
    }

    fn statement(&mut self, statement: &Statement, rest: &[Statement]) -> Result<()> {
        match statement {
            Statement::Instruction(instruction) => self.instruction(instruction),
            Statement::Label(name) => {
                if let Some(Symbol::Label(label)) = self.find(name) {
                    self.frame.labels[label] = Some(self.code.ops.len() as u32);
                }
                Ok(())
            }
            Statement::Loc(loc) => {
                let next = self.code.locations.len() as u32;
                self.frame.location = *self.locations.entry(loc.clone()).or_insert(next);
                if self.frame.location == next {
                    self.code.locations.push(loc.clone());
                }
                Ok(())
            }
            Statement::Registers { ty, names } => {
                let width = bits(*ty).unwrap_or(64);
                if width > 64 {
                    return error(self.frame.line, format!("registers of type .{} are not supported", ty.text()));
                }
                for (name, count) in names {
                    let start = self.frame.registers;
                    if count.unwrap_or(1) > MAX_REGISTERS - start.min(MAX_REGISTERS) {
                        return error(self.frame.line, "too many registers");
                    }
                    self.frame.registers += count.unwrap_or(1);
                    self.code.functions[self.frame.function].names.push((name.clone(), start, *count));
                    let Some(scope) = self.scopes.last_mut() else { continue };
                    match count {
                        Some(n) => scope.ranges.insert(name.clone(), (start, *n, width)).map(|_| ()),
                        None => scope.names.insert(name.clone(), Symbol::Register(start, width)).map(|_| ()),
                    };
                }
                Ok(())
            }
            Statement::Variable(variable) => match variable.space {
                StateSpace::Local | StateSpace::Param => {
                    let size = variables::size_of(variable)?;
                    let offset = variables::align_up(self.frame.bytes, variables::align_of(variable));
                    self.frame.bytes = offset.saturating_add(size);
                    self.define(&variable.name, Symbol::Frame(offset, size));
                    Ok(())
                }
                // Collected before any function was decoded.
                StateSpace::Shared => {
                    if let Some(symbol) = self.scopes[0].locals.get(&(variable.name.clone(), variable.line.0)) {
                        let symbol = symbol.clone();
                        self.define(&variable.name, symbol);
                    }
                    Ok(())
                }
                _ => error(variable.line, format!("a {} variable inside a function is not supported", variable.space)),
            },
            Statement::Open => {
                self.enter(rest);
                Ok(())
            }
            Statement::Close => {
                self.scopes.pop();
                Ok(())
            }
            Statement::Pragma(_) | Statement::BranchTargets { .. } => Ok(()),
        }
    }

    fn define(&mut self, name: &str, symbol: Symbol) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name.to_string(), symbol);
        }
    }

    fn find(&self, name: &str) -> Option<Symbol> {
        self.scopes.iter().rev().find_map(|scope| scope.find(name))
    }

    // ---- emission ----

    /// Appends an operation under the present guard.
    fn push(&mut self, kind: Kind) {
        let guard = self.frame.guard;
        self.push_with(kind, guard);
    }

    fn push_with(&mut self, kind: Kind, guard: u32) {
        self.code.ops.push(Op { kind, wrap: None, guard, weight: 0 });
        let origin =
            Origin { line: self.frame.line.0, instruction: self.frame.instruction, location: self.frame.location };
        self.code.origins.push(origin);
    }

    fn finish_instruction(&mut self) {
        if let Some(op) = self.code.ops.last_mut() {
            op.weight = 1;
        }
    }

    fn temporary(&mut self) -> Reg {
        self.frame.registers += 1;
        self.frame.registers - 1
    }

    fn constant(&mut self, value: u64) -> Src {
        let next = CONSTANT | self.code.constants.len() as u32;
        let constants = &mut self.code.constants;
        *self.constants.entry(value).or_insert_with(|| {
            constants.push([value; 32]);
            next
        })
    }

    /// The address of a global variable: a constant that each launch fills in.
    fn global_address(&mut self, variable: usize, offset: i64) -> Src {
        let index = self.code.constants.len();
        self.code.constants.push([0; 32]);
        self.code.relocations.push((index, variable, offset));
        CONSTANT | index as u32
    }

    /// An unguarded operation into a new temporary.
    fn compute(&mut self, function: AluFn, sources: [Src; 4]) -> Reg {
        let to = self.temporary();
        self.push_with(Kind::Alu(function, to, sources), NONE);
        to
    }

    fn sources(&mut self, list: &[Src]) -> [Src; 4] {
        let zero = self.constant(0);
        let mut all = [zero; 4];
        all[..list.len()].copy_from_slice(list);
        all
    }

    // ---- operands ----

    fn invalid<T>(&self, message: impl Into<String>) -> Result<T> {
        let text = self.code.instructions.last().map_or("", |t| t.as_str());
        error(self.frame.line, format!("{} in `{text}`", message.into()))
    }

    /// A source of a type. `wider` allows registers wider than the type.
    fn source(&mut self, operand: &Operand, ty: Modifier, wider: bool) -> Result<Src> {
        let width = bits(ty).unwrap_or(64);
        match operand {
            Operand::Immediate(immediate) => {
                let value = self.immediate(*immediate, ty)?;
                Ok(self.constant(value))
            }
            Operand::Not(name) => {
                let source = self.source(&Operand::Name(name.clone()), Modifier::Pred, false)?;
                let sources = self.sources(&[source]);
                Ok(self.compute(crate::alu::negate_predicate(), sources))
            }
            Operand::Name(name) => self.named(name, 0, width, wider),
            Operand::Offset(name, offset) => self.named(name, *offset, width, wider),
            _ => self.invalid(format!("`{operand}` cannot be read")),
        }
    }

    fn named(&mut self, name: &str, offset: i64, width: u32, wider: bool) -> Result<Src> {
        if let Some((special, bits)) = scope::special(name) {
            if bits != width && !wider && !(bits == 32 && width == 64) {
                return self.invalid(format!("`{name}` has {bits} bits, not {width}"));
            }
            let to = self.temporary();
            self.push_with(Kind::Special(special, to), NONE);
            return Ok(to);
        }
        if name == "WARP_SZ" {
            return Ok(self.constant(32));
        }
        match self.find(name) {
            Some(Symbol::Register(register, bits)) => {
                if bits == width || (wider && bits >= width) {
                    Ok(register)
                } else {
                    self.invalid(format!("`{name}` has {bits} bits where {width} are needed"))
                }
            }
            Some(Symbol::Frame(at, _)) => {
                let to = self.temporary();
                self.push_with(Kind::FrameAddress(to, (i64::from(at) + offset) as u32), NONE);
                Ok(to)
            }
            Some(Symbol::Param(at) | Symbol::Shared(at)) => Ok(self.constant((i64::from(at) + offset) as u64)),
            Some(Symbol::Global(variable)) => Ok(self.global_address(variable, offset)),
            Some(Symbol::Label(_) | Symbol::Targets(_)) => self.invalid(format!("`{name}` is a label")),
            None if self.functions.contains_key(name) => self.invalid(format!("the address of function `{name}`")),
            None => self.invalid(format!("unknown name `{name}`")),
        }
    }

    fn immediate(&self, immediate: Immediate, ty: Modifier) -> Result<u64> {
        let width = bits(ty).unwrap_or(64);
        let mask = crate::numeric::convert::mask(width);
        match immediate {
            Immediate::Integer { bits, .. } => {
                if is_float(ty) && width > 16 && !matches!(ty, Modifier::F16x2 | Modifier::Bf16x2 | Modifier::F32x2) {
                    return self.invalid("an integer where a floating-point number is needed");
                }
                Ok(if ty == Modifier::Pred { u64::from(bits != 0) } else { bits & mask })
            }
            Immediate::Single(bits) if width == 64 && is_float(ty) => Ok(f64::from(f32::from_bits(bits)).to_bits()),
            Immediate::Single(bits) => Ok(u64::from(bits) & mask),
            Immediate::Double(bits) if width == 32 => Ok(u64::from((f64::from_bits(bits) as f32).to_bits())),
            Immediate::Double(bits) => Ok(bits & mask),
        }
    }

    /// A destination register of a type, and its width; `_` gives a scratch register.
    fn destination(&mut self, operand: &Operand, ty: Modifier, wider: bool) -> Result<(Reg, u32)> {
        let width = bits(ty).unwrap_or(64);
        match operand {
            Operand::Sink => Ok((self.temporary(), width)),
            Operand::Name(name) => match self.find(name) {
                Some(Symbol::Register(register, bits)) if bits == width || (wider && bits >= width) => {
                    Ok((register, bits))
                }
                Some(Symbol::Register(_, bits)) => {
                    self.invalid(format!("`{name}` has {bits} bits where {width} are written"))
                }
                _ => self.invalid(format!("`{name}` cannot be written")),
            },
            _ => self.invalid(format!("`{operand}` cannot be written")),
        }
    }

    /// The functions that calls can name, with the layout of their parameters.
    fn declare(&mut self, function: &Function) -> Result<()> {
        let index = self.code.functions.len();
        if self.functions.insert(function.name.clone(), index).is_some() {
            return error(function.line, format!("`{}` is defined twice", function.name));
        }
        let code = variables::function_code(function)?;
        self.code.functions.push(code);
        Ok(())
    }
}
