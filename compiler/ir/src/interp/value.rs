//! Values, and the placement of tiles in registers.
//!
//! A tile is a list of *slots*: its elements in row-major order, or (storage `Registers`) one per register of each
//! thread, `(warp * 32 + lane) * registers + register`. Element-wise operations are the same for both.

use std::rc::Rc;

use rtc_layout::Layout;

use super::blocks::View;
use super::buffers::BufferView;
use super::machine::{Machine, Stop};
use super::shared::BarrierRing;
use super::{DescArg, FaultKind, SharedError, Storage};
use crate::{Type, Value};

/// The content of a value at run time.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// The bits of a scalar.
    Scalar(u64),
    /// The slots of a tile. In combine blocks also one scalar for each of many evaluations.
    Many(Rc<Vec<u64>>),
    /// Slots of a buffer, or a part of each.
    Buffer(BufferView),
    /// Barriers.
    Barriers(BarrierRing),
    /// A tensor descriptor.
    Desc(Rc<DescArg>),
    /// A descriptor that the kernel made, or a block pointer.
    View(Rc<View>),
    /// The slots of an accumulator of the product with this number, which must be waited for.
    Sums(u64, Rc<Vec<u64>>),
    /// The group of copies with this number, counted from 1.
    Group(u64),
    /// Nothing.
    Nothing,
}

impl Data {
    pub(crate) fn many(slots: Vec<u64>) -> Data {
        Data::Many(Rc::new(slots))
    }

    /// Slot `index`; scalars are the same everywhere.
    pub(crate) fn slot(&self, index: usize) -> u64 {
        match self {
            Data::Scalar(bits) => *bits,
            Data::Many(slots) | Data::Sums(_, slots) => slots[index],
            Data::Buffer(_) | Data::Barriers(_) | Data::Desc(_) | Data::View(_) | Data::Group(_) | Data::Nothing => 0,
        }
    }
}

/// Where the elements of a tile are.
#[derive(Debug)]
pub(crate) struct Placement {
    /// The element in each slot.
    pub(crate) element: Vec<u32>,
    /// For each element the slot that is not a copy.
    pub(crate) owner: Vec<u32>,
}

impl Placement {
    pub(crate) fn of(layout: &Layout) -> Placement {
        let copies = layout.copies();
        let mut element = Vec::new();
        let mut owner = vec![0; layout.elements() as usize];
        for warp in 0..layout.warps() {
            for lane in 0..layout.lanes() {
                for register in 0..layout.registers() {
                    let index = layout.index(register, lane, warp);
                    if register & copies.registers == 0 && lane & copies.lanes == 0 && warp & copies.warps == 0 {
                        owner[index as usize] = element.len() as u32;
                    }
                    element.push(index);
                }
            }
        }
        Placement { element, owner }
    }
}

impl Machine<'_> {
    /// How tiles of type `ty` are placed; `None` for scalars and for whole tiles.
    pub(crate) fn placement(&mut self, ty: Type) -> Option<Rc<Placement>> {
        if self.storage == Storage::Tiles {
            return None;
        }
        let id = ty.layout()?;
        let layout = self.kernel.layout(id);
        Some(self.placements.entry(id).or_insert_with(|| Rc::new(Placement::of(layout))).clone())
    }

    /// How many slots a tile of type `ty` has.
    pub(crate) fn slots(&mut self, ty: Type) -> usize {
        match self.placement(ty) {
            Some(placement) => placement.element.len(),
            None => ty.shape().map_or(1, |s| s.numel() as usize),
        }
    }

    /// The same bits in all of a value of type `ty`.
    pub(crate) fn fill(&mut self, ty: Type, bits: u64) -> Data {
        match ty {
            Type::Tile(_) => Data::many(vec![bits; self.slots(ty)]),
            _ => Data::Scalar(bits),
        }
    }

    /// The elements of a tile in row-major order. Copies must agree.
    pub(crate) fn elements(&mut self, value: Value) -> Result<Rc<Vec<u64>>, Stop> {
        self.elements_of(self.kernel.value_type(value), self.get(value))
    }

    /// The elements of what a value of type `ty` holds.
    pub(crate) fn elements_of(&mut self, ty: Type, data: Data) -> Result<Rc<Vec<u64>>, Stop> {
        let slots = match data {
            Data::Many(slots) => slots,
            Data::Scalar(bits) => return Ok(Rc::new(vec![bits])),
            Data::Sums(..) => return Err(self.stop(FaultKind::Shared(SharedError::SumUnderWay))),
            Data::Buffer(_) | Data::Barriers(_) | Data::Desc(_) | Data::View(_) | Data::Group(_) | Data::Nothing => {
                return Ok(Rc::new(Vec::new()));
            }
        };
        let Some(placement) = self.placement(ty) else { return Ok(slots) };
        for (slot, element) in placement.element.iter().enumerate() {
            if slots[slot] != slots[placement.owner[*element as usize] as usize] {
                let text = format!("threads hold different values for element {element} of an operand");
                return Err(self.stop(FaultKind::Layout(text)));
            }
        }
        Ok(Rc::new(placement.owner.iter().map(|slot| slots[*slot as usize]).collect()))
    }

    /// A value of type `ty` with these elements in row-major order.
    pub(crate) fn place(&mut self, ty: Type, elements: Vec<u64>) -> Data {
        if !matches!(ty, Type::Tile(_)) {
            return Data::Scalar(elements.first().copied().unwrap_or(0));
        }
        match self.placement(ty) {
            Some(placement) => Data::many(placement.element.iter().map(|e| elements[*e as usize]).collect()),
            None => Data::many(elements),
        }
    }

    /// For operations with an effect per element: one slot per element, in row-major order.
    pub(crate) fn owners(&mut self, ty: Type) -> Vec<u32> {
        match self.placement(ty) {
            Some(placement) => placement.owner.clone(),
            None => (0..self.slots(ty) as u32).collect(),
        }
    }

    /// The coordinate of the element in a slot, for reports.
    pub(crate) fn coordinate(&mut self, ty: Type, slot: usize) -> Option<Vec<u32>> {
        let shape = ty.shape()?;
        let index = self.placement(ty).map_or(slot as u32, |p| p.element[slot]);
        Some(crate::layout_rules::unflatten(index, &shape).0[..shape.rank()].to_vec())
    }
}
