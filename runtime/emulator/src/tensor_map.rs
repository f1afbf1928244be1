//! Tensor maps: the description of a tensor in global memory for tiled bulk copies (TMA).
//!
//! A kernel takes one as a parameter of 128 bytes (`.param .align 64 .b8 map[128]`). The hardware's encoding is not
//! public, so the emulator has one of its own: a launcher on the emulator calls [`TensorMap::encode`] where it would
//! call `cuTensorMapEncodeTiled`, with the same numbers. A map may also start as zeros and be filled in by
//! `tensormap.replace`. Only tiled maps without interleave are supported.
//!
//! ```
//! use rtc_emulator::tensor_map::{ElementType, TensorMap};
//! // Rows of 64 halves, 100 of them, 128 bytes apart; boxes of 64 by 8.
//! let map = TensorMap::tiled(ElementType::F16, 0x7_0000_0000, &[64, 100], &[128], &[64, 8])?;
//! let bytes = TensorMap { swizzle: 128, ..map.clone() }.encode()?;
//! assert_eq!(TensorMap::decode(&bytes)?.swizzle, 128);
//! assert_eq!(map.box_bytes(), 64 * 8 * 2);
//! # Ok::<(), rtc_emulator::tensor_map::TensorMapError>(())
//! ```

/// Most dimensions of a tensor.
pub const MAX_RANK: usize = 5;
/// Most bytes of a box.
const MAX_BOX: u64 = 227 << 10;
/// Bytes of an encoded map.
pub const MAP_BYTES: usize = 128;

macro_rules! element_types {
    ($($name:ident = $code:literal, $bytes:literal, $text:literal;)*) => {
        /// Type of the elements, in the order of `CUtensorMapDataType`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is named as PTX spells it")]
        pub enum ElementType { $($name = $code,)* }

        impl ElementType {
            /// Every type.
            pub const ALL: &[ElementType] = &[$(ElementType::$name,)*];

            /// Size of one element in bytes.
            pub fn bytes(self) -> u32 {
                match self { $(ElementType::$name => $bytes,)* }
            }

            /// Its name, as `f16`.
            pub fn text(self) -> &'static str {
                match self { $(ElementType::$name => $text,)* }
            }
        }
    };
}

element_types! {
    U8 = 0, 1, "u8";
    U16 = 1, 2, "u16";
    U32 = 2, 4, "u32";
    S32 = 3, 4, "s32";
    U64 = 4, 8, "u64";
    S64 = 5, 8, "s64";
    F16 = 6, 2, "f16";
    F32 = 7, 4, "f32";
    F64 = 8, 8, "f64";
    Bf16 = 9, 2, "bf16";
    F32Ftz = 10, 4, "f32.ftz";
    Tf32 = 11, 4, "tf32";
    Tf32Ftz = 12, 4, "tf32.ftz";
}

impl ElementType {
    /// The type with a name.
    pub fn from_text(text: &str) -> Option<ElementType> {
        ElementType::ALL.iter().copied().find(|ty| ty.text() == text)
    }

    /// Whether the elements are floating-point numbers.
    pub fn is_float(self) -> bool {
        use ElementType::*;
        matches!(self, F16 | F32 | F64 | Bf16 | F32Ftz | Tf32 | Tf32Ftz)
    }
}

/// The value of elements outside the tensor in shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Zero.
    #[default]
    Zero,
    /// NaN; floating-point elements only.
    Nan,
}

/// A tiled tensor map; dimensions are innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Type of the elements.
    pub ty: ElementType,
    /// Address of the first element, a multiple of 16.
    pub address: u64,
    /// Elements in each dimension, 1 to 2^32; their number is the rank.
    pub dims: Vec<u64>,
    /// Bytes from one index to the next in the dimensions after the first, multiples of 16 below 2^40.
    pub strides: Vec<u64>,
    /// Elements of the box that one copy moves, 1 to 256 in each dimension.
    pub box_dims: Vec<u32>,
    /// Every how manyth element of the box is moved, 1 to 8; the first entry counts as 1.
    pub element_strides: Vec<u32>,
    /// Swizzle of the box in shared memory in bytes: 0 (none), 32, 64 or 128.
    pub swizzle: u32,
    /// The value outside the tensor.
    pub fill: Fill,
    /// L2 promotion in bytes: 0, 64, 128 or 256. No effect here.
    pub l2_promotion: u32,
}

/// A tensor map that the hardware would refuse; the text says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tensor map: {0}")]
pub struct TensorMapError(pub String);

type Result<T, E = TensorMapError> = std::result::Result<T, E>;

fn ensure(holds: bool, text: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(TensorMapError(text())) }
}

/// Offsets of the fields in the encoding.
pub(crate) mod field {
    /// The address, 8 bytes.
    pub const ADDRESS: usize = 0;
    /// Elements in each dimension, less one, 4 bytes each.
    pub const DIMS: usize = 8;
    /// Strides, 8 bytes each.
    pub const STRIDES: usize = 32;
    /// Box, 2 bytes each.
    pub const BOX: usize = 64;
    /// Element strides, 1 byte each.
    pub const ELEMENT_STRIDES: usize = 74;
    /// Rank less one.
    pub const RANK: usize = 79;
    /// Element type.
    pub const TYPE: usize = 80;
    /// Interleave, must be 0.
    pub const INTERLEAVE: usize = 81;
    /// 0, 1, 2, 3 for no swizzle, 32, 64, 128 bytes.
    pub const SWIZZLE: usize = 82;
    /// 1 for NaN.
    pub const FILL: usize = 83;
    /// 0, 1, 2, 3 for no promotion, 64, 128, 256 bytes.
    pub const L2: usize = 84;
    /// From here on all bytes are 0.
    pub const END: usize = 85;
}

impl TensorMap {
    /// A map without swizzle, element strides or NaN fill; set the fields that differ.
    pub fn tiled(ty: ElementType, address: u64, dims: &[u64], strides: &[u64], box_dims: &[u32]) -> Result<TensorMap> {
        let map = TensorMap {
            ty,
            address,
            dims: dims.to_vec(),
            strides: strides.to_vec(),
            box_dims: box_dims.to_vec(),
            element_strides: vec![1; dims.len()],
            swizzle: 0,
            fill: Fill::Zero,
            l2_promotion: 0,
        };
        map.check()?;
        Ok(map)
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Elements that a copy moves in a dimension.
    pub fn moved(&self, dimension: usize) -> u32 {
        let every = if dimension == 0 { 1 } else { self.element_strides[dimension] };
        self.box_dims[dimension].div_ceil(every)
    }

    /// Bytes that a box takes in shared memory, and that a load counts at its barrier.
    pub fn box_bytes(&self) -> u32 {
        (0..self.rank()).map(|i| self.moved(i)).product::<u32>() * self.ty.bytes()
    }

    /// The checks of `cuTensorMapEncodeTiled`.
    pub fn check(&self) -> Result<()> {
        let rank = self.rank();
        ensure((1..=MAX_RANK).contains(&rank), || format!("the rank is {rank}, not 1 to {MAX_RANK}"))?;
        ensure(self.strides.len() == rank - 1, || format!("{} strides for rank {rank}", self.strides.len()))?;
        ensure(self.box_dims.len() == rank && self.element_strides.len() == rank, || {
            format!("box or element strides are not of rank {rank}")
        })?;
        ensure(self.address.is_multiple_of(16), || format!("the address {:#x} is not a multiple of 16", self.address))?;
        for (i, dim) in self.dims.iter().enumerate() {
            ensure((1..=1 << 32).contains(dim), || format!("dimension {i} has {dim} elements, not 1 to 2^32"))?;
        }
        for (i, stride) in self.strides.iter().enumerate() {
            ensure(stride.is_multiple_of(16) && *stride < 1 << 40, || {
                format!("the stride of dimension {} is {stride} bytes, not a multiple of 16 below 2^40", i + 1)
            })?;
        }
        for (i, (n, every)) in self.box_dims.iter().zip(&self.element_strides).enumerate() {
            ensure((1..=256).contains(n), || format!("the box has {n} elements in dimension {i}, not 1 to 256"))?;
            ensure((1..=8).contains(every), || format!("the element stride of dimension {i} is {every}, not 1 to 8"))?;
        }
        let bytes = (0..rank).map(|i| u64::from(self.moved(i))).product::<u64>() * u64::from(self.ty.bytes());
        ensure(bytes <= MAX_BOX, || format!("the box has {bytes} bytes, more than shared memory"))?;
        let row = self.box_dims[0] * self.ty.bytes();
        ensure(row.is_multiple_of(16), || format!("a row of the box has {row} bytes, not a multiple of 16"))?;
        ensure(matches!(self.swizzle, 0 | 32 | 64 | 128), || format!("there is no swizzle of {} bytes", self.swizzle))?;
        ensure(self.swizzle == 0 || row <= self.swizzle, || {
            format!("a row of the box has {row} bytes, more than the {} of the swizzle", self.swizzle)
        })?;
        ensure(self.fill == Fill::Zero || self.ty.is_float(), || "NaN fill of integers".to_string())?;
        ensure(matches!(self.l2_promotion, 0 | 64 | 128 | 256), || {
            format!("there is no L2 promotion of {} bytes", self.l2_promotion)
        })
    }

    /// The bytes to pass as the kernel's parameter.
    pub fn encode(&self) -> Result<[u8; MAP_BYTES]> {
        self.check()?;
        let mut bytes = [0; MAP_BYTES];
        let mut put = |at: usize, value: u64, n: usize| bytes[at..at + n].copy_from_slice(&value.to_le_bytes()[..n]);
        put(field::ADDRESS, self.address, 8);
        for i in 0..self.rank() {
            put(field::DIMS + 4 * i, self.dims[i] - 1, 4);
            put(field::BOX + 2 * i, self.box_dims[i].into(), 2);
            put(field::ELEMENT_STRIDES + i, self.element_strides[i].into(), 1);
        }
        for (i, stride) in self.strides.iter().enumerate() {
            put(field::STRIDES + 8 * i, *stride, 8);
        }
        put(field::RANK, self.rank() as u64 - 1, 1);
        put(field::TYPE, self.ty as u64, 1);
        put(field::SWIZZLE, code_of(self.swizzle, 32).into(), 1);
        put(field::FILL, (self.fill == Fill::Nan).into(), 1);
        put(field::L2, code_of(self.l2_promotion, 64).into(), 1);
        Ok(bytes)
    }

    /// The map that 128 bytes hold.
    pub fn decode(bytes: &[u8]) -> Result<TensorMap> {
        ensure(bytes.len() >= MAP_BYTES && bytes[field::END..MAP_BYTES].iter().all(|b| *b == 0), || {
            "these 128 bytes are none; on the emulator maps are made by `TensorMap::encode`".to_string()
        })?;
        let get = |at: usize, n: usize| {
            let mut all = [0; 8];
            all[..n].copy_from_slice(&bytes[at..at + n]);
            u64::from_le_bytes(all)
        };
        let rank = get(field::RANK, 1) as usize + 1;
        ensure(rank <= MAX_RANK, || format!("the rank is {rank}, not 1 to {MAX_RANK}"))?;
        ensure(get(field::INTERLEAVE, 1) == 0, || "interleaved layouts are not supported".to_string())?;
        let code = get(field::TYPE, 1);
        let ty = ElementType::ALL.get(code as usize).copied();
        let ty = ty.ok_or_else(|| TensorMapError(format!("there is no element type {code}")))?;
        let size = |at: usize, unit: u32, what: &str| match get(at, 1) {
            0 => Ok(0),
            n @ 1..=3 => Ok(unit << (n - 1)),
            n => Err(TensorMapError(format!("there is no {what} {n}"))),
        };
        let map = TensorMap {
            ty,
            address: get(field::ADDRESS, 8),
            dims: (0..rank).map(|i| get(field::DIMS + 4 * i, 4) + 1).collect(),
            strides: (0..rank - 1).map(|i| get(field::STRIDES + 8 * i, 8)).collect(),
            box_dims: (0..rank).map(|i| get(field::BOX + 2 * i, 2) as u32).collect(),
            element_strides: (0..rank).map(|i| get(field::ELEMENT_STRIDES + i, 1) as u32).collect(),
            swizzle: size(field::SWIZZLE, 32, "swizzle mode")?,
            fill: if get(field::FILL, 1) == 1 { Fill::Nan } else { Fill::Zero },
            l2_promotion: size(field::L2, 64, "L2 promotion")?,
        };
        map.check()?;
        Ok(map)
    }
}

/// 0 for 0, else 1 + log2(bytes / unit).
fn code_of(bytes: u32, unit: u32) -> u32 {
    if bytes == 0 { 0 } else { 1 + (bytes / unit).trailing_zeros() }
}

/// Where the swizzle of a number of bytes puts what an address in shared memory would hold.
pub(crate) fn swizzled(address: u32, swizzle: u32) -> u32 {
    let mask = match swizzle {
        128 => 7,
        64 => 3,
        32 => 1,
        _ => 0,
    };
    address ^ (((address >> 7) & mask) << 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> TensorMap {
        let map = TensorMap::tiled(ElementType::Bf16, 0x100, &[100, 1 << 32, 3], &[208, 4096], &[32, 5, 2]).unwrap();
        TensorMap { element_strides: vec![1, 2, 1], swizzle: 64, fill: Fill::Nan, l2_promotion: 256, ..map }
    }

    #[test]
    fn a_map_survives_its_encoding() {
        let map = sample();
        assert_eq!(TensorMap::decode(&map.encode().unwrap()), Ok(map.clone()));
        assert_eq!(map.box_bytes(), 32 * 3 * 2 * 2);
    }

    #[test]
    fn bad_maps_are_refused() {
        type Damage = fn(&mut TensorMap);
        let cases: &[(Damage, &str)] = &[
            (|m| m.address = 8, "not a multiple of 16"),
            (|m| m.dims[0] = 0, "dimension 0 has 0 elements"),
            (|m| m.strides[1] = 24, "stride of dimension 2 is 24"),
            (|m| m.box_dims[0] = 30, "row of the box has 60 bytes"),
            (|m| m.box_dims[0] = 64, "more than the 64 of the swizzle"),
            (|m| m.box_dims[1] = 257, "257 elements in dimension 1"),
            (|m| m.box_dims = vec![32, 256, 256], "more than shared memory"),
            (|m| m.ty = ElementType::U16, "NaN fill of integers"),
            (|m| m.element_strides[2] = 0, "element stride of dimension 2"),
            (|m| m.dims.truncate(2), "2 strides for rank 2"),
        ];
        for (damage, text) in cases {
            let mut map = sample();
            damage(&mut map);
            let error = map.encode().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        assert!(TensorMap::decode(&[0xff; 128]).is_err());
        assert!(TensorMap::decode(&[0; 128]).is_err());
    }

    #[test]
    fn swizzles_permute_16_byte_pieces() {
        assert_eq!(swizzled(0x80, 128), 0x90);
        assert_eq!(swizzled(0x3f4, 128), 0x384);
        assert_eq!(swizzled(0x1f0, 64), 0x1c0);
        assert_eq!(swizzled(0x80, 32), 0x90);
        assert_eq!(swizzled(0x180, 32), 0x190);
        assert_eq!(swizzled(0x180, 0), 0x180);
    }
}
