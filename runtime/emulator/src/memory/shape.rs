//! Shapes of tensors in global memory: which bytes of an allocation are elements.

use super::Memory;

/// A tensor that lies in an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// First address of the allocation.
    pub base: u64,
    /// First address of the tensor.
    start: u64,
    /// Sizes and distances in bytes, the largest distance first.
    axes: Vec<(u64, u64)>,
    /// Bytes of an element.
    element: u64,
    /// End of the last element.
    end: u64,
}

impl Shape {
    /// Whether a byte belongs to an element, or else the index of the row that ended before it and the bytes since.
    fn locate(&self, address: u64) -> Result<(), (Vec<u64>, u64)> {
        let mut rest = address - self.start;
        let mut index = Vec::new();
        for (size, stride) in &self.axes {
            let i = rest.checked_div(*stride).unwrap_or(0).min(size - 1);
            index.push(i);
            rest -= i * stride;
        }
        if rest < self.element { Ok(()) } else { Err((index, rest - self.element)) }
    }
}

impl Memory {
    /// Declares a tensor at an address: `sizes` elements by dimension, `strides` in elements, `element` bytes each.
    /// With the sanitizer an access between its rows is reported. Several tensors may share an allocation; false if the
    /// tensor is not within one, or has a negative or overlapping stride, which is not supported.
    pub fn set_shape(&mut self, start: u64, sizes: &[u64], strides: &[i64], element: u64) -> bool {
        let mut axes = Vec::new();
        for (size, stride) in sizes.iter().zip(strides).filter(|(size, _)| **size > 1) {
            let Some(stride) = u64::try_from(*stride).ok().and_then(|s| s.checked_mul(element)) else { return false };
            axes.push((*size, stride));
        }
        axes.sort_by_key(|(_, stride)| std::cmp::Reverse(*stride));
        let mut inner = element;
        for (size, stride) in axes.iter().rev() {
            if *stride < inner {
                return false;
            }
            let Some(extent) = stride.checked_mul(size - 1).and_then(|n| n.checked_add(inner)) else { return false };
            inner = extent;
        }
        let Some(i) = self.find(start, inner).filter(|_| !sizes.contains(&0)) else { return false };
        let base = self.allocations[i].base;
        let shape = Shape { base, start, axes, element, end: start + inner };
        if !self.shapes.contains(&shape) {
            self.shapes.push(shape);
        }
        true
    }

    /// Whether any tensor has a shape.
    pub(crate) fn has_shapes(&self) -> bool {
        !self.shapes.is_empty()
    }

    /// The error of an access within an allocation that has shapes; `None` if all its bytes are elements.
    pub(crate) fn outside_shape(&self, address: u64, bytes: u32) -> Option<String> {
        let allocation = &self.allocations[self.find(address, bytes.into())?];
        let mut shapes = self.shapes.iter().filter(|shape| shape.base == allocation.base).peekable();
        shapes.peek()?;
        let elements: Vec<u64> =
            shapes.clone().map(|shape| shape.axes.iter().map(|(size, _)| size).product()).collect();
        let outside = |at: u64| {
            let mut nearest = None;
            for shape in shapes.clone().filter(|shape| at >= shape.start) {
                if at >= shape.end {
                    nearest.get_or_insert((at - shape.end, Vec::new()));
                    continue;
                }
                match shape.locate(at) {
                    Ok(()) => return None,
                    Err((index, past)) => nearest = Some((past, index)),
                }
            }
            Some(nearest)
        };
        let nearest = (address..address + u64::from(bytes)).find_map(outside)?;
        let name = &allocation.name;
        let Some((past, index)) = nearest.clone().filter(|(_, index): &(u64, Vec<u64>)| !index.is_empty()) else {
            let place = match nearest {
                Some((past, _)) => format!("{past} bytes past the last"),
                None => "before the first".to_owned(),
            };
            let count = match &elements[..] {
                [count] => format!("its {count} elements"),
                _ => "the elements of its views".to_owned(),
            };
            return Some(format!(
                "is in the allocation of `{name}` ({} bytes), but {place} of {count}; without the sanitizer, and on a GPU, it \
                 reaches what else lies there",
                allocation.bytes
            ));
        };
        // The last index is that of the innermost dimension, where the row ended.
        let row: Vec<String> = index[..index.len() - 1].iter().map(u64::to_string).collect();
        let row = if row.is_empty() { String::new() } else { format!(" {}", row.join(", ")) };
        Some(format!("is in `{name}`, but {past} bytes past the end of row{row}"))
    }
}
