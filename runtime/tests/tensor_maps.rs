//! Tensor maps that a launch makes: a kernel written by hand that shows the bytes of its maps.
#![allow(clippy::unwrap_used, unsafe_code)]

use rtc_emulator::tensor_map::{ElementType, Fill, TensorMap};
use rtc_runtime::{Arg, Buffer, Device, Error, Kernel, TensorDescriptor, args};

/// Copies the maps at `places` of the parameter buffer to the pointer that is the first parameter.
fn ptx(declarations: &str, places: &[u32]) -> String {
    let mut body = String::from("    ld.param.u64 %rd1, [show_param_0];\n");
    for (number, place) in places.iter().enumerate() {
        for word in 0..16 {
            let (from, to) = (8 * word, 128 * number + 8 * word);
            body +=
                &format!("    ld.param.u64 %rd2, [show_param_{place}+{from}];\n    st.global.u64 [%rd1+{to}], %rd2;\n");
        }
    }
    format!(
        ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry show(\n{declarations}\n)\n.reqntid 1\n{{\n    \
         .reg .b64 %rd<3>;\n{body}    ret;\n}}\n"
    )
}

fn metadata(params: &str) -> String {
    format!(
        r#"{{"kernel": "show", "symbol": "show", "arch": "sm_90a", "ptx_version": 83, "num_warps": 1, "num_ctas": 1,
        "threads_per_block": 1, "shared_bytes": 0, "global_scratch_bytes": 0, "global_scratch_align": 1,
        "cluster": [1, 1, 1], "params": [{params}], "constexprs": {{}}, "source_hash": "", "compiler_version": ""}}"#
    )
}

/// `show(out, x, M, stride)` with a map of `x` from element `M` on.
fn hidden(device: &Device, expressions: &str) -> Result<Kernel, Error> {
    let declarations = "    .param .u64 show_param_0,\n    .param .u64 show_param_1,\n    .param .u32 show_param_2,\n    \
                        .param .u64 show_param_3,\n    .param .align 64 .b8 show_param_4[128]";
    let params = format!(
        r#"{{"name": "out", "type": "*u8", "offset": 0, "size": 8}}, {{"name": "x", "type": "*fp16", "offset": 8, "size": 8}},
        {{"name": "M", "type": "i32", "offset": 16, "size": 4}}, {{"name": "stride", "type": "i64", "offset": 24, "size": 8}},
        {{"name": "map.0", "type": "tensormap", "offset": 64, "size": 128, "hidden": {{"tensor_map":
          {{"base": "x", "dtype": "fp16", {expressions}, "box": [64, 32], "swizzle": 64, "padding": "nan"}}}}}}"#
    );
    // SAFETY: the metadata is that of the kernel; it writes the bytes of a map, which it does not use.
    Ok(unsafe { device.load_json(&ptx(declarations, &[4]), &metadata(&params))?.assume_in_bounds() })
}

const EXPRESSIONS: &str = r#""start": "M * 8", "shape": ["M", "min(stride, 40)"], "strides": ["stride", 1]"#;

/// `show(out, desc)`.
fn explicit(device: &Device) -> Kernel {
    let declarations = "    .param .u64 show_param_0,\n    .param .align 64 .b8 show_param_1[128]";
    let params = r#"{"name": "out", "type": "*u8", "offset": 0, "size": 8},
        {"name": "desc", "type": "tensordesc<fp32[8,32]>", "offset": 64, "size": 128, "tensor_map": {"dtype": "fp32",
         "block_shape": [8, 32], "swizzle": 128, "l2_promotion": 128, "interleave": 0}}"#;
    // SAFETY: as above.
    unsafe { device.load_json(&ptx(declarations, &[1]), &metadata(params)).unwrap().assume_in_bounds() }
}

fn launch(kernel: &Kernel, args: &[Arg<'_>]) -> Result<(), Error> {
    kernel.launch(kernel.device().default_stream(), 1, args)
}

fn shown(out: &Buffer) -> TensorMap {
    TensorMap::decode(&out.to_vec().unwrap()).unwrap()
}

#[test]
fn maps_of_other_arguments() {
    let device = Device::emulator();
    let kernel = hidden(&device, EXPRESSIONS).unwrap();
    let (out, x) = (device.alloc::<u8>(128).unwrap(), device.alloc::<u8>(1 << 16).unwrap());
    // More values than are kept, and again from the first one on.
    for m in (2..8).chain(2..8) {
        launch(&kernel, &args![&out, &x, m, 128i64]).unwrap();
        let map = shown(&out);
        assert_eq!((map.address, &*map.dims), (x.address() + 16 * m as u64, &[40, m as u64][..]));
        assert_eq!((&*map.strides, &*map.box_dims), (&[256][..], &[32, 64][..]));
        assert_eq!((map.ty, map.swizzle, map.fill), (ElementType::F16, 64, Fill::Nan));
    }
    // Empty dimensions count as 1, and what has one row has no stride.
    launch(&kernel, &args![&out, &x, 0, 3i64]).unwrap();
    assert_eq!(shown(&out).dims, [3, 1]);
}

#[test]
fn what_a_map_cannot_be_names_the_argument() {
    let device = Device::emulator();
    let kernel = hidden(&device, EXPRESSIONS).unwrap();
    let (out, x) = (device.alloc::<u8>(128).unwrap(), device.alloc::<u8>(1 << 16).unwrap());
    let text = |x: Arg<'_>, m: i32, stride: i64| {
        let text = launch(&kernel, &args![&out, x, m, stride]).unwrap_err().to_string();
        text.split_once("begins at ").map_or(text.clone(), |(head, rest)| {
            format!("{head}begins at ..{}", rest.trim_start_matches(|c: char| c.is_ascii_hexdigit() || c == 'x'))
        })
    };
    insta::assert_snapshot!(text(x.slice(8..).into(), 4, 64), @"kernel `show`, argument `x` (*fp16): tensor map `map.0`: the tensor begins at .., which is not a multiple of 16 bytes; copies of tiles (TMA) need it: pass a tensor that begins at one, such as a copy");
    insta::assert_snapshot!(text((&x).into(), 4, 100), @"kernel `show`, argument `x` (*fp16): tensor map `map.0`: the stride of dimension 0 is 200 bytes; copies of tiles (TMA) need it to be a multiple of 16 below 2^40: pad the rows of the tensor, or copy it");
    insta::assert_snapshot!(text((&x).into(), 4, i64::MAX), @"kernel `show`, argument `x` (*fp16): tensor map `map.0`: the stride of dimension 0 is 18446744073709551614 bytes; copies of tiles (TMA) need it to be a multiple of 16 below 2^40: pad the rows of the tensor, or copy it");
    // A launch of no programs needs no map.
    let args = args![&out, x.slice(8..), 4, 64i64];
    kernel.launch(device.default_stream(), 0, &args).unwrap();
    for (bad, message) in [
        (EXPRESSIONS.replace("M * 8", "N"), "`N` is no integer argument"),
        (EXPRESSIONS.replace("stride\", 1", "stride\", 2"), "the innermost stride is not 1"),
        (EXPRESSIONS.replace("\"M\", ", ""), "shape, strides and box differ in their length"),
    ] {
        let error = hidden(&device, &bad).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// What the launch takes a buffer for must lie within the shape that the buffer has.
#[test]
fn buffers_with_shapes() {
    let device = Device::emulator();
    let kernel = hidden(&device, r#""start": 0, "shape": ["M", "stride"], "strides": ["stride", 1]"#).unwrap();
    let out = device.alloc::<u8>(128).unwrap();
    let x = device.alloc::<half::f16>(32 * 64).unwrap().reshape(&[32, 64]).unwrap();
    launch(&kernel, &args![&out, &x, 32, 64i64]).unwrap();
    launch(&kernel, &args![&out, x.slice(..), 31, 64i64]).unwrap();
    let error = launch(&kernel, &args![&out, &x, 33, 64i64]).unwrap_err();
    insta::assert_snapshot!(error, @"kernel `show`, argument `x` (*fp16): tensor map `map.0`: the buffer has the shape [32, 64], the launch takes it for one of [33, 64]; check the sizes of the launch");
    // With other strides, or as a part, it is something else; of elements in a row nothing is known.
    launch(&kernel, &args![&out, &x, 64, 32i64]).unwrap();
    launch(&kernel, &args![&out, x.slice(64..), 33, 64i64]).unwrap();
    let flat = x.reshape(&[32 * 64]).unwrap();
    launch(&kernel, &args![&out, &flat, 33, 64i64]).unwrap();

    let mut tensor = device.alloc::<f32>(8 * 64).unwrap().reshape(&[8, 64]).unwrap();
    launch(&explicit(&device), &args![&out, &TensorDescriptor::of(&tensor)]).unwrap();
    assert_eq!((&*shown(&out).dims, &*shown(&out).strides), (&[64, 8][..], &[256][..]));
    launch(&explicit(&device), &args![&out, &TensorDescriptor::of_mut(&mut tensor)]).unwrap();
    let bytes = tensor.cast::<u8>().unwrap();
    assert_eq!(bytes.shape(), [8 * 64 * 4], "a cast knows no shape");
}

#[test]
fn descriptors_as_arguments() {
    let device = Device::emulator();
    let kernel = explicit(&device);
    let (out, x) = (device.alloc::<u8>(128).unwrap(), device.alloc::<u8>(1 << 16).unwrap());
    let tensor = TensorDescriptor::new(x.slice(32..), &[100, 60], &[64, 1]).padded_with_nan();
    launch(&kernel, &args![&out, &tensor]).unwrap();
    let map = shown(&out);
    assert_eq!((map.address, &*map.dims, &*map.strides), (x.address() + 32, &[60, 100][..], &[256][..]));
    assert_eq!((map.ty, map.fill, map.l2_promotion), (ElementType::F32, Fill::Nan, 128));

    let text = |desc: Arg<'_>| launch(&kernel, &args![&out, desc]).unwrap_err().to_string();
    let of = |shape: &[u64], strides: &[u64]| TensorDescriptor::new(&x, shape, strides);
    insta::assert_snapshot!(text((&x).into()), @"kernel `show`, argument `desc` (tensordesc<fp32[8,32]>): a tensor descriptor is needed, a buffer was given");
    insta::assert_snapshot!(text((&of(&[64], &[1])).into()), @"kernel `show`, argument `desc` (tensordesc<fp32[8,32]>): the descriptor has 1 sizes and 1 strides, the kernel needs 2");
    insta::assert_snapshot!(text((&of(&[64, 64], &[1, 64])).into()), @"kernel `show`, argument `desc` (tensordesc<fp32[8,32]>): the innermost stride is 64; copies of tiles (TMA) need 1: pass the tensor with that dimension last");
    insta::assert_snapshot!(text((&of(&[64, 64], &[65, 1])).into()), @"kernel `show`, argument `desc` (tensordesc<fp32[8,32]>): the stride of dimension 0 is 260 bytes; copies of tiles (TMA) need it to be a multiple of 16 below 2^40: pad the rows of the tensor, or copy it");
    insta::assert_snapshot!(text((&of(&[1 << 33, 64], &[64, 1])).into()), @"kernel `show`, argument `desc` (tensordesc<fp32[8,32]>): dimension 0 has 8589934592 elements; copies of tiles (TMA) need it to be 2^32 at most");
    // A map has no empty dimension; a kernel is told the size besides.
    let empty = of(&[0, 64], &[64, 1]);
    launch(&kernel, &args![&out, &empty]).unwrap();
    assert_eq!(shown(&out).dims[..], [64, 1]);
    insta::assert_snapshot!(text((&of(&[65, 256], &[256, 1])).into()), @"kernel `show`, argument `desc` (tensordesc<fp32[8,32]>): the tensor of shape [65, 256] with strides [256, 1] takes 16640 elements, the slice has 16384; pass a longer one, or check sizes and strides");
    let elsewhere = Device::emulator().alloc::<u8>(64).unwrap();
    let error = text((&TensorDescriptor::new(&elsewhere, &[8, 32], &[32, 1])).into());
    assert!(error.contains("the buffer lies on emulator"), "{error}");
}
