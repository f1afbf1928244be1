//! Types of the tile IR: small `Copy` values.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use crate::{BlockPtrType, DescType, LayoutId, SharedLayoutId};

/// The highest rank of a tile.
pub const MAX_RANK: usize = rtc_layout::MAX_RANK;

/// The most elements that a tile may have.
pub const MAX_TILE_ELEMENTS: u64 = 1 << 20;

/// A number type. Integers carry no sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// Truth value; one byte in memory.
    I1,
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// E5M2, bias 15, with infinities.
    F8E5,
    /// E4M3FN, bias 7, without infinities.
    F8E4,
    /// E4M3, bias 15, without infinities and NaN.
    F8E4B15,
    /// IEEE half.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
}

impl Scalar {
    /// Every scalar type.
    pub const ALL: [Scalar; 12] = [
        Scalar::I1,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::F8E5,
        Scalar::F8E4,
        Scalar::F8E4B15,
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
    ];

    /// Width in bits (1 for `I1`).
    pub fn bits(self) -> u32 {
        match self {
            Scalar::I1 => 1,
            Scalar::I8 | Scalar::F8E5 | Scalar::F8E4 | Scalar::F8E4B15 => 8,
            Scalar::I16 | Scalar::F16 | Scalar::BF16 => 16,
            Scalar::I32 | Scalar::F32 => 32,
            Scalar::I64 | Scalar::F64 => 64,
        }
    }

    /// Size in memory in bytes (1 for `I1`).
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether it is an integer type, `I1` included.
    pub fn is_int(self) -> bool {
        matches!(self, Scalar::I1 | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// Whether it is a float type, 8-bit formats included.
    pub fn is_float(self) -> bool {
        !self.is_int()
    }

    /// Whether it is an 8-bit float format.
    pub fn is_fp8(self) -> bool {
        matches!(self, Scalar::F8E5 | Scalar::F8E4 | Scalar::F8E4B15)
    }

    fn name(self) -> &'static str {
        match self {
            Scalar::I1 => "i1",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::F8E5 => "f8e5",
            Scalar::F8E4 => "f8e4",
            Scalar::F8E4B15 => "f8e4b15",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scalar {
    type Err = ();
    fn from_str(s: &str) -> Result<Scalar, ()> {
        Scalar::ALL.into_iter().find(|x| x.name() == s).ok_or(())
    }
}

/// The type of a scalar, or of a tile's elements: a number or a pointer to global memory.
///
/// A pointer to pointers has the pointee `I64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elem {
    /// A number.
    Num(Scalar),
    /// A pointer to numbers in global memory.
    Ptr(Scalar),
}

impl Elem {
    /// Truth value.
    pub const I1: Elem = Elem::Num(Scalar::I1);
    /// 8-bit integer.
    pub const I8: Elem = Elem::Num(Scalar::I8);
    /// 16-bit integer.
    pub const I16: Elem = Elem::Num(Scalar::I16);
    /// 32-bit integer.
    pub const I32: Elem = Elem::Num(Scalar::I32);
    /// 64-bit integer.
    pub const I64: Elem = Elem::Num(Scalar::I64);
    /// IEEE half.
    pub const F16: Elem = Elem::Num(Scalar::F16);
    /// bfloat16.
    pub const BF16: Elem = Elem::Num(Scalar::BF16);
    /// IEEE single.
    pub const F32: Elem = Elem::Num(Scalar::F32);
    /// IEEE double.
    pub const F64: Elem = Elem::Num(Scalar::F64);

    /// Width in bits: 64 for pointers.
    pub fn bits(self) -> u32 {
        match self {
            Elem::Num(s) => s.bits(),
            Elem::Ptr(_) => 64,
        }
    }

    /// Size in memory in bytes.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// The number type, unless it is a pointer.
    pub fn num(self) -> Option<Scalar> {
        match self {
            Elem::Num(s) => Some(s),
            Elem::Ptr(_) => None,
        }
    }

    /// The pointee of a pointer.
    pub fn pointee(self) -> Option<Scalar> {
        match self {
            Elem::Num(_) => None,
            Elem::Ptr(s) => Some(s),
        }
    }

    /// Whether it is an integer, `I1` included.
    pub fn is_int(self) -> bool {
        self.num().is_some_and(Scalar::is_int)
    }

    /// Whether it is a float.
    pub fn is_float(self) -> bool {
        self.num().is_some_and(Scalar::is_float)
    }

    /// Whether it is a pointer.
    pub fn is_ptr(self) -> bool {
        matches!(self, Elem::Ptr(_))
    }
}

impl From<Scalar> for Elem {
    fn from(s: Scalar) -> Elem {
        Elem::Num(s)
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Num(s) => write!(f, "{s}"),
            Elem::Ptr(s) => write!(f, "ptr<{s}>"),
        }
    }
}

impl FromStr for Elem {
    type Err = ();
    fn from_str(s: &str) -> Result<Elem, ()> {
        match s.strip_prefix("ptr<").and_then(|s| s.strip_suffix('>')) {
            Some(inner) => Ok(Elem::Ptr(inner.parse()?)),
            None => Ok(Elem::Num(s.parse()?)),
        }
    }
}

/// Sizes of a tile, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    rank: u8,
    dims: [u32; MAX_RANK],
}

impl Shape {
    /// The shape with these sizes; `None` if there are more than [`MAX_RANK`].
    pub fn new(dims: &[u32]) -> Option<Shape> {
        if dims.len() > MAX_RANK {
            return None;
        }
        let mut all = [0; MAX_RANK];
        all[..dims.len()].copy_from_slice(dims);
        Some(Shape { rank: dims.len() as u8, dims: all })
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Product of the sizes.
    pub fn numel(&self) -> u64 {
        self.iter().fold(1, |n: u64, d| n.saturating_mul(u64::from(*d)))
    }

    /// The shape without dimension `axis`.
    pub fn without(&self, axis: usize) -> Shape {
        let mut dims = self.to_vec();
        dims.remove(axis);
        Shape::new(&dims).unwrap_or(*self)
    }

    /// The shape with a dimension of `size` put before `axis`; `None` if the rank gets too high.
    pub fn with(&self, axis: usize, size: u32) -> Option<Shape> {
        let mut dims = self.to_vec();
        dims.insert(axis, size);
        Shape::new(&dims)
    }

    /// The row-major strides in elements.
    pub fn strides(&self) -> [usize; MAX_RANK] {
        let mut strides = [0; MAX_RANK];
        let mut step = 1;
        for i in (0..self.rank()).rev() {
            strides[i] = step;
            step *= self.dims[i] as usize;
        }
        strides
    }
}

impl Deref for Shape {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        &self.dims[..self.rank as usize]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { "x" } else { "" })?;
        }
        Ok(())
    }
}

/// A tile: element, shape, and from phase `Laid` on the layout that spreads it over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileType {
    /// Element.
    pub elem: Elem,
    /// Sizes, each a power of two.
    pub shape: Shape,
    /// Which thread and register hold which element.
    pub layout: Option<LayoutId>,
}

/// The most slots that a ring of buffers or barriers may have.
pub const MAX_SLOTS: u32 = 1024;

/// A buffer in shared memory: a ring of slots of one tile each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedType {
    /// Element.
    pub elem: Elem,
    /// Sizes of a slot. Those of a buffer that holds no tile need not be powers of two.
    pub shape: Shape,
    /// Where the elements of a slot lie; row-major without swizzle if there is none.
    pub layout: Option<SharedLayoutId>,
    /// How many slots there are; they lie one after the other.
    pub slots: u32,
}

impl SharedType {
    /// A buffer with one slot, row-major.
    pub fn plain(elem: Elem, shape: Shape) -> SharedType {
        SharedType { elem, shape, layout: None, slots: 1 }
    }

    /// The size of a slot in bytes.
    pub fn slot_bytes(&self) -> u64 {
        self.shape.numel().saturating_mul(u64::from(self.elem.bytes()))
    }

    /// The bytes from one slot of a ring to the next: tiles that are copied by descriptors start at multiples of 128,
    /// and larger ones at multiples of their own alignment.
    pub fn slot_stride(&self) -> u64 {
        if self.slots > 1 { self.slot_bytes().next_multiple_of(128) } else { self.slot_bytes() }
    }

    /// The size of all slots in bytes.
    pub fn bytes(&self) -> u64 {
        self.slot_stride().saturating_mul(u64::from(self.slots))
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// One number or pointer, the same in every thread.
    Scalar(Elem),
    /// A tile spread over the threads of the block.
    Tile(TileType),
    /// A buffer in shared memory.
    Shared(SharedType),
    /// A ring of barriers in shared memory (`mbarrier`).
    Barrier {
        /// How many there are.
        slots: u32,
    },
    /// A tensor descriptor: how accesses to whole blocks find a tensor in global memory.
    Desc(DescType),
    /// A pointer to a block of a tensor in global memory; in phase `Tile` only.
    BlockPtr(BlockPtrType),
    /// A group of asynchronous copies, for `copy_await`; it takes no registers, and `insert-waits` removes it.
    Token,
}

impl Type {
    /// The tile `elem` of `shape` without layout.
    pub fn tile(elem: Elem, shape: Shape) -> Type {
        Type::Tile(TileType { elem, shape, layout: None })
    }

    /// The element of a scalar, tile or buffer.
    pub fn elem(self) -> Option<Elem> {
        match self {
            Type::Scalar(e) => Some(e),
            Type::Tile(t) => Some(t.elem),
            Type::Shared(s) => Some(s.elem),
            Type::Barrier { .. } | Type::Desc(_) | Type::BlockPtr(_) | Type::Token => None,
        }
    }

    /// The tile type, if it is one.
    pub fn as_tile(self) -> Option<TileType> {
        match self {
            Type::Tile(t) => Some(t),
            _ => None,
        }
    }

    /// The type of a buffer in shared memory, if it is one.
    pub fn as_shared(self) -> Option<SharedType> {
        match self {
            Type::Shared(s) => Some(s),
            _ => None,
        }
    }

    /// Whether it refers to shared memory: a buffer or barriers.
    pub fn is_place(self) -> bool {
        matches!(self, Type::Shared(_) | Type::Barrier { .. })
    }

    /// The shape of a tile; `None` for everything else.
    pub fn shape(self) -> Option<Shape> {
        self.as_tile().map(|t| t.shape)
    }

    /// The layout of a tile that has one.
    pub fn layout(self) -> Option<LayoutId> {
        self.as_tile().and_then(|t| t.layout)
    }

    /// The same type with another element.
    pub fn with_elem(self, elem: Elem) -> Type {
        match self {
            Type::Scalar(_) => Type::Scalar(elem),
            Type::Tile(t) => Type::Tile(TileType { elem, ..t }),
            Type::Shared(s) => Type::Shared(SharedType { elem, ..s }),
            Type::Barrier { .. } | Type::Desc(_) | Type::BlockPtr(_) | Type::Token => self,
        }
    }

    /// The same type with another layout (tiles only).
    pub fn with_layout(self, layout: Option<LayoutId>) -> Type {
        match self {
            Type::Tile(t) => Type::Tile(TileType { layout, ..t }),
            _ => self,
        }
    }

    /// The same type without layout.
    pub fn without_layout(self) -> Type {
        self.with_layout(None)
    }
}

impl From<Elem> for Type {
    fn from(e: Elem) -> Type {
        Type::Scalar(e)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(e) => write!(f, "{e}"),
            Type::Tile(t) => match t.layout {
                Some(l) => write!(f, "tile<{}x{}, #{l}>", t.shape, t.elem),
                None => write!(f, "tile<{}x{}>", t.shape, t.elem),
            },
            Type::Shared(s) => {
                write!(f, "shared<{}x{}", s.shape, s.elem)?;
                if let Some(layout) = s.layout {
                    write!(f, ", #{layout}")?;
                }
                if s.slots != 1 {
                    write!(f, ", {}", s.slots)?;
                }
                f.write_str(">")
            }
            Type::Barrier { slots } => write!(f, "barrier<{slots}>"),
            Type::Desc(desc) => desc.fmt(f),
            Type::BlockPtr(block) => block.fmt(f),
            Type::Token => f.write_str("token"),
        }
    }
}
