//! Kernels with the types of their arguments: `Kernel<(Read<f32>, Write<f32>, i32)>`.
//!
//! The types are compared with the metadata once, when the handle is made. The compiler of Rust then sees to their number,
//! their types, and to what is borrowed to be written; a launch checks what only the values tell.
#![allow(unsafe_code)]

use crate::kernel::{DynArgs, Kernel};
use crate::{
    Arg, Buffer, DeviceAddress, Element, Error, Grid, Result, Slice, SliceMut, Stream, TensorDescriptor, argument,
    element,
};
use rtc_abi::{DType, Param, ParamType, ValueType};
use std::marker::PhantomData;

/// In the types of a [`Kernel`]: memory that it reads. A launch takes a `&Buffer<T>` or a [`Slice`] for it.
///
/// ```
/// use rtc_runtime::{Kernel, Read, Write};
/// struct Model {
///     /// scale(x, y, a, n)
///     scale: Kernel<(Read<f32>, Write<f32>, f32, i32)>,
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Read<T: Element>(PhantomData<T>);

/// In the types of a [`Kernel`]: memory that it writes, and may read. A launch takes a `&mut Buffer<T>` or a [`SliceMut`] for it;
/// what is borrowed otherwise does not compile.
///
/// ```compile_fail
/// use rtc_runtime::{Buffer, Kernel, Read, Result, Stream, Write};
/// fn copy(kernel: &Kernel<(Read<f32>, Write<f32>)>, stream: &Stream, x: &Buffer<f32>) -> Result<()> {
///     kernel.launch(stream, 1, (x, x))
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Write<T: Element>(PhantomData<T>);

/// A type in the list of a [`Kernel`]: [`Read`], [`Write`], a [`TensorDescriptor`], `bool`, an integer, `f32` or `f64`. The
/// trait is sealed: these are all.
///
/// ```
/// use rtc_runtime::{Arguments, ArgumentFor, Kernel, Parameter, Result, Parameters, Stream};
/// fn once<'a, S: Parameters>(kernel: &Kernel<S>, stream: &Stream, args: impl Arguments<'a, S>) -> Result<()> {
///     kernel.launch(stream, 1, args)
/// }
/// fn fill<'a, P: Parameter>(kernel: &Kernel<(P,)>, stream: &Stream, to: impl ArgumentFor<'a, P>) -> Result<()> {
///     once(kernel, stream, (to,))
/// }
/// ```
pub trait Parameter: sealed::Parameter {}

/// A value that a launch takes for a parameter of type `P`.
pub trait ArgumentFor<'a, P: Parameter>: sealed::ArgumentFor<'a, P> {}

/// The types of the arguments of a kernel: a tuple of up to 24 [`Parameter`]s.
pub trait Parameters: sealed::Parameters {}

/// The arguments of a launch: a tuple of values for the types `S`.
pub trait Arguments<'a, S: Parameters>: sealed::Arguments<'a, S> {}

pub(crate) mod sealed {
    use super::{Arg, Param};

    pub trait Parameter {
        /// As it is written.
        fn written() -> String;

        /// What is wrong with it for that parameter, if anything.
        fn refused(param: &Param) -> Option<String>;
    }

    pub trait ArgumentFor<'a, P> {
        fn arg(self) -> Arg<'a>;
    }

    pub trait Parameters {
        fn written() -> Vec<String>;

        /// What is wrong with the parameter of that number.
        fn refused(index: usize, param: &Param) -> Option<String>;
    }

    pub trait Arguments<'a, S> {
        fn with<R>(self, launch: impl FnOnce(&[Arg<'_>]) -> R) -> R;
    }
}

/// The name of a type of Rust for elements.
fn rust(dtype: DType) -> &'static str {
    match dtype {
        DType::UInt1 => "bool",
        DType::Fp16 => "f16",
        DType::Bf16 => "bf16",
        DType::Fp32 => "f32",
        DType::Fp64 => "f64",
        DType::Fp8E4Nv => "Fp8E4M3",
        DType::Fp8E5 => "Fp8E5M2",
        dtype if dtype.is_integer() => dtype.name(),
        _ => "u8",
    }
}

/// The type that a parameter needs.
fn needed(param: &Param) -> String {
    match &param.ty {
        ParamType::Value(ValueType::Pointer { pointee, .. }) => {
            let kind = if param.access == Some(rtc_abi::Access::Read) { "Read" } else { "Write" };
            format!("{kind}<{}>", rust(*pointee))
        }
        ParamType::Value(ValueType::Scalar(dtype)) => rust(scalar(*dtype)).into(),
        ParamType::Descriptor { .. } | ParamType::TensorMap => "TensorDescriptor".into(),
    }
}

/// What a value is passed as: floats of fewer bits as `f32`.
fn scalar(dtype: DType) -> DType {
    if dtype.is_integer() || dtype == DType::Fp64 { dtype } else { DType::Fp32 }
}

fn not(param: &Param, written: &str) -> Option<String> {
    Some(format!("`{}` is a `{}`, for which `{written}` cannot be passed", param.name, param.ty))
}

fn pointer<T: Element>(param: &Param, written: &str) -> Option<String> {
    match param.ty.pointee() {
        Some(wanted) if wanted == T::DTYPE || element::fits(wanted, T::DTYPE) => None,
        _ => not(param, written),
    }
}

impl<T: Element> Parameter for Read<T> {}

impl<T: Element> sealed::Parameter for Read<T> {
    fn written() -> String {
        format!("Read<{}>", rust(T::DTYPE))
    }

    fn refused(param: &Param) -> Option<String> {
        match argument::writes(param) {
            true => Some(format!("the kernel writes to `{}`", param.name)),
            false => pointer::<T>(param, &Self::written()),
        }
    }
}

impl<T: Element> Parameter for Write<T> {}

impl<T: Element> sealed::Parameter for Write<T> {
    fn written() -> String {
        format!("Write<{}>", rust(T::DTYPE))
    }

    fn refused(param: &Param) -> Option<String> {
        pointer::<T>(param, &Self::written())
    }
}

impl Parameter for TensorDescriptor<'static> {}

impl sealed::Parameter for TensorDescriptor<'static> {
    fn written() -> String {
        "TensorDescriptor".into()
    }

    fn refused(param: &Param) -> Option<String> {
        if matches!(param.ty, ParamType::Descriptor { .. }) { None } else { not(param, "TensorDescriptor") }
    }
}

macro_rules! gives {
    ($([$($generic:tt)*] $given:ty => $parameter:ty;)*) => {
        $(
            impl<'a, $($generic)*> ArgumentFor<'a, $parameter> for $given {}

            impl<'a, $($generic)*> sealed::ArgumentFor<'a, $parameter> for $given {
                #[inline(always)]
                fn arg(self) -> Arg<'a> {
                    Arg::from(self)
                }
            }
        )*
    };
}

gives! {
    [T: Element] &'a Buffer<T> => Read<T>;
    [T: Element] &'a mut Buffer<T> => Read<T>;
    [T: Element] Slice<'a, T> => Read<T>;
    [T: Element] &Slice<'a, T> => Read<T>;
    [T: Element] SliceMut<'a, T> => Read<T>;
    [T: Element] &'a SliceMut<'_, T> => Read<T>;
    [T: Element] &'a mut SliceMut<'_, T> => Read<T>;
    [T: Element] DeviceAddress => Read<T>;
    [T: Element] &'a mut Buffer<T> => Write<T>;
    [T: Element] SliceMut<'a, T> => Write<T>;
    [T: Element] &'a mut SliceMut<'_, T> => Write<T>;
    [T: Element] DeviceAddress => Write<T>;
    [] &'a TensorDescriptor<'a> => TensorDescriptor<'static>;
}

macro_rules! scalars {
    ($($ty:ty = $dtype:ident;)*) => {
        $(
            impl Parameter for $ty {}

            impl sealed::Parameter for $ty {
                fn written() -> String {
                    stringify!($ty).into()
                }

                fn refused(param: &Param) -> Option<String> {
                    match &param.ty {
                        ParamType::Value(ValueType::Scalar(dtype)) if scalar(*dtype) == DType::$dtype => None,
                        _ => not(param, stringify!($ty)),
                    }
                }
            }

            gives! { [] $ty => $ty; }
        )*
    };
}

scalars! {
    bool = UInt1;
    i8 = Int8;
    i16 = Int16;
    i32 = Int32;
    i64 = Int64;
    u8 = UInt8;
    u16 = UInt16;
    u32 = UInt32;
    u64 = UInt64;
    f32 = Fp32;
    f64 = Fp64;
}

macro_rules! tuples {
    ($(($($p:ident $a:ident),+);)*) => {
        $(
            impl<$($p: Parameter),+> Parameters for ($($p,)+) {}

            impl<$($p: Parameter),+> sealed::Parameters for ($($p,)+) {
                fn written() -> Vec<String> {
                    vec![$($p::written()),+]
                }

                fn refused(index: usize, param: &Param) -> Option<String> {
                    [$($p::refused),+].get(index).and_then(|refused| refused(param))
                }
            }

            impl<'a, $($p: Parameter, $a: ArgumentFor<'a, $p>),+> Arguments<'a, ($($p,)+)> for ($($a,)+) {}

            #[allow(non_snake_case, reason = "a value for each type, by its name")]
            impl<'a, $($p: Parameter, $a: ArgumentFor<'a, $p>),+> sealed::Arguments<'a, ($($p,)+)> for ($($a,)+) {
                #[inline(always)]
                fn with<R>(self, launch: impl FnOnce(&[Arg<'_>]) -> R) -> R {
                    let ($($a,)+) = self;
                    launch(&[$($a.arg()),+])
                }
            }
        )*
    };
}

/// Tuples of every length up to that of the list.
macro_rules! all_tuples {
    (@ [$($done:tt)*] [] $($all:ident)*) => { tuples! { $($done)* } };
    (@ [$($done:tt)*] [$p:ident $a:ident $(, $ps:ident $as:ident)*] $($before:ident $value:ident)*) => {
        all_tuples! { @ [$($done)* ($($before $value,)* $p $a);] [$($ps $as),*] $($before $value)* $p $a }
    };
}

all_tuples! { @ [] [
    P0 A0, P1 A1, P2 A2, P3 A3, P4 A4, P5 A5, P6 A6, P7 A7, P8 A8, P9 A9, P10 A10, P11 A11, P12 A12, P13 A13, P14 A14,
    P15 A15, P16 A16, P17 A17, P18 A18, P19 A19, P20 A20, P21 A21, P22 A22, P23 A23
] }

impl Kernel {
    /// A handle with the types of the arguments, which are compared with the kernel's here, once.
    ///
    /// ```
    /// use rtc_runtime::{Device, Kernel, Read, Write};
    /// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
    /// let device = Device::auto();
    /// // SAFETY: the files were made together.
    /// let scale: Kernel<(Read<f32>, Write<f32>, f32, i32)> = unsafe { device.load_json(ptx, json)? }.typed()?;
    /// let x = device.upload(&[1.0f32, 2.0, 3.0])?;
    /// let mut y = device.zeros::<f32>(3)?;
    /// scale.launch(device.default_stream(), 1, (&x, &mut y, 2.0, 3))?;
    /// assert_eq!(y.to_vec()?, [2.0, 4.0, 6.0]);
    ///
    /// // SAFETY: as above.
    /// let wrong = unsafe { device.load_json(ptx, json)? }.typed::<(Read<f32>, Write<f32>, i32, i32)>();
    /// assert!(wrong.unwrap_err().to_string().contains("write `Kernel<(Read<f32>, Write<f32>, f32, i32)>`"));
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Signature`] if the types are not those of the kernel; its text has the right ones.
    pub fn typed<S: Parameters>(&self) -> Result<Kernel<S>> {
        let params = self.metadata().visible_params();
        let written = S::written();
        let message = match written.len() == params.len() {
            true => params.iter().enumerate().find_map(|(index, param)| S::refused(index, param)),
            false => Some(format!("it takes {} arguments, not {}", params.len(), written.len())),
        };
        let list = |types: Vec<String>| {
            if types.len() == 1 { format!("({},)", types[0]) } else { format!("({})", types.join(", ")) }
        };
        match message {
            None => Ok(self.with_types()),
            Some(message) => Err(Error::Signature {
                kernel: self.metadata().kernel.clone(),
                given: list(written),
                message,
                needed: list(params.iter().map(needed).collect()),
            }),
        }
    }
}

impl<S: Parameters> Kernel<S> {
    /// Launches `grid` programs; `args` is a tuple of buffers, slices and numbers for the types of the handle. An empty grid
    /// launches nothing.
    ///
    /// Alignment, devices and what the signature of the kernel promises are checked, and that all it may access lies within
    /// the slices. A launch of which that is not proved is refused; see [`Kernel::launch_unchecked`]. On a GPU the call
    /// returns before the kernel has run; wait with [`Stream::synchronize`].
    ///
    /// # Errors
    ///
    /// As for [`launch`](Kernel::launch) of the kernel without types, whose rules for numbers and types of arguments were
    /// checked before.
    pub fn launch<'a>(&self, stream: &Stream, grid: impl Into<Grid>, args: impl Arguments<'a, S>) -> Result<()> {
        let grid = grid.into();
        args.with(|args| self.launch_args(stream, grid, args))
    }

    /// Like [`Kernel::launch`] without the check of lengths.
    ///
    /// # Errors
    ///
    /// As for [`launch_unchecked`](Kernel::launch_unchecked) of the kernel without types.
    ///
    /// # Safety
    ///
    /// As for [`launch_unchecked`](Kernel::launch_unchecked) of the kernel without types.
    pub unsafe fn launch_unchecked<'a>(
        &self,
        stream: &Stream,
        grid: impl Into<Grid>,
        args: impl Arguments<'a, S>,
    ) -> Result<()> {
        let grid = grid.into();
        // SAFETY: the caller guarantees the accesses.
        args.with(|args| unsafe { self.launch_args_unchecked(stream, grid, args) })
    }

    /// The same kernel without types.
    pub fn untyped(&self) -> Kernel<DynArgs> {
        self.with_types()
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::Device;

    const PTX: &str = include_str!("../tests/kernels/scale.ptx");

    fn scale(device: &Device) -> Kernel {
        let metadata = include_str!("../tests/kernels/scale.json")
            .replace(r#""y", "type": "*fp32""#, r#""y", "type": "*fp32", "divisible_by": 16"#);
        // SAFETY: the metadata is that of the kernel.
        unsafe { device.load_json(PTX, &metadata) }.expect("the kernel is right")
    }

    #[test]
    fn types_are_compared_once() {
        let kernel = scale(&Device::emulator());
        fn said<S: Parameters>(kernel: &Kernel) -> String {
            kernel.typed::<S>().err().map_or("fits".into(), |error| error.to_string())
        }
        assert_eq!(said::<(Read<f32>, Write<f32>, f32, i32)>(&kernel), "fits");
        // Bytes stand for any type; what is read may be given to be written.
        assert_eq!(said::<(Write<u8>, Write<u8>, f32, i32)>(&kernel), "fits");
        insta::assert_snapshot!(said::<(Read<f32>,)>(&kernel), @"kernel `scale` cannot be launched with (Read<f32>,): it takes 4 arguments, not 1; write `Kernel<(Read<f32>, Write<f32>, f32, i32)>`");
        insta::assert_snapshot!(said::<(Read<f32>, Read<f32>, f32, i32)>(&kernel), @"kernel `scale` cannot be launched with (Read<f32>, Read<f32>, f32, i32): the kernel writes to `y`; write `Kernel<(Read<f32>, Write<f32>, f32, i32)>`");
        insta::assert_snapshot!(said::<(Read<i32>, Write<f32>, f32, i32)>(&kernel), @"kernel `scale` cannot be launched with (Read<i32>, Write<f32>, f32, i32): `x` is a `*fp32`, for which `Read<i32>` cannot be passed; write `Kernel<(Read<f32>, Write<f32>, f32, i32)>`");
        insta::assert_snapshot!(said::<(Read<f32>, Write<f32>, f64, i32)>(&kernel), @"kernel `scale` cannot be launched with (Read<f32>, Write<f32>, f64, i32): `a` is a `fp32`, for which `f64` cannot be passed; write `Kernel<(Read<f32>, Write<f32>, f32, i32)>`");
        insta::assert_snapshot!(said::<(Read<f32>, Write<f32>, f32, TensorDescriptor<'static>)>(&kernel), @"kernel `scale` cannot be launched with (Read<f32>, Write<f32>, f32, TensorDescriptor): `n` is a `i32`, for which `TensorDescriptor` cannot be passed; write `Kernel<(Read<f32>, Write<f32>, f32, i32)>`");
    }

    #[test]
    fn launches_check_what_values_tell() {
        let device = Device::emulator();
        let stream = device.default_stream();
        let kernel: Kernel<(Read<f32>, Write<f32>, f32, i32)> = scale(&device).typed().unwrap();
        let x = device.upload(&[1.0f32; 32]).unwrap();
        let mut y = device.zeros::<f32>(32).unwrap();
        kernel.launch(stream, 1, (x.slice(..16), &mut y, 3.0, 16)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [[3.0f32; 16], [0.0; 16]].concat());
        let error = kernel.launch(stream, 1, (x.slice(..15), &mut y, 3.0, 16)).unwrap_err();
        insta::assert_snapshot!(error, @"kernel `scale`, argument `x` (*fp32): the kernel touches 16 elements (`n`), the slice has 15; pass a longer one, or check sizes, strides and grid of the launch");
        let error = kernel.launch(stream, 1, (&x, y.slice_mut(1..), 3.0, 16)).unwrap_err().to_string();
        assert!(error.contains("argument `y`") && error.contains("is not a multiple of 16"), "{error}");
        let elsewhere = Device::emulator().upload(&[1.0f32; 32]).unwrap();
        let error = kernel.launch(stream, 1, (&elsewhere, &mut y, 3.0, 16)).unwrap_err().to_string();
        assert!(error.contains("argument `x`") && error.contains("load the kernel there"), "{error}");
        // SAFETY: the kernel touches 16 elements of 32 from `x.slice(..15)` on.
        unsafe { kernel.launch_unchecked(stream, 1, (x.slice(..15), &mut y, 3.0, 16)) }.unwrap();
        // Without types what is written must be given so all the same.
        let error = kernel.untyped().launch(stream, 1, &crate::args![&x, &y, 3.0f32, 16]).unwrap_err();
        insta::assert_snapshot!(error, @"kernel `scale`, argument `y` (*fp32): the kernel writes here, the memory was given to be read; pass `&mut buffer` or a `SliceMut`");
        assert_eq!(y.slice(16..).to_vec().unwrap(), [0.0; 16]);
    }
}
