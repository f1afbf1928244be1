//! The types of the language: element types with signedness, pointers with constness, and types as values.
//!
//! The tile IR has signless integers; sema keeps the sign here, with each value. A pointer to pointers has a `depth`
//! above 0 and is a pointer to 64-bit integers in the IR.

use std::fmt;

use rtc_ir::{Elem, Scalar, Shape, Type};

use crate::spec::{DType, ValueType};

/// Element of a scalar or of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElemTy {
    /// A number.
    Num(DType),
    /// A pointer to global memory.
    Ptr(PtrTy),
}

/// A pointer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PtrTy {
    /// The number type at the end of the chain.
    pub pointee: DType,
    /// How many more pointers lie between this one and the number.
    pub depth: u8,
    /// Stores through it are errors.
    pub is_const: bool,
}

impl ElemTy {
    pub(crate) const I1: ElemTy = ElemTy::Num(DType::UInt1);
    pub(crate) const I32: ElemTy = ElemTy::Num(DType::Int32);
    pub(crate) const I64: ElemTy = ElemTy::Num(DType::Int64);
    pub(crate) const F32: ElemTy = ElemTy::Num(DType::Fp32);

    /// The number type, unless it is a pointer.
    pub fn num(self) -> Option<DType> {
        match self {
            ElemTy::Num(d) => Some(d),
            ElemTy::Ptr(_) => None,
        }
    }

    /// The pointer type, if it is one.
    pub fn ptr(self) -> Option<PtrTy> {
        match self {
            ElemTy::Num(_) => None,
            ElemTy::Ptr(p) => Some(p),
        }
    }

    /// The pointee of a pointer.
    pub fn pointee(self) -> Option<ElemTy> {
        self.ptr().map(|p| match p.depth {
            0 => ElemTy::Num(p.pointee),
            depth => ElemTy::Ptr(PtrTy { depth: depth - 1, is_const: false, ..p }),
        })
    }

    /// A pointer to this.
    pub fn pointer_to(self, is_const: bool) -> ElemTy {
        ElemTy::Ptr(match self {
            ElemTy::Num(pointee) => PtrTy { pointee, depth: 0, is_const },
            ElemTy::Ptr(p) => PtrTy { depth: p.depth.saturating_add(1), is_const, ..p },
        })
    }

    /// The element of the tile IR; `None` for formats that no NVIDIA target has.
    pub fn ir(self) -> Option<Elem> {
        match self {
            ElemTy::Num(d) => scalar_of(d).map(Elem::Num),
            ElemTy::Ptr(PtrTy { depth: 1.., .. }) => Some(Elem::Ptr(Scalar::I64)),
            ElemTy::Ptr(PtrTy { pointee: DType::UInt1, .. }) => Some(Elem::Ptr(Scalar::I8)),
            ElemTy::Ptr(p) => scalar_of(p.pointee).map(Elem::Ptr),
        }
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            ElemTy::Num(d) => d.bits(),
            ElemTy::Ptr(_) => 64,
        }
    }

    pub(crate) fn is_int(self) -> bool {
        self.num().is_some_and(DType::is_integer)
    }

    pub(crate) fn is_float(self) -> bool {
        self.num().is_some_and(|d| !d.is_integer())
    }

    pub(crate) fn is_signed(self) -> bool {
        self.num().is_some_and(DType::is_signed)
    }

    pub(crate) fn is_fp8(self) -> bool {
        self.num().is_some_and(is_fp8)
    }
}

impl From<ValueType> for ElemTy {
    fn from(ty: ValueType) -> ElemTy {
        match ty {
            ValueType::Scalar(d) => ElemTy::Num(d),
            ValueType::Pointer { pointee, is_const } => ElemTy::Ptr(PtrTy { pointee, depth: 0, is_const }),
        }
    }
}

pub(crate) fn is_fp8(d: DType) -> bool {
    matches!(d, DType::Fp8E5 | DType::Fp8E4Nv | DType::Fp8E4B15 | DType::Fp8E4B8 | DType::Fp8E5B16)
}

fn scalar_of(d: DType) -> Option<Scalar> {
    Some(match d {
        DType::UInt1 => Scalar::I1,
        DType::Int8 | DType::UInt8 => Scalar::I8,
        DType::Int16 | DType::UInt16 => Scalar::I16,
        DType::Int32 | DType::UInt32 => Scalar::I32,
        DType::Int64 | DType::UInt64 => Scalar::I64,
        DType::Fp8E5 => Scalar::F8E5,
        DType::Fp8E4Nv => Scalar::F8E4,
        DType::Fp8E4B15 => Scalar::F8E4B15,
        DType::Fp8E4B8 | DType::Fp8E5B16 => return None,
        DType::Fp16 => Scalar::F16,
        DType::Bf16 => Scalar::BF16,
        DType::Fp32 => Scalar::F32,
        DType::Fp64 => Scalar::F64,
    })
}

/// The name that the language prints for an element type: `int32`, `uint8`, `fp16`.
pub(crate) fn dtype_name(d: DType) -> &'static str {
    match d {
        DType::UInt1 => "int1",
        DType::Int8 => "int8",
        DType::Int16 => "int16",
        DType::Int32 => "int32",
        DType::Int64 => "int64",
        DType::UInt8 => "uint8",
        DType::UInt16 => "uint16",
        DType::UInt32 => "uint32",
        DType::UInt64 => "uint64",
        other => other.name(),
    }
}

/// The element type called `tl.NAME`.
pub(crate) fn dtype_named(name: &str) -> Option<DType> {
    Some(match name {
        "int1" => DType::UInt1,
        "int8" => DType::Int8,
        "int16" => DType::Int16,
        "int32" => DType::Int32,
        "int64" => DType::Int64,
        "uint8" => DType::UInt8,
        "uint16" => DType::UInt16,
        "uint32" => DType::UInt32,
        "uint64" => DType::UInt64,
        "float8e5" => DType::Fp8E5,
        "float8e4nv" => DType::Fp8E4Nv,
        "float8e4b15" => DType::Fp8E4B15,
        "float8e4b8" => DType::Fp8E4B8,
        "float8e5b16" => DType::Fp8E5B16,
        "float16" => DType::Fp16,
        "bfloat16" => DType::Bf16,
        "float32" => DType::Fp32,
        "float64" => DType::Fp64,
        _ => return None,
    })
}

/// Mantissa bits without the implicit one, exponent bias; for `dtype.fp_mantissa_width` and `.exponent_bias`.
pub(crate) fn float_format(d: DType) -> Option<(u32, u32)> {
    Some(match d {
        DType::Fp8E5 => (2, 15),
        DType::Fp8E4Nv => (3, 7),
        DType::Fp8E4B15 => (3, 15),
        DType::Fp8E4B8 => (3, 8),
        DType::Fp8E5B16 => (2, 16),
        DType::Fp16 => (10, 15),
        DType::Bf16 => (7, 127),
        DType::Fp32 => (23, 127),
        DType::Fp64 => (52, 1023),
        _ => return None,
    })
}

impl fmt::Display for ElemTy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElemTy::Num(d) => f.write_str(dtype_name(*d)),
            ElemTy::Ptr(p) => {
                let inner = self.pointee().map(|e| e.to_string()).unwrap_or_default();
                write!(f, "{}pointer<{inner}>", if p.is_const { "const_" } else { "" })
            }
        }
    }
}

/// A type as a value: `tl.float32`, `tl.pointer_type(tl.int8)`, `x.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TyVal {
    /// A number or pointer type.
    Elem(ElemTy),
    /// The type of a block.
    Block(ElemTy, Shape),
    /// The type of nothing.
    Void,
    /// `tl.constexpr`, where a type is expected.
    Constexpr,
}

impl TyVal {
    /// The element type: of a block its element's.
    pub(crate) fn scalar(self) -> Option<ElemTy> {
        match self {
            TyVal::Elem(e) | TyVal::Block(e, _) => Some(e),
            TyVal::Void | TyVal::Constexpr => None,
        }
    }
}

impl fmt::Display for TyVal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TyVal::Elem(e) => write!(f, "{e}"),
            TyVal::Block(e, s) => write!(f, "{e}{s:?}"),
            TyVal::Void => f.write_str("void"),
            TyVal::Constexpr => f.write_str("constexpr"),
        }
    }
}

/// The IR type of an element and a shape; rank 0 is a scalar.
pub(crate) fn ir_type(elem: Elem, shape: Shape) -> Type {
    if shape.rank() == 0 { Type::Scalar(elem) } else { Type::tile(elem, shape) }
}

/// The shape of a scalar.
pub(crate) fn scalar_shape() -> Shape {
    Shape::new(&[]).expect("rank 0 is below the highest rank")
}

/// Whether a type answers `name()` with yes.
pub(crate) fn type_predicate(t: TyVal, name: &str) -> bool {
    let elem = t.scalar();
    let num = if matches!(t, TyVal::Elem(_) | TyVal::Block(..)) { elem.and_then(ElemTy::num) } else { None };
    let is = |d: DType| num == Some(d);
    match name {
        "is_fp8" => num.is_some_and(is_fp8),
        "is_fp8e4nv" => is(DType::Fp8E4Nv),
        "is_fp8e4b8" => is(DType::Fp8E4B8),
        "is_fp8e4b15" => is(DType::Fp8E4B15),
        "is_fp8e5" => is(DType::Fp8E5),
        "is_fp8e5b16" => is(DType::Fp8E5B16),
        "is_fp16" => is(DType::Fp16),
        "is_bf16" => is(DType::Bf16),
        "is_fp32" => is(DType::Fp32),
        "is_fp64" => is(DType::Fp64),
        "is_floating" => num.is_some_and(|d| !d.is_integer()),
        "is_standard_floating" => num.is_some_and(|d| !d.is_integer() && !is_fp8(d)),
        "is_int" => num.is_some_and(DType::is_integer),
        "is_int_signed" => num.is_some_and(DType::is_signed),
        "is_int_unsigned" => num.is_some_and(|d| d.is_integer() && !d.is_signed()),
        "is_bool" | "is_int1" => is(DType::UInt1),
        "is_int8" => is(DType::Int8),
        "is_int16" => is(DType::Int16),
        "is_int32" => is(DType::Int32),
        "is_int64" => is(DType::Int64),
        "is_uint8" => is(DType::UInt8),
        "is_uint16" => is(DType::UInt16),
        "is_uint32" => is(DType::UInt32),
        "is_uint64" => is(DType::UInt64),
        "is_ptr" => matches!(t, TyVal::Elem(ElemTy::Ptr(_))),
        "is_block" => matches!(t, TyVal::Block(..)),
        "is_const" => elem.and_then(ElemTy::ptr).is_some_and(|p| p.is_const),
        "is_void" => t == TyVal::Void,
        _ => false,
    }
}
