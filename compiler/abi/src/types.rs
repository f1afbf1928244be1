//! Types of run-time arguments and of kernel parameters.
//!
//! Both are written as signatures spell them, also in files:
//!
//! ```
//! use rtc_abi::{DType, ParamType, ValueType};
//! let ty: ParamType = "*fp32".parse().unwrap();
//! assert_eq!(ty, ValueType::Pointer { pointee: DType::Fp32, is_const: false }.into());
//! assert_eq!("tensordesc<fp16[128,64]>".parse::<ParamType>().unwrap().to_string(), "tensordesc<fp16[128,64]>");
//! assert!("fp33".parse::<ParamType>().is_err());
//! ```

use crate::DType;
use std::fmt;
use std::str::FromStr;

/// A text that is no type.
///
/// ```
/// use rtc_abi::{DType, UnknownType};
/// assert_eq!("fp33".parse::<DType>(), Err(UnknownType("fp33".into())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a parameter type")]
pub struct UnknownType(pub String);

/// Serialization of a type as its text.
macro_rules! serde_as_text {
    ($ty:ty) => {
        impl serde::Serialize for $ty {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $ty {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;

/// Type of a run-time argument.
///
/// ```
/// use rtc_abi::ValueType;
/// assert_eq!(ValueType::parse("*fp16").map(ValueType::param_bytes), Some(8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// A number.
    Scalar(DType),
    /// A pointer to global memory.
    Pointer {
        /// The pointee.
        pointee: DType,
        /// Stores through it are errors.
        is_const: bool,
    },
}

impl ValueType {
    /// Reads a type as annotations and signatures write it: `i32`, `float16`, `*fp32`, `fp32*`, `*ku8`, `const *fp16`.
    pub fn parse(text: &str) -> Option<ValueType> {
        let text = text.trim();
        let (text, mut is_const) = match text.strip_prefix("const ") {
            Some(rest) => (rest.trim(), true),
            None => (text, false),
        };
        let pointee = match (text.strip_prefix('*'), text.strip_suffix('*')) {
            (Some(rest), _) => match rest.strip_prefix('k') {
                Some(rest) => {
                    is_const = true;
                    rest
                }
                None => rest,
            },
            (None, Some(rest)) => rest.trim_end(),
            (None, None) if is_const => return None,
            (None, None) => return DType::parse(text).map(ValueType::Scalar),
        };
        Some(ValueType::Pointer { pointee: DType::parse(pointee.trim())?, is_const })
    }

    /// Bytes that it takes as a kernel parameter.
    pub fn param_bytes(self) -> u32 {
        match self {
            ValueType::Scalar(dtype) => dtype.bytes(),
            ValueType::Pointer { .. } => 8,
        }
    }
}

impl From<DType> for ValueType {
    fn from(dtype: DType) -> ValueType {
        ValueType::Scalar(dtype)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Scalar(dtype) => write!(f, "{dtype}"),
            ValueType::Pointer { pointee, is_const } => write!(f, "*{}{pointee}", if *is_const { "k" } else { "" }),
        }
    }
}

impl FromStr for ValueType {
    type Err = UnknownType;

    fn from_str(text: &str) -> Result<ValueType, UnknownType> {
        ValueType::parse(text).ok_or_else(|| UnknownType(text.to_owned()))
    }
}

/// Type of a parameter of a compiled kernel.
///
/// ```
/// use rtc_abi::{DType, ParamType};
/// let ty = |text: &str| text.parse::<ParamType>().unwrap();
/// assert_eq!((ty("*fp32").pointee(), ty("i32").pointee()), (Some(DType::Fp32), None));
/// assert!(ty("*fp32").is_pointer() && ty("i32").is_integer());
/// assert_eq!((ty("i32").bytes(), ty("i32").align()), (4, 4));
/// assert_eq!((ty("tensordesc<fp16[64,64]>").bytes(), ty("tensordesc<fp16[64,64]>").align()), (128, 64));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ParamType {
    /// A number or a pointer.
    Value(ValueType),
    /// A tensor descriptor of the source: the tensor map that the host makes of its argument.
    Descriptor {
        /// Element type.
        element: DType,
        /// Shape of the block that one access moves, outermost first.
        block_shape: Vec<u32>,
    },
    /// A hidden tensor map.
    TensorMap,
}

/// Bytes of a tensor map (`CUtensorMap`).
const TENSOR_MAP_BYTES: u32 = 128;
/// The alignment that a tensor map needs.
const TENSOR_MAP_ALIGN: u32 = 64;

impl ParamType {
    /// Bytes that it takes in the parameter buffer.
    pub fn bytes(&self) -> u32 {
        match self {
            ParamType::Value(ty) => ty.param_bytes(),
            ParamType::Descriptor { .. } | ParamType::TensorMap => TENSOR_MAP_BYTES,
        }
    }

    /// The factor that its offset in the parameter buffer has.
    pub fn align(&self) -> u32 {
        match self {
            ParamType::Value(ty) => ty.param_bytes(),
            ParamType::Descriptor { .. } | ParamType::TensorMap => TENSOR_MAP_ALIGN,
        }
    }

    /// The pointee, if it is a pointer.
    pub fn pointee(&self) -> Option<DType> {
        match self {
            ParamType::Value(ValueType::Pointer { pointee, .. }) => Some(*pointee),
            _ => None,
        }
    }

    /// Whether it is an integer, `u1` included.
    pub fn is_integer(&self) -> bool {
        matches!(self, ParamType::Value(ValueType::Scalar(dtype)) if dtype.is_integer())
    }

    /// Whether it is a pointer.
    pub fn is_pointer(&self) -> bool {
        self.pointee().is_some()
    }
}

impl From<ValueType> for ParamType {
    fn from(ty: ValueType) -> ParamType {
        ParamType::Value(ty)
    }
}

impl From<DType> for ParamType {
    fn from(dtype: DType) -> ParamType {
        ParamType::Value(ValueType::Scalar(dtype))
    }
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamType::Value(ty) => ty.fmt(f),
            ParamType::Descriptor { element, block_shape } => {
                let shape: Vec<String> = block_shape.iter().map(u32::to_string).collect();
                write!(f, "tensordesc<{element}[{}]>", shape.join(","))
            }
            ParamType::TensorMap => f.write_str("tensormap"),
        }
    }
}

impl FromStr for ParamType {
    type Err = UnknownType;

    fn from_str(text: &str) -> Result<ParamType, UnknownType> {
        let text = text.trim();
        if text == "tensormap" {
            return Ok(ParamType::TensorMap);
        }
        let descriptor = || {
            let inner = text.strip_prefix("tensordesc<")?.strip_suffix('>')?;
            let (element, shape) = inner.trim_end().strip_suffix(']')?.split_once('[')?;
            let size = |text: &str| text.trim().parse().ok().filter(|size| *size > 0);
            let block_shape = shape.split(',').map(size).collect::<Option<Vec<u32>>>()?;
            let element = DType::parse(element.trim())?;
            (block_shape.len() <= 5).then_some(ParamType::Descriptor { element, block_shape })
        };
        let value = || ValueType::parse(text).map(ParamType::Value);
        descriptor().or_else(value).ok_or_else(|| UnknownType(text.to_owned()))
    }
}

serde_as_text!(ValueType);
serde_as_text!(ParamType);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_spelling_of_a_type() {
        for (text, name) in [
            ("bool", "u1"),
            ("i1", "u1"),
            ("int", "i32"),
            ("int32_t", "i32"),
            ("float", "fp32"),
            ("half", "fp16"),
            ("float8_e4m3fn", "fp8e4nv"),
            ("*fp32", "*fp32"),
            ("fp32*", "*fp32"),
            ("*ki8", "*ki8"),
            ("const *bf16", "*kbf16"),
        ] {
            assert_eq!(ValueType::parse(text).unwrap().to_string(), name, "{text}");
        }
        for text in ["", "*", "const i32", "fp33", "**fp32", "k", "Int32"] {
            assert_eq!(ValueType::parse(text), None, "{text}");
        }
    }

    #[test]
    fn parameter_types_read_back() {
        for text in ["u1", "i64", "*kbf16", "*fp8e4b15", "tensordesc<fp16[128,64]>", "tensordesc<u8[1]>", "tensormap"] {
            let ty: ParamType = text.parse().unwrap();
            assert_eq!(ty.to_string(), text);
            assert_eq!(serde_json::from_str::<ParamType>(&serde_json::to_string(&ty).unwrap()).unwrap(), ty);
        }
        for text in ["", "i33", "tensordesc<fp16>", "tensordesc<fp16[]>", "tensordesc<fp16[0]>", "tensordesc<x[1]>"] {
            assert_eq!(text.parse::<ParamType>(), Err(UnknownType(text.into())));
        }
        let places = |text: &str| text.parse::<ParamType>().map(|ty| (ty.bytes(), ty.align()));
        assert_eq!(places("u1"), Ok((1, 1)));
        assert_eq!(places("*u1"), Ok((8, 8)));
        assert_eq!(places("tensormap"), Ok((128, 64)));
    }
}
