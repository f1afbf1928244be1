//! Types of the kernel language for the generator of kernels. The rules of promotion are implemented here a second
//! time, to check those of the compiler.

/// A type of elements, by its name in `tl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dtype(pub &'static str);

pub const BOOL: Dtype = Dtype("int1");
pub const I8: Dtype = Dtype("int8");
pub const I16: Dtype = Dtype("int16");
pub const I32: Dtype = Dtype("int32");
pub const I64: Dtype = Dtype("int64");
pub const U8: Dtype = Dtype("uint8");
pub const U16: Dtype = Dtype("uint16");
pub const U32: Dtype = Dtype("uint32");
pub const U64: Dtype = Dtype("uint64");
pub const F16: Dtype = Dtype("float16");
pub const BF16: Dtype = Dtype("bfloat16");
pub const F32: Dtype = Dtype("float32");
pub const F64: Dtype = Dtype("float64");
pub const E5M2: Dtype = Dtype("float8e5");
pub const E4M3: Dtype = Dtype("float8e4nv");

/// Types that tensors are made of, the usual ones several times.
pub const ELEMENTS: [Dtype; 18] =
    [I32, I32, F32, F32, F32, F16, F16, BF16, I8, I16, I64, U8, U16, U32, U64, F64, I32, F32];

/// All types that have sums.
pub const ALL: [Dtype; 13] = [BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64];

impl Dtype {
    pub fn is_float(self) -> bool {
        self.0.contains("float")
    }

    pub fn is_int(self) -> bool {
        !self.is_float() && self != BOOL
    }

    pub fn is_signed(self) -> bool {
        self.0.starts_with("int") && self != BOOL
    }

    pub fn bits(self) -> u32 {
        let number = self.0.trim_start_matches(|c: char| !c.is_ascii_digit());
        match self {
            E5M2 | E4M3 => 8,
            _ => number.parse().expect("names of types end in their width"),
        }
    }

    /// As a signature has it.
    pub fn signature(self) -> &'static str {
        match self.0 {
            "int1" => "i1",
            "int8" => "i8",
            "int16" => "i16",
            "int32" => "i32",
            "int64" => "i64",
            "uint8" => "u8",
            "uint16" => "u16",
            "uint32" => "u32",
            "uint64" => "u64",
            "float16" => "fp16",
            "bfloat16" => "bf16",
            "float32" => "fp32",
            "float64" => "fp64",
            "float8e5" => "fp8e5",
            _ => "fp8e4nv",
        }
    }

    /// The greatest `n` for which it has all whole numbers from `-n` to `n`.
    pub fn whole(self) -> u64 {
        match self {
            F64 => 1 << 53,
            F32 => 1 << 24,
            F16 => 1 << 11,
            BF16 => 1 << 8,
            E4M3 => 1 << 4,
            E5M2 => 1 << 3,
            BOOL => 1,
            _ if self.is_signed() => (1 << (self.bits() - 1)) - 1,
            _ => u64::MAX >> (64 - self.bits()),
        }
    }
}

/// The type of an operation on two tensors.
pub fn promote(a: Dtype, b: Dtype) -> Dtype {
    let either = |wanted: Dtype| a == wanted || b == wanted;
    if either(F64) {
        return F64;
    }
    if either(F32) {
        return F32;
    }
    if either(F16) {
        return F16;
    }
    if either(BF16) {
        return if a == b { BF16 } else { F32 };
    }
    if a.is_signed() == b.is_signed() {
        return if a.bits() >= b.bits() { a } else { b };
    }
    let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
    if unsigned.bits() >= signed.bits() { unsigned } else { signed }
}

/// The type of a tensor combined with a whole number of the source.
pub fn with_number(a: Dtype) -> Dtype {
    if a == BOOL { I32 } else { a }
}

/// The type that a sum of integers has, and the greatest and least of narrow ones.
pub fn widened(a: Dtype) -> Dtype {
    match a {
        BOOL | U8 | U16 => U32,
        I8 | I16 => I32,
        other => other,
    }
}
