//! How copies of tiles by tensor maps combine elements. The instruction takes the type of the elements, with the sign of
//! integers, from the map.

use rtc_abi::ParamType;

use crate::{Hidden, Kernel, OpKind, RmwOp, Scalar, Type, Value, ValueDef};

/// `CU_TENSOR_MAP_DATA_TYPE_UINT32` and that of 64 bits: where maps say nothing, integers are signed.
const UNSIGNED: [u32; 2] = [2, 4];

impl RmwOp {
    /// Whether copies combine such elements so.
    pub fn has_copies(self, elem: Scalar) -> bool {
        match self {
            RmwOp::FAdd => matches!(elem, Scalar::F16 | Scalar::BF16 | Scalar::F32),
            RmwOp::FMin | RmwOp::FMax => matches!(elem, Scalar::F16 | Scalar::BF16),
            RmwOp::Xchg => false,
            _ => matches!(elem, Scalar::I32 | Scalar::I64),
        }
    }

    /// Whether the elements of the map must be signed for it; `None` if it does not matter. Signed integers of 64 bits
    /// have minima and maxima alone: an H200 reports others as illegal instructions.
    pub fn signed(self, elem: Scalar) -> Option<bool> {
        match self {
            RmwOp::Min | RmwOp::Max => Some(true),
            RmwOp::UMin | RmwOp::UMax => Some(false),
            RmwOp::Add | RmwOp::And | RmwOp::Or | RmwOp::Xor if elem == Scalar::I64 => Some(false),
            _ => None,
        }
    }

    /// The number of the `CUtensorMapDataType` that a map needs for it, if it is not that of the element.
    pub fn data_type(self, elem: Scalar) -> Option<u32> {
        (self.signed(elem) == Some(false)).then(|| unsigned(elem)).flatten()
    }
}

/// The number of the `CUtensorMapDataType` of such integers without sign.
pub(crate) fn unsigned(elem: Scalar) -> Option<u32> {
    match elem {
        Scalar::I32 => Some(UNSIGNED[0]),
        Scalar::I64 => Some(UNSIGNED[1]),
        _ => None,
    }
}

impl Kernel {
    /// Whether the elements of a tensor map are signed integers.
    pub fn is_signed_map(&self, map: Value) -> bool {
        let Type::Desc(desc) = self.value_type(map) else { return false };
        match self.value(map).def {
            // `make_map` makes those of unsigned ones.
            ValueDef::Result(op, _) => !matches!(self.kind(op), OpKind::MakeMap { .. }),
            ValueDef::Arg(..) => match self.params.iter().find(|param| param.value == map) {
                Some(param) => match (&param.hidden, &param.ty) {
                    (Some(Hidden::TensorMap(source)), _) => {
                        source.data_type.is_none_or(|n| Some(n) != unsigned(desc.elem))
                    }
                    (_, ParamType::Descriptor { element, .. }) => element.is_signed(),
                    _ => true,
                },
                None => true,
            },
        }
    }
}
