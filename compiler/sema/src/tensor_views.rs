//! Values that refer to tensors (descriptors and block pointers), and placeholders for values of any type.

use rtc_ir::{BlockPtrType, DescType, Elem, OpKind, Scalar, Shape, Type, Value};

use crate::emitter::{Emitter, R};
use crate::types::{ElemTy, scalar_shape};
use crate::values::{Descriptor, Padding, Tensor, Val};

impl<'a> Emitter<'a> {
    /// A descriptor; the strides are those of all dimensions but the last.
    pub(crate) fn describe(
        &mut self,
        base: Tensor,
        shape: &[Tensor],
        strides: &[Tensor],
        block: Shape,
        padding: Padding,
        nan: Option<Tensor>,
    ) -> R<Descriptor> {
        let elem = self.ir_elem(base.elem)?.pointee().unwrap_or(Scalar::I8);
        let numbers: Vec<Value> = shape.iter().chain(strides).map(|t| t.value).collect();
        let ty = Type::Desc(DescType { elem, shape: block, swizzle: 0 });
        let op = self.build(OpKind::MakeDesc {}, &[base.value], &[nan.map(|t| t.value)], &numbers, &[], &[ty])?;
        Ok(Descriptor { value: self.kernel.result(op, 0), base: base.elem, block, padding })
    }

    /// A descriptor of nothing, for where none is used.
    pub(crate) fn empty_descriptor(&mut self, ty: DescType) -> R<Value> {
        let rank = ty.shape.rank();
        let base = self.zero_of(Type::Scalar(Elem::Ptr(ty.elem)))?;
        let (size, stride) = (self.zero_of(Elem::I32.into())?, self.zero_of(Elem::I64.into())?);
        let numbers = [vec![size; rank], vec![stride; rank - 1]].concat();
        let op = self.build(OpKind::MakeDesc {}, &[base], &[], &numbers, &[], &[Type::Desc(ty)])?;
        Ok(self.kernel.result(op, 0))
    }

    /// `desc.shape`.
    pub(crate) fn descriptor_shape(&mut self, desc: Descriptor) -> R<Val<'a>> {
        let mut sizes = Vec::new();
        for axis in 0..desc.block.rank() {
            let value = match self.made_of(desc) {
                Some(numbers) => numbers[axis],
                None => self.emit(OpKind::DescSize { axis: axis as u32 }, &[desc.value])?,
            };
            sizes.push(Val::Tensor(Tensor { value, elem: ElemTy::I32, shape: scalar_shape() }));
        }
        Ok(Val::tuple(sizes))
    }

    /// `desc.strides`.
    pub(crate) fn descriptor_strides(&mut self, desc: Descriptor) -> R<Val<'a>> {
        let mut strides = Vec::new();
        let rank = desc.block.rank();
        for axis in 0..rank - 1 {
            let value = match self.made_of(desc) {
                Some(numbers) => numbers[rank + axis],
                None => self.emit(OpKind::DescStride { axis: axis as u32 }, &[desc.value])?,
            };
            strides.push(Val::Tensor(Tensor { value, elem: ElemTy::I64, shape: scalar_shape() }));
        }
        strides.push(Val::Tensor(self.int_literal(1, ElemTy::I64, scalar_shape())?));
        Ok(Val::tuple(strides))
    }

    /// The sizes and strides of a descriptor, if its creation is in sight: lints use them.
    fn made_of(&self, desc: Descriptor) -> Option<&[Value]> {
        let op = self.kernel.def_op(desc.value)?;
        matches!(self.kernel.kind(op), OpKind::MakeDesc {}).then(|| self.kernel.variadic(op))
    }

    /// A block pointer to nothing, for where none is used.
    pub(crate) fn empty_block_pointer(&mut self, ty: BlockPtrType) -> R<Value> {
        let rank = ty.shape.rank();
        let base = self.zero_of(Type::Scalar(Elem::Ptr(ty.elem)))?;
        let (wide, offset) = (self.zero_of(Elem::I64.into())?, self.zero_of(Elem::I32.into())?);
        let numbers = [vec![wide; 2 * rank], vec![offset; rank]].concat();
        let order = (0..rank as u32).rev().collect();
        let ty = Type::BlockPtr(ty);
        let op = self.build(OpKind::MakeBlockPtr { order }, &[base], &[], &numbers, &[], &[ty])?;
        Ok(self.kernel.result(op, 0))
    }

    /// A zero of an IR type; a null pointer for pointers, and an empty tensor at a null pointer for views.
    pub(crate) fn zero_of(&mut self, ty: Type) -> R<Value> {
        let zero = OpKind::Constant { value: rtc_ir::Literal::Int(0) };
        match (ty, ty.elem()) {
            (Type::Desc(desc), _) => self.empty_descriptor(desc),
            (Type::BlockPtr(block), _) => self.empty_block_pointer(block),
            (_, Some(elem)) if elem.is_ptr() => {
                let address = self.emit_typed(zero, &[], ty.with_elem(Elem::I64))?;
                self.emit(OpKind::IntToPtr { to: elem }, &[address])
            }
            (_, Some(elem)) if elem.is_float() => {
                self.emit_typed(OpKind::Constant { value: rtc_ir::Literal::float(0.0) }, &[], ty)
            }
            _ => self.emit_typed(zero, &[], ty),
        }
    }
}
