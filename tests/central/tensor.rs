//! Tensors with descriptors: arguments of the header, and maps that a launch makes itself.

use rtc_abi::metadata::Padding;
use rtc_emulator::tensor_map::{ElementType, Fill, TensorMap};
use rtc_ir::interp::{ArgValue, DescArg};
use rtc_ir::{DescType, Kernel, MapSource, Param, Scalar, TFLOAT32, Type};

/// A tensor in memory; sizes and strides in bytes, outermost first.
pub struct Tensor {
    ty: DescType,
    base: u64,
    shape: Vec<u64>,
    strides: Vec<u64>,
    pads_nan: bool,
    rounds_tf32: bool,
    is_signed: bool,
    /// Whether the box has no more rows than the tensor.
    shrinks: bool,
}

impl Tensor {
    /// One in row-major order.
    pub fn given(kernel: &Kernel, param: &Param, base: u64, shape: &[u64]) -> Result<Tensor, String> {
        let ty = type_of(kernel, param, shape.len())?;
        let inner = |axis: usize| shape[axis + 1..].iter().product::<u64>() * u64::from(ty.elem.bytes());
        let strides = (0..shape.len()).map(inner).collect();
        Ok(Tensor {
            ty,
            base,
            shape: shape.to_vec(),
            strides,
            pads_nan: false,
            rounds_tf32: false,
            is_signed: kernel.is_signed_map(param.value),
            shrinks: false,
        })
    }

    /// The value that a launch computes from its other arguments; `base` is that of the pointer.
    pub fn made(
        kernel: &Kernel,
        param: &Param,
        map: &MapSource,
        base: u64,
        value: &dyn Fn(&str) -> Option<i64>,
    ) -> Result<Tensor, String> {
        let ty = type_of(kernel, param, map.shape.len())?;
        let number = |expr: &rtc_abi::Expr| expr.eval(value).map_err(|e| e.to_string());
        let size = u64::from(ty.elem.bytes());
        let shape = map.shape.iter().map(|e| Ok(number(e)?.max(1) as u64)).collect::<Result<_, String>>()?;
        let strides = map.strides.iter().map(|e| Ok(number(e)? as u64 * size)).collect::<Result<_, String>>()?;
        let base = base.wrapping_add((number(&map.start)? as u64).wrapping_mul(size));
        let (pads_nan, rounds_tf32) = (map.padding == Padding::Nan, map.data_type == Some(TFLOAT32));
        let is_signed = kernel.is_signed_map(param.value);
        Ok(Tensor { ty, base, shape, strides, pads_nan, rounds_tf32, is_signed, shrinks: map.shrinks })
    }

    /// The tensor of a descriptor that the host makes; sizes and strides in elements. A map has no empty dimension.
    pub fn of_descriptor(
        kernel: &Kernel,
        param: &Param,
        base: u64,
        (shape, strides): (&[i64], &[i64]),
        pads_nan: bool,
    ) -> Result<Tensor, String> {
        let ty = type_of(kernel, param, shape.len())?;
        let bytes = u64::from(ty.elem.bytes());
        let shape = shape.iter().map(|size| (*size).max(1) as u64).collect();
        let strides = strides.iter().map(|stride| *stride as u64 * bytes).collect();
        let is_signed = kernel.is_signed_map(param.value);
        Ok(Tensor { ty, base, shape, strides, pads_nan, rounds_tf32: false, is_signed, shrinks: false })
    }

    /// The box, innermost dimension first.
    fn boxes(&self) -> Vec<u32> {
        let mut boxes: Vec<u32> = self.ty.shape.iter().rev().copied().collect();
        if let (true, [.., of, _]) = (self.shrinks, &self.shape[..]) {
            boxes[1] = boxes[1].min(*of as u32);
        }
        boxes
    }

    /// As the interpreter takes it.
    pub fn described(&self) -> ArgValue {
        let Tensor { base, pads_nan, rounds_tf32, .. } = *self;
        let rows = self.boxes().get(1).copied();
        let mut desc = DescArg { base, pads_nan, rounds_tf32, rows, ..DescArg::default() };
        desc.shape[..self.shape.len()].copy_from_slice(&self.shape);
        desc.strides[..self.shape.len()].copy_from_slice(&self.strides);
        ArgValue::Desc(desc)
    }

    /// The arguments for the driver, innermost dimension first.
    pub fn fields(&self) -> Result<serde_json::Value, String> {
        let inner_first = |sizes: &[u64]| sizes.iter().rev().copied().collect::<Vec<u64>>();
        let boxes = self.boxes();
        let element = if self.rounds_tf32 { ElementType::Tf32 } else { element(self.ty.elem, self.is_signed)? };
        Ok(serde_json::json!({
            "type": element as u32, "base": self.base, "sizes": inner_first(&self.shape),
            "strides": inner_first(&self.strides)[1..], "box": boxes, "swizzle": self.ty.swizzle, "nan": self.pads_nan,
        }))
    }

    /// As the emulator takes it.
    pub fn encoded(&self) -> Result<[u8; 128], String> {
        let inner_first = |sizes: &[u64]| sizes.iter().rev().copied().collect::<Vec<u64>>();
        let strides = inner_first(&self.strides);
        let boxes = self.boxes();
        let element = if self.rounds_tf32 { ElementType::Tf32 } else { element(self.ty.elem, self.is_signed)? };
        let map = TensorMap::tiled(element, self.base, &inner_first(&self.shape), &strides[1..], &boxes);
        let fill = if self.pads_nan { Fill::Nan } else { Fill::Zero };
        let map = TensorMap { swizzle: self.ty.swizzle, fill, ..map.map_err(|e| e.to_string())? };
        map.encode().map_err(|e| e.to_string())
    }
}

fn type_of(kernel: &Kernel, param: &Param, rank: usize) -> Result<DescType, String> {
    match kernel.value_type(param.value) {
        Type::Desc(ty) if ty.shape.rank() == rank => Ok(ty),
        ty => Err(format!("parameter `{}` is {ty}, not a descriptor with {rank} sizes", param.name)),
    }
}

fn element(scalar: Scalar, is_signed: bool) -> Result<ElementType, String> {
    Ok(match scalar {
        Scalar::I8 | Scalar::F8E4 | Scalar::F8E5 | Scalar::F8E4B15 => ElementType::U8,
        Scalar::I16 => ElementType::U16,
        Scalar::I32 if is_signed => ElementType::S32,
        Scalar::I64 if is_signed => ElementType::S64,
        Scalar::I32 => ElementType::U32,
        Scalar::I64 => ElementType::U64,
        Scalar::F16 => ElementType::F16,
        Scalar::BF16 => ElementType::Bf16,
        Scalar::F32 => ElementType::F32,
        Scalar::F64 => ElementType::F64,
        Scalar::I1 => return Err("there are no tensors of `i1`".into()),
    })
}
