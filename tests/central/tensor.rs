//! Arguments that are tensor descriptors.

use rtc_emulator::tensor_map::{ElementType, TensorMap};
use rtc_ir::interp::{ArgValue, DescArg};
use rtc_ir::{DescType, Kernel, Param, Scalar, Type};

/// The descriptor that the interpreter takes, of a tensor in row-major order.
pub fn described(kernel: &Kernel, param: &Param, base: u64, shape: &[u64]) -> Result<ArgValue, String> {
    let ty = type_of(kernel, param, shape)?;
    let mut desc = DescArg { base, ..DescArg::default() };
    desc.shape[..shape.len()].copy_from_slice(shape);
    desc.strides[..shape.len()].copy_from_slice(&strides(&ty, shape));
    Ok(ArgValue::Desc(desc))
}

/// The tensor map that the emulator takes.
pub fn encoded(kernel: &Kernel, param: &Param, base: u64, shape: &[u64]) -> Result<[u8; 128], String> {
    let ty = type_of(kernel, param, shape)?;
    let inner_first = |sizes: &[u64]| sizes.iter().rev().copied().collect::<Vec<u64>>();
    let strides = inner_first(&strides(&ty, shape));
    let boxes: Vec<u32> = ty.shape.iter().rev().copied().collect();
    let map = TensorMap::tiled(element(ty.elem)?, base, &inner_first(shape), &strides[1..], &boxes);
    let map = TensorMap { swizzle: ty.swizzle, ..map.map_err(|e| e.to_string())? };
    map.encode().map_err(|e| e.to_string())
}

fn type_of(kernel: &Kernel, param: &Param, shape: &[u64]) -> Result<DescType, String> {
    match kernel.value_type(param.value) {
        Type::Desc(ty) if ty.shape.rank() == shape.len() => Ok(ty),
        ty => Err(format!("parameter `{}` is {ty}, not a descriptor with {} sizes", param.name, shape.len())),
    }
}

/// Bytes from one index to the next.
fn strides(ty: &DescType, shape: &[u64]) -> Vec<u64> {
    let inner = |axis: usize| shape[axis + 1..].iter().product::<u64>() * u64::from(ty.elem.bytes());
    (0..shape.len()).map(inner).collect()
}

fn element(scalar: Scalar) -> Result<ElementType, String> {
    Ok(match scalar {
        Scalar::I8 | Scalar::F8E4 | Scalar::F8E5 | Scalar::F8E4B15 => ElementType::U8,
        Scalar::I16 => ElementType::U16,
        Scalar::I32 => ElementType::U32,
        Scalar::I64 => ElementType::U64,
        Scalar::F16 => ElementType::F16,
        Scalar::BF16 => ElementType::Bf16,
        Scalar::F32 => ElementType::F32,
        Scalar::F64 => ElementType::F64,
        Scalar::I1 => return Err("there are no tensors of `i1`".into()),
    })
}
