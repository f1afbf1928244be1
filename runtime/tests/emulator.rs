//! The whole way of a launch on the emulator: load, arguments, results, LAUNCH.json.
#![allow(clippy::unwrap_used)]

use rtc_runtime::{Arg, Device, Dtype, Error, LaunchFile, Metadata, Tensor, Tensors, Variant, args};

/// `y[i] = x[i] * a` for `i < n`, one thread per element.
const PTX: &str = "\
.version 8.3
.target sm_80
.address_size 64

.visible .entry scale(
    .param .u64 scale_param_0,
    .param .u64 scale_param_1,
    .param .f32 scale_param_2,
    .param .u32 scale_param_3
)
.reqntid 32
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<6>;

    ld.param.u64 %rd1, [scale_param_0];
    ld.param.u64 %rd2, [scale_param_1];
    ld.param.f32 %f1, [scale_param_2];
    ld.param.u32 %r1, [scale_param_3];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    shl.b32 %r4, %r2, 5;
    add.s32 %r5, %r4, %r3;
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.s32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%rd5], %f3;
DONE:
    ret;
}
";

const METADATA: &str = r#"{"kernel": "scale", "symbol": "scale", "arch": "sm_80", "ptx_version": 83, "num_warps": 1,
"num_ctas": 1, "threads_per_block": 32, "shared_bytes": 0, "global_scratch_bytes": 0, "global_scratch_align": 1,
"cluster": [1, 1, 1], "params": [{"name": "x", "type": "*fp32", "offset": 0, "size": 8},
{"name": "y", "type": "*fp32", "offset": 8, "size": 8}, {"name": "a", "type": "fp32", "offset": 16, "size": 4},
{"name": "n", "type": "i32", "offset": 20, "size": 4}], "constexprs": {"BLOCK": 32}, "source_hash": "", "compiler_version": ""}"#;

fn inputs() -> Tensors {
    let mut tensors = Tensors::default();
    let floats = |values: &mut dyn Iterator<Item = f32>| values.flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
    tensors.insert("x", Tensor::new(Dtype::F32, vec![40], floats(&mut (0..40).map(|i| i as f32))).unwrap());
    tensors.insert("y", Tensor::new(Dtype::F32, vec![40], vec![0; 160]).unwrap());
    tensors.insert("unused", Tensor::new(Dtype::I8, vec![3], vec![1, 2, 3]).unwrap());
    tensors
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[test]
fn a_launch_computes() {
    let device = Device::emulator();
    let kernel = device.load_json(PTX, METADATA).unwrap();
    let x = device.upload(&(0..40).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let mut y = device.upload(&[-1.0f32; 40]).unwrap();
    let stream = device.default_stream();
    kernel.launch(&stream, 2, &args![&x, &mut y, 3.0f32, 39]).unwrap();
    stream.synchronize().unwrap();
    let expected: Vec<f32> = (0..39).map(|i| i as f32 * 3.0).chain([-1.0]).collect();
    assert_eq!(y.to_vec().unwrap(), expected);
    // An empty grid runs nothing.
    kernel.launch(&stream, (0, 5), &args![&x, &mut y, 7.0f32, 39]).unwrap();
    assert_eq!(y.to_vec().unwrap(), expected);
    // A place in a buffer.
    kernel.launch(&stream, 1, &args![&x, y.slice_mut(39..), 1.0f32, 1]).unwrap();
    assert_eq!(y.to_vec().unwrap()[39], 0.0);
}

#[test]
fn a_launch_that_does_not_fit_runs_nothing() {
    let device = Device::emulator();
    let kernel = device.load_json(PTX, METADATA).unwrap();
    let x = device.upload(&[0.0f32; 4]).unwrap();
    let stream = device.default_stream();
    let fails = |grid: [u32; 3], args: &[Arg<'_>]| kernel.launch(&stream, grid, args).unwrap_err().to_string();
    insta::assert_snapshot!(fails([1; 3], &args![&x, &x, 1.0f32]), @"kernel `scale` takes 4 arguments (x, y, a, n), the launch gives 3");
    insta::assert_snapshot!(fails([1; 3], &args![&x, &x, 1.0f32, 1u64 << 31]), @"kernel `scale`, argument `n` (i32): 2147483648 is out of range (-2147483648 to 2147483647)");
    let ints = device.upload(&[0i32; 4]).unwrap();
    insta::assert_snapshot!(fails([1; 3], &args![&x, &ints, 1.0f32, 4]), @"kernel `scale`, argument `y` (*fp32): a buffer of i32 was given; pass one of fp32, or `cast` it if its bytes are meant");
    insta::assert_snapshot!(fails([1, 65536, 1], &args![&x, &x, 1.0f32, 4]), @"kernel `scale` is out of resources: grid size y (blocks): needed 65536, available 65535. Let each program do more, or move blocks to the x dimension.");
    let other = Device::emulator();
    let foreign = other.upload(&[0.0f32; 4]).unwrap();
    insta::assert_snapshot!(fails([1; 3], &args![&x, &foreign, 1.0f32, 4]), @"kernel `scale`, argument `y` (*fp32): the buffer lies on emulator, the kernel on emulator; load the kernel there, or upload the data here");
    assert!(kernel.launch(&other.default_stream(), 1, &[]).is_err());
}

#[test]
fn what_the_signature_promised_is_checked_at_every_launch() {
    let device = Device::emulator();
    let kernel = device.load_json(PTX, &promised()).unwrap();
    let (x, y) = (device.upload(&[1.0f32; 40]).unwrap(), device.upload(&[0.0f32; 40]).unwrap());
    let stream = device.default_stream();
    let launch = |x: Arg<'_>, n: i32| kernel.launch(&stream, 2, &args![x, &y, 2.0f32, n]);
    let error = launch((&x).into(), 39).unwrap_err();
    assert!(matches!(&error, Error::Argument { name, .. } if name == "n"), "{error}");
    insta::assert_snapshot!(error, @"kernel `scale`, argument `n` (i32): 39 is not a multiple of 4, but the kernel was compiled for `i32:4` and relies on it; pass a multiple of 4, or compile the kernel for `i32`");
    let error = launch(x.slice(2..).into(), 36).unwrap_err();
    assert!(matches!(&error, Error::Argument { name, .. } if name == "x"), "{error}");
    assert_eq!(y.to_vec().unwrap(), [0.0; 40], "nothing ran");
    launch(x.slice(4..).into(), 36).unwrap();
    assert_eq!(y.to_vec().unwrap(), [[2.0; 36].as_slice(), &[0.0; 4]].concat());
}

#[test]
fn a_fault_of_the_kernel_is_an_error() {
    let device = Device::emulator();
    let kernel = device.load_json(PTX, METADATA).unwrap();
    let x = device.alloc_named::<f32>(4, "x").unwrap();
    let result = kernel.launch(&device.default_stream(), 1, &args![&x, &x, 1.0f32, 5]);
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Fault(_)));
    assert!(error.to_string().contains("past the end of `x` (16 bytes)"), "{error}");
}

#[test]
fn variants_are_chosen_by_target() {
    let device = Device::emulator();
    let newer = METADATA.replace("sm_80", "sm_100a");
    let newer: &'static str = newer.leak();
    let variants = [
        Variant { arch: "sm_100a", ptx: PTX, metadata: newer },
        Variant { arch: "sm_80", ptx: PTX, metadata: METADATA },
    ];
    assert_eq!(device.load_variant("scale", &variants).unwrap().metadata().arch, "sm_80");
}

/// The metadata of the same kernel, compiled for `*fp32:16, *fp32, fp32, i32:4`.
fn promised() -> String {
    let params = [("\"x\", \"type\": \"*fp32\"", 16), ("\"n\", \"type\": \"i32\"", 4)];
    params.iter().fold(METADATA.to_owned(), |text, (param, factor)| {
        assert!(text.contains(param));
        text.replace(param, &format!("{param}, \"divisible_by\": {factor}"))
    })
}

fn run(launch: &str, tensors: &Tensors) -> Result<Tensors, Error> {
    let kernel = Device::emulator().load_json(PTX, &promised())?;
    Ok(LaunchFile::parse(launch)?.run(&kernel, tensors)?.outputs)
}

const SPEC: &str = r#"{"args": [{"name": "x", "type": "*fp32", "divisible_by": 16}, {"name": "y", "type": "*fp32"},
 {"name": "a", "type": "fp32"}, {"name": "n", "type": "i32", "divisible_by": 4}, {"name": "BLOCK", "constexpr": 32}]}"#;

fn launch(args: &str) -> String {
    format!(r#"{{"spec": {SPEC}, "grid": [2], "args": {args}}}"#)
}

#[test]
fn a_launch_file_computes_and_gives_every_tensor() {
    let args = r#"{"x": {"tensor": "x"}, "y": {"tensor": "y"}, "a": 2, "n": 40, "BLOCK": 32}"#;
    let outputs = run(&launch(args), &inputs()).unwrap();
    assert_eq!(floats(outputs.get("y").unwrap()), (0..40).map(|i| i as f32 * 2.0).collect::<Vec<_>>());
    assert_eq!(outputs.get("x"), inputs().get("x"));
    assert_eq!(outputs.get("unused"), inputs().get("unused"));
    let outputs = run(
        &launch(&args.replace(r#"{"tensor": "y"}"#, r#"{"tensor": "y", "offset": 32}"#).replace("40", "32")),
        &inputs(),
    );
    let expected: Vec<f32> = [0.0; 8].into_iter().chain((0..32).map(|i| i as f32 * 2.0)).collect();
    assert_eq!(floats(outputs.unwrap().get("y").unwrap()), expected);
}

#[test]
fn views_share_one_allocation() {
    // `x` lies at 0 and `y` one element later: the kernel reads what it has not written yet only within a warp.
    let args = r#"{"x": {"tensor": "x", "view_of": "s", "offset": 16}, "y": {"tensor": "y", "view_of": "s", "offset": 192},
        "a": {"float": "inf"}, "n": 40}"#;
    let outputs = run(&launch(args), &inputs()).unwrap();
    let y = floats(outputs.get("y").unwrap());
    assert!(y[0].is_nan() && y[1..].iter().all(|v| *v == f32::INFINITY), "{y:?}");
    assert_eq!(outputs.get("x"), inputs().get("x"));
    // In place through two names of the same bytes.
    let args = r#"{"x": {"tensor": "x", "view_of": "x"}, "y": {"tensor": "x", "view_of": "x"}, "a": 0.5, "n": 40}"#;
    let outputs = run(&launch(args), &inputs()).unwrap();
    assert_eq!(floats(outputs.get("x").unwrap()), (0..40).map(|i| i as f32 * 0.5).collect::<Vec<_>>());
}

#[test]
fn mistakes_name_their_field() {
    let mut tensors = inputs();
    tensors.insert("h", Tensor::new(Dtype::F16, vec![40], vec![0; 80]).unwrap());
    let good = r#"{"x": {"tensor": "x"}, "y": {"tensor": "y"}, "a": 2, "n": 40}"#;
    run(&launch(good), &tensors).unwrap();
    let mut said = String::new();
    for (from, to) in [
        (r#""n": 40"#, r#""n": 41"#),
        (r#""n": 40"#, r#""n": 4000000000"#),
        (r#""n": 40"#, r#""n": 0.5"#),
        (r#""n": 40"#, r#""n": null"#),
        (r#""n": 40"#, r#""n": {"tuple": [1]}"#),
        (r#", "n": 40"#, ""),
        (r#""n": 40"#, r#""n": 40, "m": 1"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "z"}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "h"}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "x", "offset": 4}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "x", "offset": 161}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "x", "view_of": "s", "offset": 18446744073709551615}"#),
        (r#"{"tensor": "y"}"#, r#"{"tensor": "x", "view_of": "y"}"#),
        (r#"{"tensor": "x"}"#, "7"),
        (r#""a": 2"#, r#""a": {"tensor": "x"}"#),
        (r#""a": 2"#, r#""a": true"#),
        (r#"{"tensor": "x"}"#, r#"{"descriptor": {"tensor": "z", "shape": [4], "strides": [1], "block_shape": [4]}}"#),
    ] {
        assert!(good.contains(from), "{from}");
        let error = run(&launch(&good.replacen(from, to, 1)), &tensors).expect_err(to);
        said += &format!("{to}\n    {error}\n");
    }
    insta::assert_snapshot!(said);
}

#[test]
fn metadata_of_another_kernel_is_refused() {
    let device = Device::emulator();
    let mut metadata = Metadata::from_json(METADATA).unwrap();
    metadata.params.pop();
    let error = device.load(PTX, &metadata).unwrap_err();
    insta::assert_snapshot!(error, @"PTX of kernel `scale`: it declares 4 parameters, the metadata 3");
    assert!(matches!(device.load_json(PTX, "{}"), Err(Error::Metadata(_))));
    let broken = PTX.replace("mul.f32", "mul.f33");
    assert!(matches!(device.load_json(&broken, METADATA), Err(Error::Ptx { .. })));
}
