//! The memory of a launch from a file.
#![allow(unsafe_code)]

use crate::{Result, Tensor, Tensors};
use rtc_runtime::{Buffer, Device, SliceMut};
use rtc_source::json_fields::FieldError;
use std::ops::Range;

/// Where a tensor argument points to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) tensor: String,
    pub(crate) view_of: Option<String>,
    pub(crate) offset: u64,
    /// Sizes and strides in elements, for the sanitizer.
    pub(crate) shape: Option<(Vec<u64>, Vec<i64>)>,
    /// The bytes of the tensor that are uninitialized before the launch.
    pub(crate) undefined: Undefined,
}

impl Place {
    /// A tensor of its own, initialized.
    pub(crate) fn whole(tensor: &str) -> Place {
        let undefined = Undefined::Ranges(Vec::new());
        Place { tensor: tensor.to_owned(), view_of: None, offset: 0, shape: None, undefined }
    }
}

/// Uninitialized bytes.
#[derive(Clone, Debug)]
pub(crate) enum Undefined {
    /// These of the tensor.
    Ranges(Vec<Range<u64>>),
    /// The whole allocation.
    Whole,
}

/// The allocations of a launch: one per tensor, or one per group of views.
#[derive(Default)]
pub(crate) struct Storages {
    storages: Vec<Storage>,
    /// Tensor, index of its storage, offset there.
    placed: Vec<(String, usize, u64)>,
    shapes: Vec<Shape>,
}

/// A tensor with gaps between its rows.
struct Shape {
    /// Index of its storage, and where in it.
    place: (usize, u64),
    sizes: Vec<u64>,
    /// In elements.
    strides: Vec<i64>,
    /// Bytes of an element.
    element: u64,
}

struct Storage {
    name: String,
    bytes: u64,
    buffer: Option<Buffer>,
    undefined: Vec<Range<u64>>,
}

impl Storages {
    /// Notes where the tensor of an argument lies.
    pub(crate) fn collect(
        &mut self,
        place: &Place,
        path: String,
        tensors: &Tensors,
    ) -> std::result::Result<(), FieldError> {
        let Some(tensor) = tensors.get(&place.tensor) else {
            let message = format!("the tensors file has no `{}`; it has {}", place.tensor, tensors.names().join(", "));
            return Err(FieldError { path: format!("{path}.tensor"), message });
        };
        let bytes = tensor.data.len() as u64;
        let at = if place.view_of.is_some() { place.offset } else { 0 };
        if place.view_of.is_none() && place.offset > bytes {
            let message = format!("{} lies past the end of tensor `{}` ({bytes} bytes)", place.offset, place.tensor);
            return Err(FieldError { path: format!("{path}.offset"), message });
        }
        // A limit that no device has, so that sums below cannot overflow.
        if at > 1 << 48 {
            return Err(FieldError { path: format!("{path}.offset"), message: format!("{at} is too large") });
        }
        let name = place.view_of.as_ref().unwrap_or(&place.tensor);
        let storage = self.storages.iter().position(|s| s.name == *name).unwrap_or_else(|| {
            let bytes = tensors.get(name).map_or(0, |t| t.data.len() as u64);
            self.storages.push(Storage { name: name.clone(), bytes, buffer: None, undefined: Vec::new() });
            self.storages.len() - 1
        });
        let end = &mut self.storages[storage].bytes;
        *end = (*end).max(at + bytes);
        let undefined = &mut self.storages[storage].undefined;
        match &place.undefined {
            Undefined::Whole => undefined.push(0..u64::MAX),
            Undefined::Ranges(ranges) => {
                undefined.extend(ranges.iter().map(|r| r.start.saturating_add(at)..r.end.saturating_add(at)));
            }
        }
        if let Some((sizes, strides)) = &place.shape {
            let element = bytes.checked_div(tensor.shape.iter().map(|n| *n as u64).product()).unwrap_or(1);
            let start = if place.view_of.is_some() { at } else { place.offset };
            let (sizes, strides) = (sizes.clone(), strides.clone());
            self.shapes.push(Shape { place: (storage, start), sizes, strides, element: element.max(1) });
        }
        match self.placed.iter().find(|(name, ..)| *name == place.tensor) {
            Some((_, s, o)) if (*s, *o) == (storage, at) => {}
            Some(_) => {
                let message = format!("tensor `{}` is already placed elsewhere by another argument", place.tensor);
                return Err(FieldError { path, message });
            }
            None => self.placed.push((place.tensor.clone(), storage, at)),
        }
        Ok(())
    }

    pub(crate) fn allocate(&mut self, device: &Device, tensors: &Tensors) -> Result<()> {
        for (index, storage) in self.storages.iter_mut().enumerate() {
            let mut buffer = device.alloc_named(storage.bytes as usize, &storage.name)?;
            let own = tensors.get(&storage.name);
            let mut content = own.map_or(Vec::new(), |t| t.data.clone());
            content.resize(storage.bytes as usize, 0);
            for (name, _, at) in self.placed.iter().filter(|(_, s, _)| *s == index) {
                if let Some(tensor) = tensors.get(name) {
                    content[*at as usize..][..tensor.data.len()].copy_from_slice(&tensor.data);
                }
            }
            for range in defined(&mut storage.undefined, storage.bytes) {
                buffer.write(range.start as usize, &content[range.start as usize..range.end as usize])?;
            }
            for shape in self.shapes.iter().filter(|shape| shape.place.0 == index) {
                buffer.set_sanitizer_shape(shape.place.1, &shape.sizes, &shape.strides, shape.element);
            }
            storage.buffer = Some(buffer);
        }
        Ok(())
    }

    /// What an argument points to; places were collected and allocated before.
    pub(crate) fn slice(&self, place: &Place) -> SliceMut<'_> {
        let name = place.view_of.as_ref().unwrap_or(&place.tensor);
        let storage = self.storages.iter().find(|s| s.name == *name).and_then(|s| s.buffer.as_ref());
        let buffer = storage.expect("every place is collected and allocated before arguments are resolved");
        // SAFETY: the file decides which tensors share memory, and with that what the kernel is tested for; nothing of it
        // reaches memory of this process.
        unsafe { SliceMut::aliasing(buffer.slice(place.offset as usize..)) }
    }

    pub(crate) fn read_back(&self, inputs: &Tensors) -> Result<Tensors> {
        let mut outputs = Tensors::default();
        for (name, tensor) in inputs.iter() {
            let placed = self.placed.iter().find(|(n, ..)| n == name).map(|(_, storage, at)| (*storage, *at));
            let as_storage = || self.storages.iter().position(|s| s.name == name).map(|s| (s, 0));
            let mut data = tensor.data.clone();
            if let Some((storage, at)) = placed.or_else(as_storage)
                && let Some(buffer) = &self.storages[storage].buffer
            {
                buffer.read(at as usize, &mut data)?;
            }
            outputs.insert(name, Tensor { data, ..tensor.clone() });
        }
        Ok(outputs)
    }
}

/// What lies between ranges, of so many bytes.
fn defined(undefined: &mut [Range<u64>], bytes: u64) -> Vec<Range<u64>> {
    undefined.sort_by_key(|range| range.start);
    let (mut found, mut from) = (Vec::new(), 0);
    for range in undefined.iter().filter(|range| range.start < range.end) {
        if range.start > from {
            found.push(from..range.start.min(bytes));
        }
        from = from.max(range.end);
    }
    if from < bytes {
        found.push(from..bytes);
    }
    found.retain(|range| range.start < range.end);
    found
}
