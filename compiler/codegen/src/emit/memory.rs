//! Addresses, loads, stores and atomics.

use melior::{
    dialect::llvm,
    ir::{
        Attribute,
        attribute::{DenseI32ArrayAttribute, FlatSymbolRefAttribute, TypeAttribute},
    },
};

use super::{Emitter, Type, Value, type_of};

/// An address space, as NVPTX numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Space {
    Global = 1,
    Shared = 3,
}

/// The assumptions about a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LoadKind {
    /// An ordinary load.
    #[default]
    Plain,
    /// The load is kept as it is: `ld.volatile`.
    Volatile,
}

/// How an access looks to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AccessAttrs {
    /// The alignment of the address in bytes; must be a power of two.
    pub align: u32,
    pub kind: LoadKind,
}

/// LLVM marks a dynamic index of a `getelementptr` by this number in the list of constants.
const DYNAMIC_INDEX: i32 = i32::MIN;
/// `inbounds`, which includes `nusw`.
const INBOUNDS: i64 = 3;

impl<'c> Emitter<'c> {
    /// The pointer type of an address space.
    pub fn pointer_type(&self, space: Space) -> Type<'c> {
        llvm::r#type::pointer(self.context, space as u32)
    }

    /// `base + index * size of element`; the index is sign-extended.
    pub fn offset(&self, base: Value<'c>, index: Value<'c>, element: Type<'c>) -> Value<'c> {
        self.element_pointer(base, &[index], &[DYNAMIC_INDEX], element, false)
    }

    /// `base + bytes`, where the result lies within the object that `base` points to.
    pub fn byte_offset(&self, base: Value<'c>, bytes: Value<'c>) -> Value<'c> {
        self.element_pointer(base, &[bytes], &[DYNAMIC_INDEX], self.ty.i8, true)
    }

    /// `base + bytes` for a constant, where the result lies within the object that `base` points to.
    pub fn constant_offset(&self, base: Value<'c>, bytes: i32) -> Value<'c> {
        if bytes == 0 {
            return base;
        }
        self.element_pointer(base, &[], &[bytes], self.ty.i8, true)
    }

    fn element_pointer(
        &self,
        base: Value<'c>,
        dynamic: &[Value<'c>],
        indices: &[i32],
        element: Type<'c>,
        inbounds: bool,
    ) -> Value<'c> {
        let mut operands = vec![base];
        operands.extend_from_slice(dynamic);
        let mut attributes: Vec<(&str, Attribute<'c>)> = vec![
            ("rawConstantIndices", DenseI32ArrayAttribute::new(self.context, indices).into()),
            ("elem_type", TypeAttribute::new(element).into()),
        ];
        if inbounds {
            attributes.push(("noWrapFlags", self.int_attribute(INBOUNDS)));
        }
        self.value("llvm.getelementptr", &operands, type_of(base), &attributes)
    }

    /// The address of a module-level symbol.
    pub fn address_of(&self, symbol: &str, space: Space) -> Value<'c> {
        let name = FlatSymbolRefAttribute::new(self.context, symbol).into();
        self.value("llvm.mlir.addressof", &[], self.pointer_type(space), &[("global_name", name)])
    }

    /// Loads a value of a scalar or vector type.
    pub fn load(&self, pointer: Value<'c>, ty: Type<'c>, access: AccessAttrs) -> Value<'c> {
        let mut attributes = vec![("alignment", self.long_attribute(i64::from(access.align)))];
        match access.kind {
            LoadKind::Plain => {}
            LoadKind::Volatile => attributes.push(("volatile_", self.unit())),
        }
        self.value("llvm.load", &[pointer], ty, &attributes)
    }

    /// Stores a scalar or vector value.
    pub fn store(&self, value: Value<'c>, pointer: Value<'c>, access: AccessAttrs) {
        let mut attributes = vec![("alignment", self.long_attribute(i64::from(access.align)))];
        if access.kind == LoadKind::Volatile {
            attributes.push(("volatile_", self.unit()));
        }
        self.effect("llvm.store", &[value, pointer], &attributes);
    }

    /// An `llvm.assume` of a condition.
    pub fn assume(&self, condition: Value<'c>) {
        let none = DenseI32ArrayAttribute::new(self.context, &[]).into();
        self.effect("llvm.intr.assume", &[condition], &[("op_bundle_sizes", none)]);
    }

    /// Calls a function by its symbol.
    pub fn call(&self, symbol: &str, arguments: &[Value<'c>], results: &[Type<'c>]) -> Option<Value<'c>> {
        let attributes = [
            ("callee", FlatSymbolRefAttribute::new(self.context, symbol).into()),
            ("operandSegmentSizes", DenseI32ArrayAttribute::new(self.context, &[arguments.len() as i32, 0]).into()),
            ("op_bundle_sizes", DenseI32ArrayAttribute::new(self.context, &[]).into()),
        ];
        let operation = self.operation("llvm.call", arguments, results, &attributes);
        (!results.is_empty()).then(|| super::first_result(operation))
    }

    /// Memory of the thread's own, for `count` elements; made at the start of the function.
    pub fn local(&self, element: Type<'c>, count: i32, align: u32) -> Value<'c> {
        self.in_entry(|| {
            let attributes = [
                ("elem_type", TypeAttribute::new(element).into()),
                ("alignment", self.long_attribute(i64::from(align))),
            ];
            self.value("llvm.alloca", &[self.i32(count)], self.ty.generic, &attributes)
        })
    }
}
