//! The properties of type words: width, signedness, class.

use crate::modifier::Modifier;

/// Width in bits of a type word; `None` if the modifier is not a type. `pred` counts as 1.
pub fn bits(ty: Modifier) -> Option<u32> {
    use Modifier::*;
    Some(match ty {
        Pred => 1,
        U8 | S8 | B8 | E4m3 | E5m2 => 8,
        U16 | S16 | B16 | F16 | Bf16 | E4m3x2 | E5m2x2 => 16,
        U32 | S32 | B32 | F32 | Tf32 | F16x2 | Bf16x2 | U16x2 | S16x2 => 32,
        U64 | S64 | B64 | F64 | F32x2 => 64,
        B128 => 128,
        _ => return None,
    })
}

/// Whether a type word is a signed integer.
pub fn is_signed(ty: Modifier) -> bool {
    matches!(ty, Modifier::S8 | Modifier::S16 | Modifier::S32 | Modifier::S64)
}

/// Whether a type word is a floating-point type, packed ones included.
pub fn is_float(ty: Modifier) -> bool {
    use Modifier::*;
    matches!(ty, F16 | F16x2 | Bf16 | Bf16x2 | F32 | F32x2 | F64 | Tf32 | E4m3 | E5m2 | E4m3x2 | E5m2x2)
}
