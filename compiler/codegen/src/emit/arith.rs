//! Arithmetic, comparisons, selection and casts, on scalars and vectors alike.

use melior::ir::TypeLike;

use super::{Emitter, Type, Value, type_of};

/// Binary operations that keep their operands' type: method name, operation, what it computes.
macro_rules! binary {
    ($($method:ident $op:literal $doc:literal,)*) => {
        impl<'c> Emitter<'c> {$(
            #[doc = $doc]
            pub fn $method(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
                self.value($op, &[a, b], type_of(a), &[])
            }
        )*}
    };
}

binary! {
    addi "llvm.add" "Integer addition, wrapping.",
    subi "llvm.sub" "Integer subtraction, wrapping.",
    muli "llvm.mul" "Integer multiplication, wrapping.",
    divsi "llvm.sdiv" "Signed division towards zero.",
    divui "llvm.udiv" "Unsigned division.",
    remsi "llvm.srem" "Signed remainder with the dividend's sign.",
    remui "llvm.urem" "Unsigned remainder.",
    andi "llvm.and" "Bitwise and.",
    ori "llvm.or" "Bitwise or.",
    xori "llvm.xor" "Bitwise exclusive or.",
    shli "llvm.shl" "Shift left.",
    shrsi "llvm.ashr" "Arithmetic shift right.",
    shrui "llvm.lshr" "Logical shift right.",
    maxsi "llvm.intr.smax" "Signed maximum.",
    maxui "llvm.intr.umax" "Unsigned maximum.",
    minsi "llvm.intr.smin" "Signed minimum.",
    minui "llvm.intr.umin" "Unsigned minimum.",
    maximumf "llvm.intr.maximum" "Floating-point maximum, NaN if either operand is.",
    minimumf "llvm.intr.minimum" "Floating-point minimum, NaN if either operand is.",
    maxnumf "llvm.intr.maxnum" "Floating-point maximum, the other operand if one is NaN.",
    minnumf "llvm.intr.minnum" "Floating-point minimum, the other operand if one is NaN.",
}

/// Floating-point operations that may be contracted: method name, operation, what it computes.
macro_rules! contractible {
    ($($method:ident $op:literal $doc:literal,)*) => {
        impl<'c> Emitter<'c> {$(
            #[doc = $doc]
            /// With `contract`, LLVM may fuse a multiplication with the addition that uses it.
            pub fn $method(&self, a: Value<'c>, b: Value<'c>, contract: bool) -> Value<'c> {
                if contract {
                    let flags = self.attribute("#llvm.fastmath<contract>");
                    self.value($op, &[a, b], type_of(a), &[("fastmathFlags", flags)])
                } else {
                    self.value($op, &[a, b], type_of(a), &[])
                }
            }
        )*}
    };
}

contractible! {
    addf "llvm.fadd" "Floating-point addition.",
    subf "llvm.fsub" "Floating-point subtraction.",
    mulf "llvm.fmul" "Floating-point multiplication.",
    divf "llvm.fdiv" "Floating-point division, correctly rounded.",
}

/// Conversions between types: method name, operation, what it computes.
macro_rules! cast {
    ($($method:ident $op:literal $doc:literal,)*) => {
        impl<'c> Emitter<'c> {$(
            #[doc = $doc]
            /// A value that already has the type is returned as it is.
            pub fn $method(&self, value: Value<'c>, to: Type<'c>) -> Value<'c> {
                if type_of(value) == to { value } else { self.value($op, &[value], to, &[]) }
            }
        )*}
    };
}

cast! {
    extsi "llvm.sext" "Sign extension.",
    extui "llvm.zext" "Zero extension.",
    trunci "llvm.trunc" "Truncation of an integer.",
    sitofp "llvm.sitofp" "Signed integer to floating point.",
    uitofp "llvm.uitofp" "Unsigned integer to floating point.",
    fptosi "llvm.fptosi" "Floating point to signed integer, towards zero.",
    extf "llvm.fpext" "Floating point to a wider type.",
    truncf "llvm.fptrunc" "Floating point to a narrower type, to nearest even.",
    ptrtoint "llvm.ptrtoint" "The address as an integer.",
    inttoptr "llvm.inttoptr" "An integer as an address.",
    addrspacecast "llvm.addrspacecast" "The same address in another address space.",
}

/// Comparison of integers: the predicate as MLIR numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum Cmpi {
    Eq = 0,
    Ne = 1,
    Slt = 2,
    Sle = 3,
    Sgt = 4,
    Sge = 5,
    Ult = 6,
    Ule = 7,
    Ugt = 8,
    Uge = 9,
}

/// Comparison of floating-point numbers: the predicate as MLIR numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum Cmpf {
    Oeq = 1,
    Ogt = 2,
    Oge = 3,
    Olt = 4,
    Ole = 5,
    Une = 13,
    Uno = 14,
}

impl<'c> Emitter<'c> {
    /// Compares two integer scalars.
    pub fn cmpi(&self, predicate: Cmpi, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.value("llvm.icmp", &[a, b], self.ty.i1, &[("predicate", self.long_attribute(predicate as i64))])
    }

    /// Compares two floating-point scalars.
    pub fn cmpf(&self, predicate: Cmpf, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.value("llvm.fcmp", &[a, b], self.ty.i1, &[("predicate", self.long_attribute(predicate as i64))])
    }

    /// The sum of two integers that have no set bit in common.
    pub fn add_disjoint(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let flags = self.attribute("#llvm.overflow<nsw, nuw>");
        self.value("llvm.add", &[a, b], type_of(a), &[("overflowFlags", flags)])
    }

    /// `condition ? a : b`.
    pub fn select(&self, condition: Value<'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        if a == b {
            return a;
        }
        self.value("llvm.select", &[condition, a, b], type_of(a), &[])
    }

    /// `a * b + c` with one rounding.
    pub fn fma(&self, a: Value<'c>, b: Value<'c>, c: Value<'c>) -> Value<'c> {
        self.value("llvm.intr.fma", &[a, b, c], type_of(a), &[])
    }

    /// A one-operand operation that keeps the type, such as `llvm.intr.fabs`.
    pub fn unary(&self, op: &str, value: Value<'c>) -> Value<'c> {
        self.value(op, &[value], type_of(value), &[])
    }

    /// The absolute value of an integer; the lowest stays what it is.
    pub fn absi(&self, value: Value<'c>) -> Value<'c> {
        let flag = self.attribute("false");
        self.value("llvm.intr.abs", &[value], type_of(value), &[("is_int_min_poison", flag)])
    }

    /// The number of leading zero bits; of zero, the width.
    pub fn clz(&self, value: Value<'c>) -> Value<'c> {
        let flag = self.attribute("false");
        self.value("llvm.intr.ctlz", &[value], type_of(value), &[("is_zero_poison", flag)])
    }

    /// Calls an LLVM intrinsic that returns a value.
    pub fn intrinsic(&self, name: &str, arguments: &[Value<'c>], result: Type<'c>) -> Value<'c> {
        let attributes = self.intrinsic_attributes(name, arguments.len());
        self.value("llvm.call_intrinsic", arguments, result, &attributes)
    }

    /// Calls an LLVM intrinsic that returns nothing.
    pub fn intrinsic_effect(&self, name: &str, arguments: &[Value<'c>]) {
        let attributes = self.intrinsic_attributes(name, arguments.len());
        self.effect("llvm.call_intrinsic", arguments, &attributes);
    }

    fn intrinsic_attributes(&self, name: &str, count: usize) -> [(&'static str, melior::ir::Attribute<'c>); 3] {
        use melior::ir::attribute::DenseI32ArrayAttribute;
        [
            ("intrin", self.string(name)),
            ("operandSegmentSizes", DenseI32ArrayAttribute::new(self.context, &[count as i32, 0]).into()),
            ("op_bundle_sizes", DenseI32ArrayAttribute::new(self.context, &[]).into()),
        ]
    }

    /// An undefined value, for unused results.
    pub fn poison(&self, ty: Type<'c>) -> Value<'c> {
        self.value("llvm.mlir.poison", &[], ty, &[])
    }

    /// A null pointer, or zero of any type.
    pub fn zero(&self, ty: Type<'c>) -> Value<'c> {
        self.value("llvm.mlir.zero", &[], ty, &[])
    }

    /// The fields of a struct value.
    pub fn unpack_struct(&self, value: Value<'c>, fields: &[Type<'c>]) -> Vec<Value<'c>> {
        use melior::ir::attribute::DenseI64ArrayAttribute;
        let at = |index: usize| DenseI64ArrayAttribute::new(self.context, &[index as i64]).into();
        fields
            .iter()
            .enumerate()
            .map(|(index, ty)| self.value("llvm.extractvalue", &[value], *ty, &[("position", at(index))]))
            .collect()
    }

    /// Inline PTX assembly. `constraints` is LLVM's string, outputs first; operands are `$0`, `$1`, ...
    ///
    /// With `effects` the assembly is kept in place and treated as convergent (every thread of the warp takes
    /// part); without, it must be arithmetic on its operands alone and may be moved, merged or dropped.
    pub fn assembly(
        &self,
        text: &str,
        constraints: &str,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        effects: bool,
    ) -> Vec<Value<'c>> {
        let mut attributes = vec![("asm_string", self.string(text)), ("constraints", self.string(constraints))];
        if effects {
            attributes.push(("has_side_effects", self.unit()));
        }
        let name = "llvm.inline_asm";
        match results {
            [] => {
                self.effect(name, operands, &attributes);
                Vec::new()
            }
            [ty] => vec![self.value(name, operands, *ty, &attributes)],
            fields => {
                let whole = self.value(name, operands, self.struct_type(fields), &attributes);
                self.unpack_struct(whole, fields)
            }
        }
    }

    /// Whether the type is one of the integer types.
    pub fn is_integer(&self, ty: Type<'c>) -> bool {
        ty.is_integer()
    }
}
