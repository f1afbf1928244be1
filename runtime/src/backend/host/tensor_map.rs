//! Tensor maps as the emulator has them.

use super::super::{Form, MAP_BYTES, Place};
use rtc_emulator::tensor_map::{ElementType, Fill, TensorMap};

fn tensor_map(form: &Form, place: &Place) -> TensorMap {
    TensorMap {
        ty: ElementType::ALL[form.element.number()],
        address: place.address,
        dims: place.dims[..form.rank].to_vec(),
        strides: place.strides[1..form.rank].to_vec(),
        box_dims: form.box_at(place)[..form.rank].to_vec(),
        element_strides: vec![1; form.rank],
        swizzle: form.swizzle,
        fill: if place.nan { Fill::Nan } else { Fill::Zero },
        l2_promotion: form.l2_promotion,
    }
}

/// What the hardware would refuse of a map.
pub(crate) fn check_tensor_map(form: &Form, place: &Place) -> Result<(), String> {
    tensor_map(form, place).check().map_err(|e| e.to_string())
}

/// The map in memory.
pub(super) fn encode(form: &Form, place: &Place) -> Result<[u8; MAP_BYTES], String> {
    tensor_map(form, place).encode().map_err(|e| e.to_string())
}
