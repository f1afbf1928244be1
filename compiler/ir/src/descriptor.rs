//! Types of tensor descriptors and of block pointers.

use std::fmt;

use rtc_layout::SharedLayout;

use crate::{Elem, MAX_TILE_ELEMENTS, Scalar, Shape};

/// A tensor descriptor: the properties of a tensor in global memory for accesses to whole blocks. Those that are
/// parameters are tensor maps, whose blocks are TMA boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DescType {
    /// Element.
    pub elem: Scalar,
    /// Sizes of the block that one access moves, outermost first.
    pub shape: Shape,
    /// Width of the swizzle in shared memory in bytes, 0 for none.
    pub swizzle: u32,
}

/// The most dimensions of a tensor.
const MOST_DIMENSIONS: usize = 5;
/// The largest size of a box.
pub const LARGEST_BOX_SIZE: u32 = 256;

/// A block pointer: where a block of a tensor in global memory starts, and how its elements are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockPtrType {
    /// Element.
    pub elem: Scalar,
    /// Sizes of the block, outermost first.
    pub shape: Shape,
}

impl DescType {
    /// Whether a tensor map can have such boxes; why not.
    pub fn check_box(&self) -> Result<(), String> {
        self.check()?;
        if self.shape.iter().any(|d| *d > LARGEST_BOX_SIZE) {
            return Err(format!("{self}: sizes of a box are powers of two up to {LARGEST_BOX_SIZE}"));
        }
        Ok(())
    }

    /// Whether there are such blocks; why not.
    pub fn check(&self) -> Result<(), String> {
        let DescType { elem, shape, swizzle } = *self;
        let fail = |what: &str| Err(format!("{self}: {what}"));
        if !(1..=MOST_DIMENSIONS).contains(&shape.rank()) {
            return fail("a tensor has 1 to 5 dimensions");
        }
        if shape.iter().any(|d| !d.is_power_of_two()) || shape.numel() > MAX_TILE_ELEMENTS {
            return fail("sizes of a block are powers of two");
        }
        if elem == Scalar::I1 {
            return fail("there are no tensors of `i1`");
        }
        let row = shape[shape.rank() - 1] * elem.bytes();
        if !row.is_multiple_of(16) {
            return fail("a row of a box is a multiple of 16 bytes");
        }
        match swizzle {
            0 => Ok(()),
            32 | 64 | 128 if row != swizzle => fail("a row of a box is as wide as the swizzle"),
            32 | 64 | 128 if shape.rank() < 2 || shape[shape.rank() - 2] < 8 => {
                fail("a swizzled box has 8 rows or more")
            }
            32 | 64 | 128 => Ok(()),
            _ => fail("a swizzle is 32, 64 or 128 bytes wide"),
        }
    }

    /// Where the elements of a box lie in shared memory.
    pub fn shared_layout(&self) -> SharedLayout {
        let order: Vec<u32> = (0..self.shape.rank() as u32).rev().collect();
        match self.swizzle {
            0 => SharedLayout::row_major(&self.shape),
            swizzle => SharedLayout::nvmma(&self.shape, self.elem.bits(), swizzle, &order),
        }
    }

    /// The type with the shape of a buffer that consists of several boxes.
    pub fn of_buffer(&self, buffer: &[u32]) -> DescType {
        let ones = self.shape.rank().saturating_sub(buffer.len());
        let shape: Vec<u32> = self.shape[..ones].iter().chain(buffer).copied().collect();
        DescType { shape: Shape::new(&shape).unwrap_or(self.shape), ..*self }
    }

    /// Where the boxes start that a buffer of this shape consists of, by its dimensions; the last dimension changes slowest.
    pub fn parts(&self, buffer: &[u32]) -> Vec<Vec<u32>> {
        let part = &self.shape[self.shape.rank().saturating_sub(buffer.len())..];
        let counts: Vec<u32> = buffer.iter().zip(part).map(|(whole, part)| whole / part).collect();
        let starts = (0..counts.iter().product()).map(|mut number: u32| {
            let along = |(count, part): (&u32, &u32)| {
                let at = number % count * part;
                number /= count;
                at
            };
            counts.iter().zip(part).map(along).collect()
        });
        starts.collect()
    }

    /// Whether a buffer with this layout consists of such boxes.
    pub fn fills(&self, layout: &SharedLayout) -> bool {
        let buffer = layout.shape();
        let Some(ones) = self.shape.rank().checked_sub(buffer.len()) else { return false };
        let (ones, part) = self.shape.split_at(ones);
        let Some(shape) = Shape::new(part) else { return false };
        let of_box = DescType { shape, ..*self }.shared_layout();
        let lies_so = |start: &Vec<u32>| layout.slice(start, part).is_some_and(|(_, slice)| slice == of_box);
        ones.iter().all(|size| *size == 1) && self.parts(buffer).iter().all(lies_so)
    }

    /// The bytes of a box.
    pub fn bytes(&self) -> u32 {
        self.shape.numel() as u32 * self.elem.bytes()
    }

    /// The alignment of a box in shared memory.
    pub fn align(&self) -> u32 {
        (8 * self.swizzle).max(128)
    }

    /// The type of an element.
    pub fn elem(&self) -> Elem {
        self.elem.into()
    }
}

impl fmt::Display for DescType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "desc<{}x{}", self.shape, self.elem)?;
        match self.swizzle {
            0 => f.write_str(">"),
            swizzle => write!(f, ", {swizzle}>"),
        }
    }
}

impl BlockPtrType {
    /// Whether there are such blocks; why not.
    pub fn check(&self) -> Result<(), String> {
        let shape = self.shape;
        let fits = shape.rank() > 0 && shape.iter().all(|d| d.is_power_of_two()) && shape.numel() <= MAX_TILE_ELEMENTS;
        if fits { Ok(()) } else { Err(format!("{self}: {shape} is no shape of a tile")) }
    }

    /// The type of an element.
    pub fn elem(&self) -> Elem {
        self.elem.into()
    }
}

impl fmt::Display for BlockPtrType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block_ptr<{}x{}>", self.shape, self.elem)
    }
}
