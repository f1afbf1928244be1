//! The whole way of a launch on the emulator: load, arguments, results.
#![allow(clippy::unwrap_used, unsafe_code)]

use rtc_runtime::{Arg, Device, Error, Kernel, Metadata, Result, Variant, args};

/// `y[i] = x[i] * a` for `i < n`, one thread per element.
const PTX: &str = include_str!("kernels/scale.ptx");
const METADATA: &str = include_str!("kernels/scale.json");

/// The metadata without what is proved of the accesses.
fn unproved() -> String {
    ["read", "write"].iter().fold(METADATA.to_owned(), |text, access| {
        text.replace(&format!(r#" "access": "{access}", "extent": "n","#), "")
    })
}

fn load(device: &Device, ptx: &str, metadata: &str) -> Result<Kernel> {
    // SAFETY: the files were made together.
    unsafe { device.load_json(ptx, metadata) }
}

/// A kernel whose lengths are not checked: on the emulator an access out of bounds is a fault.
fn unchecked(device: &Device, metadata: &str) -> Kernel {
    // SAFETY: the launches of these tests run on the emulator.
    unsafe { load(device, PTX, metadata).unwrap().assume_in_bounds() }
}

#[test]
fn a_launch_computes() {
    let device = Device::emulator();
    let kernel = load(&device, PTX, METADATA).unwrap();
    let x = device.upload(&(0..40).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let mut y = device.upload(&[-1.0f32; 40]).unwrap();
    let stream = device.default_stream();
    kernel.launch(stream, 2, &args![&x, &mut y, 3.0f32, 39]).unwrap();
    stream.synchronize().unwrap();
    let expected: Vec<f32> = (0..39).map(|i| i as f32 * 3.0).chain([-1.0]).collect();
    assert_eq!(y.to_vec().unwrap(), expected);
    // An empty grid runs nothing.
    kernel.launch(stream, (0, 5), &args![&x, &mut y, 7.0f32, 39]).unwrap();
    assert_eq!(y.to_vec().unwrap(), expected);
    // A place in a buffer.
    kernel.launch(stream, 1, &args![&x, y.slice_mut(39..), 1.0f32, 1]).unwrap();
    assert_eq!(y.to_vec().unwrap()[39], 0.0);
}

#[test]
fn a_launch_that_does_not_fit_runs_nothing() {
    let device = Device::emulator();
    let kernel = unchecked(&device, &unproved());
    let x = device.upload(&[0.0f32; 4]).unwrap();
    let stream = device.default_stream();
    let fails = |grid: [u32; 3], args: &[Arg<'_>]| kernel.launch(stream, grid, args).unwrap_err().to_string();
    insta::assert_snapshot!(fails([1; 3], &args![&x, &x, 1.0f32]), @"kernel `scale` takes 4 arguments (x, y, a, n), the launch gives 3");
    insta::assert_snapshot!(fails([1; 3], &args![&x, &x, 1.0f32, 1u64 << 31]), @"kernel `scale`, argument `n` (i32): 2147483648 is out of range (-2147483648 to 2147483647)");
    let ints = device.upload(&[0i32; 4]).unwrap();
    insta::assert_snapshot!(fails([1; 3], &args![&x, &ints, 1.0f32, 4]), @"kernel `scale`, argument `y` (*fp32): a buffer of i32 was given; pass one of fp32, or `cast` it if its bytes are meant");
    insta::assert_snapshot!(fails([1, 65536, 1], &args![&x, &x, 1.0f32, 4]), @"kernel `scale` is out of resources: grid size y (blocks): needed 65536, available 65535. Let each program do more, or move blocks to the x dimension.");
    let other = Device::emulator();
    let foreign = other.upload(&[0.0f32; 4]).unwrap();
    insta::assert_snapshot!(fails([1; 3], &args![&x, &foreign, 1.0f32, 4]), @"kernel `scale`, argument `y` (*fp32): the buffer lies on emulator, the kernel on emulator; load the kernel there, or upload the data here");
    assert!(kernel.launch(other.default_stream(), 1, &[]).is_err());
}

#[test]
fn grids_that_no_gpu_takes_are_named_before_lengths() {
    let device = Device::emulator();
    let kernel = load(&device, PTX, METADATA).unwrap();
    let (x, mut y) = (device.upload(&[1.0f32; 4]).unwrap(), device.upload(&[0.0f32; 4]).unwrap());
    let stream = device.default_stream();
    let mut launch = |grid: [u32; 3], n: i32| kernel.launch(stream, grid, &args![&x, &mut y, 1.0f32, n]);
    insta::assert_snapshot!(launch([1 << 31, 1, 1], 4).unwrap_err(), @"kernel `scale` is out of resources: grid size x (blocks): needed 2147483648, available 2147483647. Let each program do more.");
    insta::assert_snapshot!(launch([1, 1, 65536], 100).unwrap_err(), @"kernel `scale` is out of resources: grid size z (blocks): needed 65536, available 65535. Let each program do more, or move blocks to the x dimension.");
    // A grid of no programs runs none, whatever its other sizes are.
    launch([65536, 0, 1], 4).unwrap();
    launch([0, 65536, 65536], 4).unwrap();
    launch([1, 1, 1], 4).unwrap();
}

#[test]
fn what_the_signature_promised_is_checked_at_every_launch() {
    let device = Device::emulator();
    let kernel = unchecked(&device, &promised());
    let (x, y) = (device.upload(&[1.0f32; 40]).unwrap(), device.upload(&[0.0f32; 40]).unwrap());
    let stream = device.default_stream();
    let launch = |x: Arg<'_>, n: i32| kernel.launch(stream, 2, &args![x, &y, 2.0f32, n]);
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
    let kernel = unchecked(&device, &unproved());
    let x = device.alloc_named::<f32>(4, "x").unwrap();
    let result = kernel.launch(device.default_stream(), 1, &args![&x, &x, 1.0f32, 5]);
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
        // SAFETY: the first is not loaded, the files of the second were made together.
        unsafe { Variant::new("sm_100a", PTX, newer, None) },
        // SAFETY: as above.
        unsafe { Variant::new("sm_80", PTX, METADATA, None) },
    ];
    assert_eq!(device.load_variant("scale", &variants).unwrap().metadata().arch, "sm_80");
}

/// The metadata of the same kernel, compiled for `*fp32:16, *fp32, fp32, i32:4`.
fn promised() -> String {
    let params = [("\"x\", \"type\": \"*fp32\"", 16), ("\"n\", \"type\": \"i32\"", 4)];
    params.iter().fold(unproved(), |text, (param, factor)| {
        assert!(text.contains(param));
        text.replace(param, &format!("{param}, \"divisible_by\": {factor}"))
    })
}

#[test]
fn metadata_of_another_kernel_is_refused() {
    let device = Device::emulator();
    let mut metadata = Metadata::from_json(&unproved()).unwrap();
    metadata.params.pop();
    // SAFETY: it is refused.
    let error = unsafe { device.load(PTX, &metadata) }.unwrap_err();
    insta::assert_snapshot!(error, @"PTX of kernel `scale`: it declares 4 parameters, the metadata 3");
    assert!(matches!(load(&device, PTX, "{}"), Err(Error::Metadata(_))));
    let broken = PTX.replace("mul.f32", "mul.f33");
    assert!(matches!(load(&device, &broken, METADATA), Err(Error::Ptx { .. })));
}

#[test]
fn the_limit_of_the_sanitizer_is_that_of_a_block() {
    use rtc_runtime::sanitize::Checks;
    let run = |budget, blocks: u32| {
        let device = Device::emulator().sanitize_within(Checks::ALL, budget).unwrap();
        let kernel = load(&device, PTX, METADATA).unwrap();
        let n = 32 * blocks as usize;
        let (x, mut y) = (device.zeros::<f32>(n).unwrap(), device.zeros::<f32>(n).unwrap());
        kernel.launch(device.default_stream(), blocks, &args![&x, &mut y, 1.0f32, n])
    };
    // A block of this kernel has one warp, which executes fewer than 40 instructions.
    for blocks in [1, 200] {
        assert_eq!(run(Some(40), blocks), Ok(()));
        let Err(Error::Sanitizer(found)) = run(Some(4), blocks) else { panic!("it executes more") };
        assert_eq!(found[0].code, "endless-loop");
    }
    assert_eq!(run(None, 200), Ok(()));
}
