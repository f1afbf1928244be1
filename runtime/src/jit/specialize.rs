//! From the arguments of a launch to what the kernel is compiled for, as Triton does it.
//!
//! Each parameter has a [`Rule`], made once of its declaration. At a launch the rules turn the arguments into *words*, which
//! are equal for arguments that lead to the same kernel: this is all that a launch with known kinds of arguments pays.
//! Only for words that are new the arguments are turned into a specialization.
//!
//! | argument | type | also part of the kernel |
//! | --- | --- | --- |
//! | truth value | `u1` | |
//! | integer | `i32`, or `i64` or `u64` if it needs that | the value 1; whether it is a multiple of 16 |
//! | float | `fp32` | |
//! | descriptor | descriptor of its elements and block | |
//! | tuple | tuple of its elements | what their rules make part of it |
//! | buffer or slice of `T` | pointer to `T` | whether its address is a multiple of 16 |
//!
//! An annotation pins the type. Pinned floats and truth values are not specialized, and a pinned 1 stays a run-time value.

use crate::pointer::Kind;
use crate::{Arg, TensorDescriptor};
use rtc_abi::spec::{ArgKind, ConstValue};
use rtc_abi::{DType, ValueType};
use rtc_compiler::{ParamInfo, PinnedType};
use smallvec::SmallVec;

/// What arguments look like to the compiler; on the stack for most kernels.
pub(crate) type Words = SmallVec<[u64; 32]>;

/// How one parameter specializes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    is_constexpr: bool,
    pinned: Option<PinnedType>,
    /// An integer may become a constant 1.
    one: bool,
    /// Multiples of 16 are told from others.
    alignment: bool,
}

/// Words begin with one of these.
mod tag {
    pub(super) const INT: u64 = 1;
    pub(super) const ONE: u64 = 2;
    pub(super) const FLOAT: u64 = 3;
    pub(super) const BOOL: u64 = 4;
    pub(super) const POINTER: u64 = 5;
    pub(super) const ADDRESS: u64 = 6;
    pub(super) const CONST_INT: u64 = 7;
    pub(super) const CONST_FLOAT: u64 = 8;
    pub(super) const CONST_BOOL: u64 = 9;
    pub(super) const UNFIT: u64 = 10;
    pub(super) const TUPLE: u64 = 11;
    pub(super) const DESCRIPTOR: u64 = 12;
    pub(super) const CONSTANT: u64 = 13;
    pub(super) const NAMED_TUPLE: u64 = 14;
}

impl Rule {
    pub(crate) fn of(param: &ParamInfo) -> Rule {
        let is_pinned_number = matches!(param.pinned, Some(PinnedType::Type(ValueType::Scalar(ty))) if !ty.is_integer() || ty == DType::UInt1);
        Rule {
            is_constexpr: param.is_constexpr,
            pinned: param.pinned,
            one: param.specialize && !matches!(param.pinned, Some(PinnedType::Type(_))),
            alignment: param.specialize && param.specialize_alignment && !is_pinned_number,
        }
    }

    /// Adds the words of an argument.
    pub(crate) fn words(&self, arg: &Arg<'_>, out: &mut Words) {
        if let Arg::Tuple(items) = arg {
            out.push(tag::TUPLE | (items.len() as u64) << 16);
            return items.iter().for_each(|item| self.words(item, out));
        }
        if let Arg::NamedTuple(names, items) = arg {
            out.extend([tag::NAMED_TUPLE | (items.len() as u64) << 16, names.id()]);
            return items.iter().for_each(|item| self.words(item, out));
        }
        if let Arg::Constant(constant) = arg {
            return out.extend([tag::CONSTANT, constant.id()]);
        }
        if self.is_constexpr {
            match arg {
                Arg::Int(value) => out.extend([tag::CONST_INT, *value as u64, (*value >> 64) as u64]),
                Arg::Float(value) => out.extend([tag::CONST_FLOAT, value.to_bits()]),
                Arg::Bool(value) => out.extend([tag::CONST_BOOL, u64::from(*value)]),
                _ => out.push(tag::UNFIT),
            }
            return;
        }
        if let Arg::Descriptor(descriptor) = arg {
            let [sizes, strides] = descriptor.extents().ranks();
            let dtype = descriptor.base().place().map_or(0, |place| place.dtype as u64 + 1);
            out.push(tag::DESCRIPTOR | (sizes as u64) << 8 | (strides as u64) << 12 | dtype << 16);
            let extents = descriptor.extents();
            out.push(extents.block().len() as u64);
            return out.extend(extents.block().iter().map(|size| u64::from(*size)));
        }
        let aligned = |is: bool| u64::from(is && self.alignment) << 8;
        out.push(match arg {
            Arg::Int(1) if self.one => tag::ONE,
            Arg::Int(value) => tag::INT | aligned(value % 16 == 0) | (int_type(*value) as u64) << 16,
            Arg::Float(_) => tag::FLOAT,
            Arg::Bool(_) => tag::BOOL,
            Arg::Pointer(pointer) => {
                let is_aligned = aligned(pointer.address().is_multiple_of(16));
                match pointer.0 {
                    Kind::Read(place) | Kind::Write(place) => tag::POINTER | is_aligned | (place.dtype as u64) << 16,
                    Kind::Address(_) => tag::ADDRESS | is_aligned,
                }
            }
            _ => tag::UNFIT,
        });
    }

    /// What the kernel is compiled for; what is wrong with the argument, if anything is.
    pub(crate) fn specialize(&self, arg: &Arg<'_>) -> Result<ArgKind, String> {
        if let Arg::Tuple(items) = arg {
            let items = items.iter().map(|item| self.specialize(item)).collect::<Result<_, _>>()?;
            return Ok(ArgKind::Tuple { items, fields: None });
        }
        if let Arg::NamedTuple(names, items) = arg {
            let items = items.iter().map(|item| self.specialize(item)).collect::<Result<_, _>>()?;
            return Ok(ArgKind::Tuple { items, fields: field_names(names.value()) });
        }
        if let Arg::Constant(constant) = arg {
            return Ok(ArgKind::Constexpr(constant.value().clone()));
        }
        if self.is_constexpr {
            return match arg {
                Arg::Int(value) => Ok(ArgKind::Constexpr(ConstValue::Int(*value))),
                Arg::Float(value) => Ok(ArgKind::Constexpr(ConstValue::Float(*value))),
                Arg::Bool(value) => Ok(ArgKind::Constexpr(ConstValue::Bool(*value))),
                _ => Err("it is a constexpr: pass a number, or set it by `Options::constexpr`".into()),
            };
        }
        let factor = |is: bool| (is && self.alignment).then_some(16);
        let (ty, divisible_by) = match arg {
            Arg::Int(1) if self.one => return Ok(ArgKind::Constexpr(ConstValue::Int(1))),
            Arg::Int(value) => {
                let inferred = match int_type(*value) {
                    IntType::I32 => DType::Int32,
                    IntType::I64 => DType::Int64,
                    IntType::U64 => DType::UInt64,
                    IntType::None => return Err(format!("{value} fits no integer type")),
                };
                (ValueType::Scalar(inferred), factor(value % 16 == 0))
            }
            Arg::Float(_) => (ValueType::Scalar(DType::Fp32), None),
            Arg::Bool(_) => (ValueType::Scalar(DType::UInt1), None),
            Arg::Pointer(pointer) => {
                let divisible_by = factor(pointer.address().is_multiple_of(16));
                let is_const = self.pinned == Some(PinnedType::ConstPointer);
                match (pointer.0, self.pinned) {
                    (Kind::Read(place) | Kind::Write(place), _) => {
                        (ValueType::Pointer { pointee: place.dtype, is_const }, divisible_by)
                    }
                    (Kind::Address(_), Some(PinnedType::Type(ty @ ValueType::Pointer { .. }))) => (ty, divisible_by),
                    (Kind::Address(_), _) => {
                        return Err("an address tells no element type; annotate the parameter, as in `x: \"*fp32\"`, \
                                    or pass a slice"
                            .into());
                    }
                }
            }
            Arg::Descriptor(descriptor) => return described(descriptor),
            // Seen to above.
            Arg::Tuple(_) | Arg::NamedTuple(..) | Arg::Constant(_) => return Err("it is a tuple".into()),
        };
        let ty = match self.pinned {
            Some(PinnedType::Type(pinned)) => pinned,
            Some(PinnedType::ConstPointer) if !matches!(ty, ValueType::Pointer { .. }) => {
                return Err("its annotation says that it is a pointer".into());
            }
            _ => ty,
        };
        // A promise about what is neither an address nor an integer means nothing.
        let takes_factor = matches!(ty, ValueType::Pointer { .. })
            || matches!(ty, ValueType::Scalar(ty) if ty.is_integer() && ty != DType::UInt1);
        Ok(ArgKind::Value { ty, divisible_by: divisible_by.filter(|_| takes_factor) })
    }
}

/// The texts of a tuple of texts.
fn field_names(names: &ConstValue) -> Option<Vec<String>> {
    let ConstValue::Tuple { items, .. } = names else { return None };
    let text = |item: &ConstValue| if let ConstValue::Str(text) = item { Some(text.clone()) } else { None };
    items.iter().map(text).collect()
}

/// A descriptor by its elements and its block.
fn described(descriptor: &TensorDescriptor<'_>) -> Result<ArgKind, String> {
    let extents = descriptor.extents();
    let (block, [sizes, strides]) = (extents.block(), extents.ranks());
    if block.is_empty() {
        return Err("the descriptor does not tell the block that the kernel moves: add `.with_block(&[..])`".into());
    }
    if [sizes, strides] != [block.len(); 2] {
        return Err(format!(
            "the descriptor has {sizes} sizes and {strides} strides, and its block {} sizes",
            block.len()
        ));
    }
    let Some(place) = descriptor.base().place() else {
        return Err("an address tells no element type; make the descriptor of a slice".into());
    };
    Ok(ArgKind::Descriptor { element: place.dtype, block_shape: block.to_vec() })
}

#[derive(Clone, Copy)]
enum IntType {
    I32,
    I64,
    U64,
    None,
}

/// The first type that holds it.
fn int_type(value: i128) -> IntType {
    if i32::try_from(value).is_ok() {
        IntType::I32
    } else if i64::try_from(value).is_ok() {
        IntType::I64
    } else if u64::try_from(value).is_ok() {
        IntType::U64
    } else {
        IntType::None
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::{Device, DeviceAddress};

    fn rule(declaration: &str, decorator: &str) -> Rule {
        let text = format!("@triton.jit{decorator}\ndef k({declaration}):\n    pass\n");
        let program = rtc_compiler::Program::parse(&[rtc_compiler::Source::new("k.rt", text)]);
        Rule::of(&program.kernels()[0].params[0])
    }

    fn kind(rule: &Rule, arg: impl Into<Arg<'static>>) -> String {
        match rule.specialize(&arg.into()) {
            Ok(kind) => kind.to_string(),
            Err(message) => format!("error: {message}"),
        }
    }

    #[test]
    fn numbers_are_typed_by_their_values() {
        let plain = rule("x", "");
        for (value, expected) in [
            (1i128, "1"),
            (0, "i32:16"),
            (-32, "i32:16"),
            (17, "i32"),
            (-1, "i32"),
            (i32::MAX.into(), "i32"),
            (i32::MIN.into(), "i32:16"),
            (1 << 31, "i64:16"),
            ((1 << 32) - 1, "i64"),
            (i64::MIN.into(), "i64:16"),
            (1 << 63, "u64:16"),
            (u64::MAX.into(), "u64"),
            (1 << 64, "error: 18446744073709551616 fits no integer type"),
        ] {
            assert_eq!(kind(&plain, Arg::Int(value)), expected);
        }
        assert_eq!(kind(&plain, 1.0f64), "fp32");
        assert_eq!(kind(&plain, true), "u1");
    }

    #[test]
    fn the_decorator_decides_what_is_specialized() {
        let never = rule("x", "(do_not_specialize=['x'])");
        let unaligned = rule("x", "(do_not_specialize_on_alignment=[0])");
        for (value, free, value_only) in [(1i128, "i32", "1"), (16, "i32", "i32"), (1 << 40, "i64", "i64")] {
            assert_eq!(kind(&never, Arg::Int(value)), free);
            assert_eq!(kind(&unaligned, Arg::Int(value)), value_only);
        }
    }

    #[test]
    fn annotations_pin_the_type() {
        let int64 = rule("x: tl.int64", "");
        assert_eq!(kind(&int64, 1), "i64");
        assert_eq!(kind(&int64, 48), "i64:16");
        assert_eq!(kind(&rule("x: float", ""), 16), "fp32");
        assert_eq!(kind(&rule("x: 'fp64'", ""), 0.5f64), "fp64");
        assert_eq!(kind(&rule("x: 'bool'", ""), 16), "u1");
        assert_eq!(kind(&rule("x: torch.Tensor", ""), 1), "1");
        assert_eq!(kind(&rule("x: tl.constexpr", ""), 64), "64");
        assert_eq!(kind(&rule("x: tl.constexpr", ""), 0.5f64), "0.5");
        assert!(kind(&rule("x: tl.const", ""), 3).contains("says that it is a pointer"));
    }

    #[test]
    fn pointers_have_the_type_of_their_elements() {
        let device = Device::emulator();
        let buffer = device.zeros::<half::f16>(64).unwrap();
        let of = |rule: &Rule, start: usize| {
            let slice = buffer.slice(start..);
            rule.specialize(&slice.into()).unwrap().to_string()
        };
        let plain = rule("x", "");
        assert_eq!(of(&plain, 0), "*fp16:16");
        assert_eq!(of(&plain, 8), "*fp16:16");
        assert_eq!(of(&plain, 1), "*fp16");
        assert_eq!(of(&rule("x: tl.const", ""), 0), "*kfp16:16");
        assert_eq!(of(&rule("x", "(do_not_specialize_on_alignment=['x'])"), 0), "*fp16");
        assert!(kind(&plain, DeviceAddress::NULL).contains("tells no element type"));
        assert_eq!(kind(&rule("x: '*fp32'", ""), DeviceAddress::NULL), "*fp32:16");
    }

    /// Arguments with the same words make the same kernel.
    #[test]
    fn words_tell_kernels_apart() {
        let device = Device::emulator();
        let buffers = (device.zeros::<f32>(8).unwrap(), device.zeros::<i32>(8).unwrap());
        let declarations = ["x", "x: tl.constexpr", "x: int", "x: tl.const"];
        let decorators = ["", "(do_not_specialize=['x'])", "(do_not_specialize_on_alignment=['x'])"];
        let pair = [Arg::Int(3), Arg::Int(16)];
        let tuples =
            ([Arg::Int(1), Arg::Int(2)], [Arg::Int(2), Arg::Tuple(&pair)], [Arg::Int(2), Arg::Int(3), Arg::Int(16)]);
        let base = || buffers.0.slice(..);
        let descriptors = [
            TensorDescriptor::new(base(), &[2, 4], &[4, 1]).with_block(&[1, 4]),
            TensorDescriptor::new(base(), &[2, 4], &[4, 1]).with_block(&[4, 1]),
            TensorDescriptor::new(base(), &[8], &[1]).with_block(&[4]),
            TensorDescriptor::new(base(), &[2, 4], &[4]).with_block(&[4, 1]),
            TensorDescriptor::new(buffers.1.slice(..), &[8], &[1]).with_block(&[4]),
            TensorDescriptor::new(base(), &[8], &[1]),
        ];
        for rule in declarations.iter().flat_map(|d| decorators.map(|e| rule(d, e))) {
            let numbers = [0, 1, 2, 16, -16, 17, 1 << 31, (1 << 31) + 1, 1 << 63, (1 << 63) + 1, i128::MAX];
            let mut args: Vec<Arg<'_>> = numbers.into_iter().map(Arg::Int).collect();
            args.extend([0.0, -0.0, 1.0, f64::NAN].map(Arg::Float));
            args.extend([true, false].map(Arg::Bool));
            args.extend([0, 1, 4].map(|start| Arg::from(buffers.0.slice(start..))));
            args.extend([0, 1].map(|start| Arg::from(buffers.1.slice(start..))));
            args.extend([Arg::Tuple(&tuples.0), Arg::Tuple(&tuples.1), Arg::Tuple(&tuples.2), Arg::Tuple(&[])]);
            args.extend(descriptors.iter().map(Arg::from));
            let all: Vec<_> = args
                .iter()
                .map(|arg| {
                    let mut words = Words::new();
                    rule.words(arg, &mut words);
                    (words, rule.specialize(arg).map(|kind| format!("{kind:?}")))
                })
                .collect();
            for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
                assert!(a.0 != b.0 || a.1.is_err() || a.1 == b.1, "{rule:?}: {a:?} and {b:?}");
            }
        }
    }
}
