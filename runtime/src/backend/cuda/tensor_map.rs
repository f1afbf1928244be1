//! Tensor maps as the driver encodes them.
#![allow(unsafe_code)]

use super::super::{Form, MAP_BYTES, MAX_RANK, Place};
use super::{Context, check};
use crate::Result;
use cudarc::driver::sys;

/// Has the driver encode a tensor map over memory of this context.
pub(super) fn encode(context: &Context, form: &Form, place: &Place) -> Result<[u8; MAP_BYTES]> {
    // The driver looks at the address in the current context, and this thread may have none or another.
    context.bind()?;
    use sys::CUtensorMapFloatOOBfill_enum as Oob;
    use sys::CUtensorMapL2promotion_enum as Promotion;
    use sys::CUtensorMapSwizzle_enum as Swizzle;
    use sys::{CUtensorMapDataType_enum as Type, CUtensorMapInterleave_enum as Interleave};
    const TYPES: [Type; 13] = [
        Type::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        Type::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        Type::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        Type::CU_TENSOR_MAP_DATA_TYPE_INT32,
        Type::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        Type::CU_TENSOR_MAP_DATA_TYPE_INT64,
        Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        Type::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
        Type::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        Type::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
    ];
    let ty = TYPES[form.element.number()];
    let swizzle = match form.swizzle {
        32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        _ => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
    };
    let promotion = match form.l2_promotion {
        64 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
        128 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        256 => Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        _ => Promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
    };
    let fill = match place.nan {
        true => Oob::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
        false => Oob::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    };
    let mut map = sys::CUtensorMap { opaque: [0; 16] };
    // SAFETY: the map is written only; each array has an entry for every dimension, the strides one less, from the
    // second on. The address is not accessed.
    let status = unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut map,
            ty,
            form.rank as u32,
            std::ptr::with_exposed_provenance_mut(place.address as usize),
            place.dims.as_ptr(),
            place.strides[1..].as_ptr(),
            form.box_at(place).as_ptr(),
            [1; MAX_RANK].as_ptr(),
            Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            promotion,
            fill,
        )
    };
    check("cuTensorMapEncodeTiled", status.result())?;
    let mut bytes = [0; MAP_BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(map.opaque) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    Ok(bytes)
}
