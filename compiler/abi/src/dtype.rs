//! The element types of the language, under the names that signatures and metadata use.
//!
//! ```
//! use rtc_abi::DType;
//! assert_eq!(DType::parse("float16"), Some(DType::Fp16));
//! assert_eq!(DType::Fp16.to_string(), "fp16");
//! let wide: Vec<&str> = DType::ALL.iter().filter(|d| !d.is_integer() && d.bits() >= 32).map(|d| d.name()).collect();
//! assert_eq!(wide, ["fp32", "fp64"]);
//! assert_eq!((DType::UInt1.bits(), DType::UInt1.bytes()), (1, 1));
//! assert!(DType::Int8.is_signed() && !DType::UInt8.is_signed());
//! ```

use std::fmt;

macro_rules! dtypes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $bits:literal, [$($alias:literal),*];)*) => {
        /// Element types of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DType {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl DType {
            /// Every element type.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// The short name that signatures and metadata use.
            pub fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// Width in bits; `u1` has 1.
            #[inline]
            pub fn bits(self) -> u32 {
                match self { $(DType::$variant => $bits,)* }
            }

            /// Reads any of the names that annotations and signatures accept; a trailing `_t` is dropped.
            pub fn parse(text: &str) -> Option<DType> {
                match text.strip_suffix("_t").unwrap_or(text) {
                    $($name $(| $alias)* => Some(DType::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

dtypes! {
    /// Boolean, one byte in memory.
    UInt1 = "u1", 1, ["bool", "int1", "uint1", "i1"];
    /// Signed, 8 bits.
    Int8 = "i8", 8, ["int8"];
    /// Signed, 16 bits.
    Int16 = "i16", 16, ["int16"];
    /// Signed, 32 bits.
    Int32 = "i32", 32, ["int", "int32"];
    /// Signed, 64 bits.
    Int64 = "i64", 64, ["int64"];
    /// Unsigned, 8 bits.
    UInt8 = "u8", 8, ["uint8"];
    /// Unsigned, 16 bits.
    UInt16 = "u16", 16, ["uint16"];
    /// Unsigned, 32 bits.
    UInt32 = "u32", 32, ["uint32"];
    /// Unsigned, 64 bits.
    UInt64 = "u64", 64, ["uint64"];
    /// E5M2.
    Fp8E5 = "fp8e5", 8, ["float8e5", "float8_e5m2"];
    /// E4M3FN: no infinities.
    Fp8E4Nv = "fp8e4nv", 8, ["float8e4nv", "float8_e4m3fn"];
    /// E4M3 with bias 15, neither NaN nor infinity.
    Fp8E4B15 = "fp8e4b15", 8, ["float8e4b15"];
    /// E4M3 "fnuz"; no NVIDIA target has it.
    Fp8E4B8 = "fp8e4b8", 8, ["float8e4b8", "float8_e4m3fnuz"];
    /// E5M2 "fnuz"; no NVIDIA target has it.
    Fp8E5B16 = "fp8e5b16", 8, ["float8e5b16", "float8_e5m2fnuz"];
    /// IEEE half.
    Fp16 = "fp16", 16, ["float16", "half", "f16"];
    /// bfloat16.
    Bf16 = "bf16", 16, ["bfloat16"];
    /// IEEE single.
    Fp32 = "fp32", 32, ["float", "float32", "f32"];
    /// IEEE double.
    Fp64 = "fp64", 64, ["double", "float64", "f64"];
}

impl DType {
    /// Bytes in memory.
    #[inline]
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// An integer type, `u1` included.
    pub fn is_integer(self) -> bool {
        self <= DType::UInt64
    }

    /// A signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

crate::types::serde_as_text!(DType);

impl std::str::FromStr for DType {
    type Err = crate::UnknownType;

    fn from_str(text: &str) -> Result<DType, crate::UnknownType> {
        DType::parse(text).ok_or_else(|| crate::UnknownType(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse(), Ok(*dtype));
        }
    }
}
