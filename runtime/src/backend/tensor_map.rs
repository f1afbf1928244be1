//! Tensor maps as backends encode them. Dimensions stand innermost first.

use crate::Error;
use rtc_abi::DType;

/// Most dimensions of a tensor.
pub(crate) const MAX_RANK: usize = 5;
/// Bytes of a map.
pub(crate) const MAP_BYTES: usize = 128;

/// Type of the elements of a map: its number as a `CUtensorMapDataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementType(usize);

impl ElementType {
    /// Bytes of each type, and whether it is a float.
    const ALL: [(u32, bool); 13] = [
        (1, false),
        (2, false),
        (4, false),
        (4, false),
        (8, false),
        (8, false),
        (2, true),
        (4, true),
        (8, true),
        (2, true),
        (4, true),
        (4, true),
        (4, true),
    ];

    /// The type of that number.
    pub(crate) fn of(number: u32) -> Option<ElementType> {
        let number = usize::try_from(number).ok()?;
        (number < ElementType::ALL.len()).then_some(ElementType(number))
    }

    /// The type for elements of the language.
    pub(crate) fn for_dtype(dtype: DType) -> Option<ElementType> {
        Some(ElementType(match dtype {
            DType::Int8 | DType::UInt8 | DType::Fp8E5 | DType::Fp8E4Nv | DType::Fp8E4B15 => 0,
            DType::Int16 | DType::UInt16 => 1,
            DType::UInt32 => 2,
            DType::Int32 => 3,
            DType::UInt64 => 4,
            DType::Int64 => 5,
            DType::Fp16 => 6,
            DType::Fp32 => 7,
            DType::Fp64 => 8,
            DType::Bf16 => 9,
            DType::UInt1 | DType::Fp8E4B8 | DType::Fp8E5B16 => return None,
        }))
    }

    #[cfg(any(feature = "cuda", feature = "emulator"))]
    pub(crate) fn number(self) -> usize {
        self.0
    }

    pub(crate) fn bytes(self) -> u32 {
        ElementType::ALL[self.0].0
    }

    pub(crate) fn is_float(self) -> bool {
        ElementType::ALL[self.0].1
    }
}

/// What a kernel fixes of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) element: ElementType,
    pub(crate) rank: usize,
    pub(crate) box_dims: [u32; MAX_RANK],
    pub(crate) swizzle: u32,
    pub(crate) l2_promotion: u32,
    /// Whether the box has no more rows than the tensor.
    pub(crate) shrinks: bool,
}

impl Form {
    /// The box at a place, innermost dimension first.
    pub(crate) fn box_at(&self, place: &Place) -> [u32; MAX_RANK] {
        let mut dims = self.box_dims;
        if self.shrinks {
            dims[1] = dims[1].min(u32::try_from(place.dims[1]).unwrap_or(u32::MAX));
        }
        dims
    }
}

/// What a launch adds; strides in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: u64,
    pub(crate) dims: [u64; MAX_RANK],
    pub(crate) strides: [u64; MAX_RANK],
    pub(crate) nan: bool,
}

/// Why there is no map.
#[derive(Debug)]
pub(crate) enum MapError {
    /// The argument does not fit; in words.
    #[cfg_attr(not(feature = "emulator"), allow(dead_code))]
    Refused(String),
    /// The device failed.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    Failed(Error),
}

/// What the hardware would refuse of a map, on every device. A program without the emulator leaves it to the driver.
#[cfg(feature = "emulator")]
pub(crate) fn check_tensor_map(form: &Form, place: &Place) -> Result<(), String> {
    super::host::check_tensor_map(form, place)
}

#[cfg(not(feature = "emulator"))]
pub(crate) fn check_tensor_map(_: &Form, _: &Place) -> Result<(), String> {
    Ok(())
}
