//! Finds the accesses of tiles in global memory that access a box of a tensor, so that TMA can do them.
//!
//! ```text
//! load a + (m0 + arange)[:, None] * stride + (k0 + arange)[None, :], mask = .. < M and .. < K
//!     a box at (m0, k0) of the tensor {a, sizes [M, K], strides [stride, 1]}
//! ```
//!
//! Base, sizes and strides must be computed from arguments of the kernel, since the host makes the tensor map; the base
//! and all strides but the innermost must be promised to be multiples of 16 bytes. A mask must be a conjunction of
//! `index < size`. A dimension without such a comparison gets the largest possible size. Rows that are stored must end
//! at multiples of 16 bytes, too, since the hardware writes the last 16 bytes of a row as a whole.
//!
//! If base, sizes and strides are those of a descriptor argument, the map is the argument itself (`descriptors.rs`). If
//! they are loaded from memory, and a descriptor or a hint in the source promises the multiples, the kernel makes the
//! map (`kernel_tensor_maps.rs`).
//!
//! Rows taken modulo a size, as in `(m0 + arange) % M`, are outside of the tensor from `M` on, where a copy reads zeros
//! instead. The caller checks that these are never used (`dead_lanes.rs`).

mod dimensions;
mod multiples;

use rtc_ir::analysis::{Address, Affine, Mask, Poly, Ranges, Symbol, Term};
use rtc_ir::{Elem, Kernel, Op, OpKind, Scalar, Value, constant_bits};

use super::alignment::Alignment;
use super::box_access::{BoxAccess, BoxAxis, Fill};
use super::descriptors;
use super::promises::{self, is_settled};
use super::refusal::Refusal;
use dimensions::lone_row;

/// Bases and strides must be multiples of so many bytes.
pub(crate) const ALIGN: i128 = 16;

/// The refusal of a stride.
const NO_PROMISE: Refusal = Refusal::StrideUnpromised;

/// The analyses that the proof uses.
pub(crate) struct BoxAnalysis<'k> {
    pub kernel: &'k Kernel,
    pub ranges: &'k Ranges<'k>,
    pub affine: Affine<'k>,
    /// Affine forms that are valid even if sums in mask comparisons overflow, but less precise.
    exact: Affine<'k>,
    alignment: Alignment,
}

impl<'k> BoxAnalysis<'k> {
    /// Nothing is computed yet.
    pub fn new(kernel: &'k Kernel, ranges: &'k Ranges<'k>) -> BoxAnalysis<'k> {
        let (affine, exact) = (Affine::new(kernel, ranges), Affine::exact(kernel, ranges));
        BoxAnalysis { kernel, ranges, affine, exact, alignment: Alignment::default() }
    }

    /// The access of a load.
    pub fn load(&mut self, load: Op) -> Result<BoxAccess, Refusal> {
        let access = self.access(load, self.kernel.mask(load))?;
        self.filled(load, access)
    }

    fn filled(&self, load: Op, access: BoxAccess) -> Result<BoxAccess, Refusal> {
        let kernel = self.kernel;
        let fill = match kernel.optional(load, 1) {
            Some(other) => self.fill(other).ok_or(Refusal::MaskFill)?,
            None => Fill::Zero,
        };
        let elem = kernel.value_type(kernel.result(load, 0)).elem();
        if let Some(descriptor) = &access.descriptor {
            let is_float = elem.and_then(Elem::num).is_some_and(Scalar::is_float);
            // The launch takes what the descriptor says.
            return if descriptors::fills_so(kernel, descriptor, fill, is_float) {
                Ok(access)
            } else {
                Err(Refusal::BaseNotArgument)
            };
        }
        let elem = elem.map_or(0, |elem| elem.bits());
        if fill != Fill::Zero && elem < 16 {
            return Err(Refusal::FillOfBytes);
        }
        Ok(BoxAccess { fill, ..access })
    }

    fn fill(&self, other: Value) -> Option<Fill> {
        let kernel = self.kernel;
        if let Some(bits) = constant_bits(kernel, other) {
            if bits == 0 {
                return Some(Fill::Zero);
            }
            let elem = kernel.value_type(other).elem()?.num()?;
            return (elem.is_float() && rtc_ir::decode_float(bits, elem).is_nan()).then_some(Fill::Nan);
        }
        let made = kernel.def_op(other)?;
        match kernel.kind(made) {
            OpKind::Splat {} | OpKind::ConvertLayout {} => self.fill(kernel.operand(made, 0)),
            OpKind::Select {} => {
                let [flag, yes, no] = [0, 1, 2].map(|place| kernel.operand(made, place));
                let is_argument = kernel.params.iter().any(|param| param.value == flag);
                let fills = [self.fill(yes)?, self.fill(no)?];
                (is_argument && fills == [Fill::Nan, Fill::Zero]).then_some(Fill::Either(flag))
            }
            _ => None,
        }
    }

    /// The access of a store or an atomic operation, if a copy out of shared memory can write so.
    pub fn stored(&mut self, op: Op) -> Result<BoxAccess, Refusal> {
        let access = self.access(op, self.kernel.mask(op))?;
        if access.inner != 1 || access.axes.iter().any(|axis| axis.modulus.is_some()) {
            return Err(Refusal::ColumnMajorStore);
        }
        if access.descriptor.is_none() && !self.ends_whole(op, &access) {
            return Err(Refusal::StoreRowEnd);
        }
        Ok(access)
    }

    /// The access of a load or store where `mask` holds.
    pub fn access(&mut self, op: Op, mask: Option<Value>) -> Result<BoxAccess, Refusal> {
        let by_host = self.access_by(op, mask, None);
        let promises = |axis| promises::promises_rows(self.kernel, op, axis, ALIGN);
        let is_promised = || [0, 1].into_iter().any(promises);
        if by_host.is_ok() || promises::promised_pointers(self.kernel, op, ALIGN).is_empty() && !is_promised() {
            return by_host;
        }
        self.access_by(op, mask, Some(op))
    }

    /// The same by a map that the host makes, or that the kernel makes for the operation `made`.
    fn access_by(&mut self, op: Op, mask: Option<Value>, made: Option<Op>) -> Result<BoxAccess, Refusal> {
        self.access_by_forms(op, mask, made).or_else(|reason| {
            std::mem::swap(&mut self.affine, &mut self.exact);
            let access = self.access_by_forms(op, mask, made);
            std::mem::swap(&mut self.affine, &mut self.exact);
            access.map_err(|_| reason)
        })
    }

    fn access_by_forms(&mut self, op: Op, mask: Option<Value>, made: Option<Op>) -> Result<BoxAccess, Refusal> {
        let mask = mask.map(|mask| self.affine.bounds(mask)).unwrap_or_default();
        if !mask.others.is_empty() {
            return Err(Refusal::MaskForm);
        }
        let pointer = self.kernel.operand(op, 0);
        let address = self.affine.address(pointer, Some(&mask)).ok_or(Refusal::NotAffine)?;
        let settled = made.and_then(|_| self.as_settled(&address, &mask));
        let others = [as_compared(&address, &mask), settled].into_iter().flatten().filter(|other| *other != address);
        let others: Vec<Address> = others.collect();
        let access = self.access_at(op, &mask, address, made);
        others.into_iter().fold(access, |access, other| {
            access.or_else(|reason| self.access_at(op, &mask, other, made).map_err(|_| reason))
        })
    }

    /// The address with offsets known before the loops moved to the base: an offset loaded from memory, such as that of
    /// one of several matrices in a buffer, looks like an index where the stride is 1.
    fn as_settled(&self, address: &Address, mask: &Mask) -> Option<Address> {
        let mut address = address.clone();
        for (number, axis) in address.axes.iter_mut().enumerate() {
            if axis.modulus.is_some() || axis.stride.value() != Some(1) || mask.along(number).next().is_some() {
                continue;
            }
            let is_settled = |term: &&Term| {
                let settled =
                    |symbol: &Symbol| matches!(symbol, Symbol::Scalar(value) if is_settled(self.kernel, *value));
                !term.symbols.is_empty() && term.symbols.iter().all(settled)
            };
            for term in axis.start.clone().terms().iter().filter(is_settled) {
                address.rest = address.rest.plus(&Poly::term(term.clone()), 1)?;
                axis.start = axis.start.plus(&Poly::term(term.clone()), -1)?;
            }
        }
        Some(address)
    }

    /// The access of a load or store to such addresses.
    fn access_at(&mut self, op: Op, mask: &Mask, address: Address, made: Option<Op>) -> Result<BoxAccess, Refusal> {
        let pointer = self.kernel.operand(op, 0);
        let base = address.pointer;
        let param = self.kernel.params.iter().find(|param| param.value == base && param.hidden.is_none());
        let elem = self.kernel.value_type(pointer).elem().and_then(|elem| elem.pointee()).ok_or(Refusal::NotMatrix)?;
        if elem == Scalar::I1 || address.axes.len() != 2 {
            return Err(Refusal::NotMatrix);
        }
        let inner = (0..2).rev().find(|axis| address.axes[*axis].stride.value() == Some(1));
        let rows = made.is_some() && inner.is_some_and(|inner| self.begin_whole(op, &address, inner, elem));
        let (start, outer) = match (made, param) {
            (Some(_), _) if !is_settled(self.kernel, base) || !self.is_known(&address.rest, made) => {
                return Err(Refusal::LoopVariantBase);
            }
            (Some(at), _)
                if !rows
                    && !self.is_hinted(base, &address.rest, elem, at)
                    && !self.is_promised_argument(base, &address.rest, elem, at) =>
            {
                return Err(Refusal::BaseUnpromised);
            }
            (Some(_), _) => (address.rest.clone(), Vec::new()),
            (None, None) => return Err(Refusal::BaseNotArgument),
            (None, Some(param)) if i128::from(param.divisible_by) % ALIGN != 0 => {
                return Err(Refusal::ArgumentUnpromised);
            }
            (None, Some(_)) => {
                let (start, outer) = self.outer(&address.rest)?;
                descriptors::with_constants(self.kernel, base, start, outer)
            }
        };
        let mut outer = self.bounded(outer, mask)?;
        let inner = inner.ok_or(Refusal::NoUnitStride)?;
        let lone = lone_row(self.kernel, &address, inner, &mut outer);
        let row = lone.as_ref().map_or(&address.axes[1 - inner].stride, |row| &row.stride);
        if !self.is_known(row, made) || row.value() == Some(0) {
            return Err(if self.is_found_out(row) { NO_PROMISE } else { Refusal::StrideUnknown });
        }
        if row.terms().iter().all(|term| term.factor < 0) {
            return Err(Refusal::StrideNegative);
        }
        let strides = outer.iter().map(|outer| &outer.stride);
        let starts = Some(&start).filter(|_| made.is_none());
        if !rows && strides.chain([row]).chain(starts).any(|stride| !self.is_multiple_at(stride, elem, made)) {
            return Err(NO_PROMISE);
        }
        let mut axes = Vec::new();
        for (number, axis) in address.axes.iter().enumerate() {
            if let Some(row) = lone.as_ref().filter(|_| number != inner) {
                axes.push(row.clone());
                continue;
            }
            let modulus = axis.modulus.as_ref().map(|form| form.poly.clone());
            let (sizes, from_zero) = self.sizes(&axis.start, number, mask, modulus.as_ref())?;
            if sizes.iter().any(|size| !self.is_known(size, made) || made.is_some() && !self.is_size(size)) {
                return Err(Refusal::SizeUnknown);
            }
            axes.push(BoxAxis { index: axis.start.clone(), stride: axis.stride.clone(), sizes, modulus, from_zero });
        }
        let is_made = made.is_some();
        let mut access = BoxAccess { base, start, outer, axes, inner, fill: Fill::Zero, descriptor: None, is_made };
        if !is_made {
            let block = self.kernel.value_type(pointer).shape().ok_or(Refusal::NotMatrix)?;
            access.descriptor = descriptors::of_argument(self.kernel, &mut access, block)?;
        }
        let is_load = matches!(self.kernel.kind(op), OpKind::Load { .. });
        access.check_signs(is_load && !is_made && access.descriptor.is_none())?;
        // A program with descriptors is written for TMA, with coordinates that it accepts.
        if access.descriptor.is_none() {
            self.is_taken(op, &access, elem)?;
        }
        Ok(access)
    }

    /// Whether the hardware accepts a box with this start: at a multiple of 16 bytes in its row, and, if it is stored,
    /// not before the tensor, whatever the mask excludes. (Stores through descriptors promise that; maps made in the
    /// kernel belong to descriptors or to groups, whose tiles have no such masks.)
    fn is_taken(&self, op: Op, access: &BoxAccess, elem: Scalar) -> Result<(), Refusal> {
        let inner = &access.axes[access.inner];
        let is_multiple = |poly: &Poly| self.is_aligned(poly, elem);
        if !is_multiple(&inner.index) || !inner.modulus.as_ref().is_none_or(is_multiple) {
            return Err(Refusal::BoxStart);
        }
        let is_promised = matches!(self.kernel.kind(op), OpKind::Load { .. } | OpKind::Store { descriptor: true, .. });
        if !is_promised && !access.is_made && !self.begins_inside(access)? {
            return Err(Refusal::StoreStart);
        }
        Ok(())
    }

    /// Whether no place is negative at which a box begins.
    pub fn begins_inside(&self, access: &BoxAccess) -> Result<bool, Refusal> {
        access.dimensions().try_fold(true, |inside, axis| Ok(inside && self.coordinate(&axis.index)?.low >= 0))
    }
}

/// The address with dimensions that start where their masks start; the rest of their indices belongs to the base.
fn as_compared(address: &Address, mask: &Mask) -> Option<Address> {
    let mut address = address.clone();
    for (number, axis) in address.axes.iter_mut().enumerate().filter(|(_, axis)| axis.modulus.is_none()) {
        let start = mask.along(number).find_map(|bound| {
            let (by, start) = bound.offset.split(Symbol::Dim(number as u8))?;
            (by.value() == Some(1)).then_some(start)
        });
        let Some(start) = start else { continue };
        let besides = axis.start.plus(&start, -1)?.times(&axis.stride)?;
        address.rest = address.rest.plus(&besides, 1)?;
        axis.start = start;
    }
    Some(address)
}
