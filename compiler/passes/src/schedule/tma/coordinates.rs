//! Coordinates of boxes, computed in a partition from the indices of its program.

use std::cmp::Ordering;

use rtc_ir::analysis::{Poly, Symbol};
use rtc_ir::{Builder, Elem, Kernel, Literal, Op, Predicate, Type, Value, ValueMap, constant_bits};

use crate::PassError;
use crate::access::box_access::{BoxAccess, BoxAxis};
use crate::access::negative_indices::{constant_lead, lead};
use crate::pass::missing;

/// The values from which polynomials are computed in a partition.
pub(crate) struct Names<'m> {
    /// The indices of the program.
    pub pids: [Value; 3],
    /// The numbers of programs.
    pub grid: [Value; 3],
    /// If the partition is a clone: the map from original to cloned values.
    pub map: Option<&'m ValueMap>,
}

impl Names<'_> {
    /// The value in this partition.
    pub fn of(&self, value: Value) -> Value {
        self.map.and_then(|map| map.get(&value)).copied().unwrap_or(value)
    }

    /// A sum as an `i32`, computed before an operation.
    fn sum(&self, kernel: &mut Kernel, before: Op, poly: &Poly) -> Result<Value, PassError> {
        self.sum_in(kernel, before, poly, Elem::I32)
    }

    /// A sum as an integer of that type, computed in it.
    pub fn sum_in(&self, kernel: &mut Kernel, before: Op, poly: &Poly, elem: Elem) -> Result<Value, PassError> {
        let ty = Type::Scalar(elem);
        let mut sum = None;
        for term in poly.terms() {
            let factor = i64::try_from(term.factor).map_err(|_| missing("a factor"))?;
            let mut product = None;
            for symbol in &term.symbols {
                let value = self.symbol(kernel, before, *symbol)?;
                let value = in_type(kernel, before, value, elem)?;
                product = Some(match product {
                    Some(product) => Builder::before(kernel, before).muli(product, value)?,
                    None => value,
                });
            }
            let mut builder = Builder::before(kernel, before);
            let product = match product {
                Some(product) if factor == 1 => product,
                Some(product) => {
                    let factor = builder.constant_of(Literal::Int(factor), ty)?;
                    builder.muli(product, factor)?
                }
                None => builder.constant_of(Literal::Int(factor), ty)?,
            };
            sum = Some(match sum {
                Some(sum) => builder.addi(sum, product)?,
                None => product,
            });
        }
        match sum {
            Some(sum) => Ok(sum),
            None => Ok(Builder::before(kernel, before).constant_of(Literal::Int(0), ty)?),
        }
    }

    fn symbol(&self, kernel: &mut Kernel, before: Op, symbol: Symbol) -> Result<Value, PassError> {
        match symbol {
            Symbol::Scalar(value) => Ok(self.of(value)),
            Symbol::Program(axis) => Ok(self.pids[axis as usize]),
            Symbol::Programs(axis) => Ok(self.grid[axis as usize]),
            Symbol::Round(of) => {
                let index = self.of(kernel.block(kernel.op(of).blocks[0]).args[0]);
                let [lower, step] = [0, 2].map(|place| self.of(kernel.operand(of, place)));
                let mut round = index;
                if constant_bits(kernel, lower) != Some(0) {
                    round = Builder::before(kernel, before).subi(round, lower)?;
                }
                if constant_bits(kernel, step) != Some(1) {
                    round = Builder::before(kernel, before).divsi(round, step)?;
                }
                Ok(round)
            }
            Symbol::Dim(_) | Symbol::Rounds(_) | Symbol::Wrap(_) => Err(missing("a symbol")),
        }
    }

    /// A coordinate, but 0 where the stride is 0: the map has another one there (`tensor_maps::outer_stride`).
    fn zero_without_stride(
        &self,
        kernel: &mut Kernel,
        before: Op,
        mut at: Value,
        stride: &Poly,
    ) -> Result<Value, PassError> {
        for symbol in stride.terms().iter().flat_map(|term| &term.symbols) {
            let Symbol::Scalar(value) = symbol else { continue };
            let factor = self.of(*value);
            let ty = kernel.value_type(factor);
            let mut builder = Builder::before(kernel, before);
            let none = builder.constant_of(Literal::Int(0), ty)?;
            let moves = builder.cmpi(factor, none, Predicate::Ne)?;
            let zero = builder.constant_of(Literal::Int(0), Type::Scalar(Elem::I32))?;
            at = builder.select(moves, at, zero)?;
        }
        Ok(at)
    }

    /// Where the box of an access to a tile of that shape is. Where the tensor has no elements, it lies behind it.
    pub fn place(
        &self,
        kernel: &mut Kernel,
        before: Op,
        access: &BoxAccess,
        tile: &[u32],
    ) -> Result<BoxCoordinates, PassError> {
        let mut place = Vec::new();
        for outer in &access.outer {
            let (at, lead) = self.index_in_map(kernel, before, outer)?;
            let at = self.zero_without_stride(kernel, before, at, &outer.stride)?;
            place.push(self.or_behind(kernel, before, at, (&outer.sizes, lead), 1)?);
        }
        for number in [1 - access.inner, access.inner] {
            let axis = &access.axes[number];
            let (at, lead) = self.index_in_map(kernel, before, axis)?;
            place.push(self.or_behind(kernel, before, at, (&axis.sizes, lead), tile[number])?);
        }
        Ok(BoxCoordinates(place))
    }

    /// The index along a dimension, counted from where the map begins, and how many elements that is before the tensor.
    fn index_in_map(
        &self,
        kernel: &mut Kernel,
        before: Op,
        axis: &BoxAxis,
    ) -> Result<(Value, Option<Value>), PassError> {
        let index = self.sum(kernel, before, &axis.index)?;
        if axis.from_zero {
            return Ok((index, None));
        }
        let lead = match constant_lead(&axis.stride) {
            Some(lead) => Builder::before(kernel, before).constant_of(Literal::Int(lead), Type::Scalar(Elem::I32))?,
            None => {
                let stride = self.sum_in(kernel, before, &axis.stride, Elem::I64)?;
                lead(kernel, before, stride)?
            }
        };
        Ok((Builder::before(kernel, before).addi(index, lead)?, Some(lead)))
    }

    /// Whether a size is a number of 32 bits itself.
    fn is_narrow(&self, kernel: &Kernel, size: &Poly) -> bool {
        let is_int = |symbol: &Symbol| match symbol {
            Symbol::Scalar(value) => kernel.value_type(*value).elem().is_some_and(|elem| elem.bits() <= 32),
            _ => true,
        };
        match size.terms() {
            [term] if term.symbols.is_empty() => i32::try_from(term.factor).is_ok(),
            [term] => term.factor == 1 && term.symbols.len() == 1 && term.symbols.iter().all(is_int),
            terms => terms.is_empty(),
        }
    }

    /// A coordinate, but one with which a box of that length lies behind the tensor where some size of the map is 0, for which
    /// it has 1. Before the tensor, copies out of shared memory are illegal instructions on an H200.
    fn or_behind(
        &self,
        kernel: &mut Kernel,
        before: Op,
        mut at: Value,
        (sizes, lead): (&[Poly], Option<Value>),
        length: u32,
    ) -> Result<Value, PassError> {
        for size in sizes {
            // The host computes sizes in 64 bits: one more than the greatest integer is no negative number.
            let elem = if lead.is_none() && self.is_narrow(kernel, size) { Elem::I32 } else { Elem::I64 };
            let mut size = self.sum_in(kernel, before, size, elem)?;
            if let Some(lead) = lead {
                let lead = in_type(kernel, before, lead, elem)?;
                size = Builder::before(kernel, before).addi(size, lead)?;
            }
            let mut builder = Builder::before(kernel, before);
            let zero = builder.constant_of(Literal::Int(0), Type::Scalar(elem))?;
            let behind = builder.constant_of(Literal::Int(length.into()), Type::Scalar(Elem::I32))?;
            let is_there = builder.cmpi(size, zero, Predicate::Gt)?;
            at = builder.select(is_there, at, behind)?;
        }
        Ok(at)
    }
}

/// The tile that a map of the last rows is for.
#[derive(Clone, Copy)]
pub(crate) struct LastTile {
    /// Whether a tile is the last one.
    pub is_last: Value,
    /// The row with which it begins.
    pub first: Value,
}

/// The coordinates of a box, outermost first; those in the dimensions of the tile come last.
pub(crate) struct BoxCoordinates(pub Vec<Value>);

impl BoxCoordinates {
    /// The first row.
    pub fn row(&self) -> Result<Value, PassError> {
        self.0.iter().nth_back(1).copied().ok_or_else(|| missing("a row"))
    }

    /// The same, but in the last tile counted from its first row, where its map begins.
    pub fn in_last(mut self, kernel: &mut Kernel, before: Op, last: LastTile) -> Result<BoxCoordinates, PassError> {
        let row = self.row()?;
        let mut builder = Builder::before(kernel, before);
        let in_last = builder.subi(row, last.first)?;
        let row = builder.select(last.is_last, in_last, row)?;
        self.0.iter_mut().nth_back(1).into_iter().for_each(|at| *at = row);
        Ok(self)
    }

    /// The coordinates of a part of the box that starts there.
    pub fn moved(&self, kernel: &mut Kernel, before: Op, part: [u32; 2]) -> Result<Vec<Value>, PassError> {
        let mut at = self.0.clone();
        let outer = at.len().saturating_sub(part.len());
        for (value, by) in at[outer..].iter_mut().zip(part) {
            *value = moved(kernel, before, *value, by)?;
        }
        Ok(at)
    }
}

/// An integer in another type.
fn in_type(kernel: &mut Kernel, before: Op, value: Value, elem: Elem) -> Result<Value, PassError> {
    let bits = kernel.value_type(value).elem().map_or(32, |elem| elem.bits());
    let mut builder = Builder::before(kernel, before);
    Ok(match bits.cmp(&elem.bits()) {
        Ordering::Equal => value,
        Ordering::Greater => builder.trunci(value, elem)?,
        Ordering::Less => builder.extsi(value, elem)?,
    })
}

/// A coordinate moved by a part of a box.
fn moved(kernel: &mut Kernel, before: Op, at: Value, by: u32) -> Result<Value, PassError> {
    if by == 0 {
        return Ok(at);
    }
    let mut builder = Builder::before(kernel, before);
    let by = builder.constant_of(Literal::Int(by.into()), Type::Scalar(Elem::I32))?;
    Ok(builder.addi(at, by)?)
}
