//! The extents of a kernel as one straight program over numbers, for launches: what several expressions share is computed once,
//! and nothing is looked up.
//!
//! Invariant: an operand names a number before the one that it is for, and there are at most [`NUMBERS`] of them.

use crate::expr::{Binary, Expr, ExprStep};

/// The most numbers of a program: inputs, constants and results.
const NUMBERS: usize = 32;
/// The most bounds of a program.
pub(crate) const BOUNDS: usize = 8;

/// A program that computes the bounds of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExtentProgram {
    constants: Vec<(u8, i64)>,
    inputs: Vec<(u8, Input)>,
    operations: Vec<Operation>,
    bounds: Vec<ExtentBound>,
}

/// The inputs of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// An integer argument, by the number of its parameter.
    Param(usize),
    /// The programs along an axis.
    Grid(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operation {
    to: u8,
    op: Binary,
    a: u8,
    b: u8,
}

/// The elements that are touched at most, where all needs are at least 0.
#[derive(Clone, Debug, PartialEq)]
struct ExtentBound {
    extent: u8,
    needs: Vec<u8>,
}

/// Makes a program of expressions.
#[derive(Debug, Default)]
pub(crate) struct Maker {
    program: ExtentProgram,
    numbers: u8,
}

impl Maker {
    /// Adds a bound; `input` maps the names of an expression to inputs. Returns its number, or `None` if the program is
    /// full.
    pub(crate) fn bound<'e>(
        &mut self,
        extent: (&'e Expr, &[Input]),
        needs: impl Iterator<Item = (&'e Expr, &'e [Input])>,
    ) -> Option<usize> {
        let extent = self.expression(extent.0, extent.1)?;
        let needs = needs.map(|(expr, inputs)| self.expression(expr, inputs)).collect::<Option<Vec<u8>>>()?;
        let bound = ExtentBound { extent, needs };
        let bounds = &mut self.program.bounds;
        if let Some(known) = bounds.iter().position(|other| *other == bound) {
            return Some(known);
        }
        bounds.push(bound);
        (bounds.len() <= BOUNDS).then(|| bounds.len() - 1)
    }

    pub(crate) fn finish(self) -> ExtentProgram {
        self.program
    }

    fn expression(&mut self, expr: &Expr, inputs: &[Input]) -> Option<u8> {
        let mut stack = Vec::new();
        for step in expr.steps() {
            let number = match *step {
                ExprStep::Const(value) => self.constant(value)?,
                ExprStep::Name(index) => self.input(*inputs.get(index)?)?,
                ExprStep::Negate => {
                    let (zero, of) = (self.constant(0)?, stack.pop()?);
                    self.operation(Binary::Sub, zero, of)?
                }
                ExprStep::Binary(op) => {
                    let (b, a) = (stack.pop()?, stack.pop()?);
                    self.operation(op, a, b)?
                }
            };
            stack.push(number);
        }
        stack.pop()
    }

    fn constant(&mut self, value: i64) -> Option<u8> {
        let known = self.program.constants.iter().find(|(_, other)| *other == value).map(|(number, _)| *number);
        known.or_else(|| {
            let number = self.number()?;
            self.program.constants.push((number, value));
            Some(number)
        })
    }

    fn input(&mut self, input: Input) -> Option<u8> {
        let known = self.program.inputs.iter().find(|(_, other)| *other == input).map(|(number, _)| *number);
        known.or_else(|| {
            let number = self.number()?;
            self.program.inputs.push((number, input));
            Some(number)
        })
    }

    fn operation(&mut self, op: Binary, a: u8, b: u8) -> Option<u8> {
        let is_same = |other: &&Operation| (other.op, other.a, other.b) == (op, a, b);
        let known = self.program.operations.iter().find(is_same).map(|other| other.to);
        known.or_else(|| {
            let to = self.number()?;
            self.program.operations.push(Operation { to, op, a, b });
            Some(to)
        })
    }

    fn number(&mut self) -> Option<u8> {
        let number = self.numbers;
        self.numbers = self.numbers.saturating_add(1);
        (usize::from(number) < NUMBERS).then_some(number)
    }
}

impl ExtentProgram {
    /// The elements of each bound; `u64::MAX` where a condition does not hold, an argument is missing or a number leaves 64
    /// bits.
    #[inline]
    pub(crate) fn run(&self, arg: impl Fn(usize) -> Option<i64>, grid: [u32; 3]) -> [u64; BOUNDS] {
        let mut numbers = [0i64; NUMBERS];
        // The numbers that there are none of.
        let mut missing = 0u32;
        let at = |number: u8| usize::from(number) % NUMBERS;
        for (to, value) in &self.constants {
            numbers[at(*to)] = *value;
        }
        for (to, input) in &self.inputs {
            let value = match *input {
                Input::Param(param) => arg(param),
                Input::Grid(axis) => Some(grid[axis].into()),
            };
            numbers[at(*to)] = value.unwrap_or(0);
            missing |= u32::from(value.is_none()) << at(*to);
        }
        for Operation { to, op, a, b } in &self.operations {
            let has_no_operand = (missing >> at(*a) | missing >> at(*b)) & 1;
            let (a, b) = (numbers[at(*a)], numbers[at(*b)]);
            let value = match op {
                Binary::Add => a.checked_add(b),
                Binary::Sub => a.checked_sub(b),
                Binary::Mul => a.checked_mul(b),
                Binary::Min => Some(a.min(b)),
                Binary::Max => Some(a.max(b)),
                Binary::FloorDiv | Binary::Mod | Binary::CeilDiv if b == 0 => None,
                Binary::FloorDiv | Binary::Mod | Binary::CeilDiv => op.apply(a, b),
            };
            numbers[at(*to)] = value.unwrap_or(0);
            missing |= (has_no_operand | u32::from(value.is_none())) << at(*to);
        }
        let mut out = [u64::MAX; BOUNDS];
        for (ExtentBound { extent, needs }, out) in self.bounds.iter().zip(&mut out) {
            let is_known = |number: u8| missing >> at(number) & 1 == 0;
            if is_known(*extent) && needs.iter().all(|need| is_known(*need) && numbers[at(*need)] >= 0) {
                *out = numbers[at(*extent)].max(0) as u64;
            }
        }
        out
    }
}
