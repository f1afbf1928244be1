//! The metadata of a kernel: the information that a launch needs, and the offsets of its parameters.

use std::ops::Range;

use rtc_abi::metadata::Metadata;
use rtc_abi::{DType, HostTensorMap, ParamType, Target, TensorMap, ValueType};

use crate::effects::Space;
use crate::{Elem, Hidden, Kernel, MAP_BYTES, Op, OpKind, Param, Scalar, Type, view};

impl Kernel {
    /// The first operation of the body that may access global memory or have another external effect.
    pub fn first_access(&self) -> Option<Op> {
        let outside =
            |op: &Op| self.effects(*op).any(|(effect, _)| matches!(effect.space, Space::Global | Space::Outside));
        let alone =
            |op: &Op| self.op(*op).blocks.is_empty() && (!outside(op) || matches!(self.kind(*op), OpKind::Barrier {}));
        self.ops(self.body()).find(|op| !alone(op))
    }

    /// Whether the kernel waits for the launch before it, before it touches memory: then it may be launched before that one
    /// has ended.
    pub fn awaits_launch(&self) -> bool {
        self.first_access().is_some_and(|op| matches!(self.kind(op), OpKind::GridDependency { wait: true }))
    }

    /// The operations that make tensor maps, in program order, each with its places in scratch memory of the block.
    pub fn maps(&self) -> Vec<(Op, Range<u32>)> {
        let mut end = 0;
        let makers = crate::walk(self).into_iter().filter(|op| matches!(self.kind(*op), OpKind::MakeMap { .. }));
        let placed = makers.map(|op| {
            let start = end;
            end += if view::MakeMap::at(self, op).turn().is_some() { 2 } else { 1 };
            (op, start..end)
        });
        placed.collect()
    }

    /// The bytes of global memory that a block uses in addition to its arguments.
    pub fn global_scratch_bytes(&self) -> u32 {
        self.maps().last().map_or(0, |(_, places)| places.end) * MAP_BYTES
    }

    /// The information that a launch needs. Fields that the kernel does not determine are empty: constexprs, the
    /// options of the launch itself, hash and version.
    pub fn metadata(&self, target: &Target) -> Metadata {
        let (major, minor) = target.ptx_version;
        let param = |param: &Param| rtc_abi::Param {
            divisible_by: param.divisible_by.max(1),
            tensor_map: tensor_map(param, self.value_type(param.value)).filter(|_| param.hidden.is_none()),
            hidden: param.hidden.as_ref().map(|hidden| launched(hidden, self.value_type(param.value))),
            ..rtc_abi::Param::new(&param.name, param.ty.clone())
        };
        let params = self.params.iter().map(param).collect();
        Metadata {
            num_warps: self.options.given_warps.unwrap_or(self.options.num_warps),
            num_ctas: self.options.num_ctas,
            shared_bytes: self.shared_bytes,
            global_scratch_bytes: self.global_scratch_bytes().into(),
            global_scratch_align: if self.global_scratch_bytes() > 0 { MAP_BYTES.into() } else { 1 },
            cluster: [self.options.num_ctas, 1, 1],
            persistent: self.persistent,
            ..Metadata::new(&self.name, target.name, major * 10 + minor, self.threads_per_block(), params)
        }
    }
}

/// A parameter's type as a launcher or as the tile IR spells it: `*fp32`, `*f32`.
pub(crate) fn param_type(text: &str) -> Option<ParamType> {
    let spelt_as_ir = || match text.strip_prefix('*') {
        Some(pointee) => pointee.parse().ok().map(Elem::Ptr),
        None => text.parse().ok().map(Elem::Num),
    };
    text.parse().ok().or_else(|| spelt_as_ir().map(of_elem))
}

/// The type of a parameter that nothing else is said of: integers are signed, pointers are for loads and stores.
pub(crate) fn default_param_type(ty: Type) -> Option<ParamType> {
    match ty {
        Type::Desc(desc) => Some(ParamType::Descriptor { element: dtype(desc.elem), block_shape: desc.shape.to_vec() }),
        _ => ty.elem().map(of_elem),
    }
}

/// How the host makes the tensor map of a parameter that is one. Its integers have the sign that the parameter says.
fn tensor_map(param: &Param, ty: Type) -> Option<TensorMap> {
    let Type::Desc(desc) = ty else { return None };
    let block_shape = desc.shape.to_vec();
    let dtype = match param.ty {
        ParamType::Descriptor { element, .. } if desc.elem.is_int() && element.is_integer() => element,
        _ => dtype(desc.elem),
    };
    Some(TensorMap { dtype, block_shape, swizzle: desc.swizzle, l2_promotion: 128, interleave: 0 })
}

/// The value that the launch passes for a hidden parameter of that type.
fn launched(hidden: &Hidden, ty: Type) -> rtc_abi::Hidden {
    match (hidden, ty) {
        (Hidden::TensorMap(map), Type::Desc(desc)) => rtc_abi::Hidden::TensorMap(Box::new(HostTensorMap {
            base: map.base.clone(),
            start: map.start.clone(),
            dtype: dtype(desc.elem),
            shape: map.shape.clone(),
            strides: map.strides.clone(),
            box_shape: desc.shape.to_vec(),
            swizzle: desc.swizzle,
            data_type: map.data_type,
            padding: map.padding,
            shrinks: map.shrinks,
        })),
        (Hidden::Grid(axis), _) => rtc_abi::Hidden::Grid(*axis),
        // The verifier refuses these.
        (Hidden::TensorMap(_), _) => rtc_abi::Hidden::Grid(0),
    }
}

/// Whether a parameter can be a value of that type.
pub(crate) fn fits(param: &Param, ty: Type) -> bool {
    let Param { ty: param, hidden, .. } = param;
    match ty {
        Type::Scalar(elem) => param.is_pointer() == elem.num().is_none() && param.bytes() == elem.bytes(),
        Type::Desc(desc) => match param {
            ParamType::TensorMap => matches!(hidden, Some(Hidden::TensorMap(_))),
            // A block of the source may be copied as several boxes.
            ParamType::Descriptor { element, block_shape } => {
                hidden.is_none() && element.bits() == desc.elem.bits() && block_shape.len() == desc.shape.rank()
            }
            ParamType::Value(_) => false,
        },
        _ => false,
    }
}

fn of_elem(elem: Elem) -> ParamType {
    match elem {
        Elem::Num(scalar) => dtype(scalar).into(),
        Elem::Ptr(scalar) => ValueType::Pointer { pointee: dtype(scalar), is_const: false }.into(),
    }
}

fn dtype(scalar: Scalar) -> DType {
    match scalar {
        Scalar::I1 => DType::UInt1,
        Scalar::I8 => DType::Int8,
        Scalar::I16 => DType::Int16,
        Scalar::I32 => DType::Int32,
        Scalar::I64 => DType::Int64,
        Scalar::F8E5 => DType::Fp8E5,
        Scalar::F8E4 => DType::Fp8E4Nv,
        Scalar::F8E4B15 => DType::Fp8E4B15,
        Scalar::F16 => DType::Fp16,
        Scalar::BF16 => DType::Bf16,
        Scalar::F32 => DType::Fp32,
        Scalar::F64 => DType::Fp64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_get_their_places() {
        let text = "kernel @k(%flag: i1 {sig = \"u1\"}, %x: ptr<f32> {sig = \"*kfp32\", align = 16}, %h: f16, %n: i32) \
                    warps 4 phase tile {\n  ret\n}\n";
        let metadata = crate::text::parse(text).expect("reads").metadata(Target::named("sm_80").expect("known"));
        let places: Vec<_> =
            metadata.params.iter().map(|p| (&*p.name, p.ty.to_string(), p.offset, p.divisible_by)).collect();
        let expected = [("flag", "u1", 0, 1), ("x", "*kfp32", 8, 16), ("h", "fp16", 16, 1), ("n", "i32", 20, 1)];
        assert_eq!(places, expected.map(|(name, ty, at, factor)| (name, ty.to_owned(), at, factor)));
        assert_eq!((metadata.threads_per_block, metadata.ptx_version), (128, 83));
        assert_eq!(Metadata::from_json(&metadata.to_json()), Ok(metadata));
    }

    #[test]
    fn the_launch_fills_the_hidden_ones() {
        let text = "kernel @k(%a_ptr: ptr<f32>, %M: i32, %K: i32, %programs: i32 {name = \"grid.0\", grid = 0}, \
                    %a: desc<64x32xf32, 128> {base = \"a_ptr\", start = \"K * 2\", shape = [\"M\", \"K\"], \
                    strides = [\"K\", 1], data_type = 11, padding = nan}) warps 4 persistent 2 phase tile {\n  ret\n}\n";
        let kernel = crate::text::parse(text).expect("reads");
        assert!(crate::verify(&kernel).is_ok());
        let metadata = kernel.metadata(Target::named("sm_90a").expect("known"));
        assert_eq!(metadata.persistent.map(|p| p.blocks_per_multiprocessor), Some(2));
        assert_eq!(metadata.visible_params().len(), 3);
        assert_eq!(metadata.params[3].hidden, Some(rtc_abi::Hidden::Grid(0)));
        let Some(rtc_abi::Hidden::TensorMap(map)) = &metadata.params[4].hidden else { panic!("no map") };
        assert_eq!((map.dtype, &*map.box_shape, map.swizzle), (DType::Fp32, &[64, 32][..], 128));
        assert_eq!((map.start.to_string(), map.data_type), ("K * 2".to_owned(), Some(crate::TFLOAT32)));
        assert_eq!((metadata.params[4].offset, &metadata.params[4].tensor_map), (64, &None));
        assert_eq!(Metadata::from_json(&metadata.to_json()), Ok(metadata));
    }

    #[test]
    fn types_as_the_tile_ir_spells_them() {
        for scalar in Scalar::ALL {
            for elem in [Elem::Num(scalar), Elem::Ptr(scalar)] {
                let ty = default_param_type(Type::Scalar(elem)).expect("a scalar");
                let mut kernel = Kernel::new("k", Default::default());
                kernel.add_param("x", Type::Scalar(elem), ty.clone(), 1);
                assert!(fits(&kernel.params[0], Type::Scalar(elem)), "{ty}");
                assert_eq!(param_type(&ty.to_string()), Some(ty));
            }
            assert_eq!(param_type(&format!("*{scalar}")), Some(of_elem(Elem::Ptr(scalar))));
        }
        assert_eq!(param_type("f33"), None);
    }
}
