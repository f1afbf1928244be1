//! What a signature promises holds for the typed launch of a generated module, and for the untyped one below it.
#![allow(clippy::unwrap_used)]

use rtc_runtime::{Device, Error, args};

rtc_runtime::include_kernels!("vector_add");

#[test]
fn a_launch_that_breaks_a_promise_runs_nothing() {
    let device = Device::emulator();
    let (x, y) = (device.upload(&[1.0f32; 64]).unwrap(), device.upload(&[2.0f32; 64]).unwrap());
    let mut sum = device.upload(&[0.0f32; 64]).unwrap();
    let stream = device.default_stream();
    let kernel = vector_add::add_sixteens(&device).unwrap();

    let error = kernel.launch(stream, 1, &x, &y, &mut sum, 17).unwrap_err();
    assert!(matches!(&error, Error::Argument { name, .. } if name == "n"), "{error}");
    let text = error.to_string();
    for part in ["add_kernel", "`n` (i32)", "17 is not a multiple of 16", "`i32:16`", "compile the kernel for"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let error = kernel.launch(stream, 1, &x, y.slice(1..), &mut sum, 16).unwrap_err();
    assert!(matches!(&error, Error::Argument { name, .. } if name == "y_ptr"), "{error}");
    let untyped = kernel.kernel().launch(stream, 1, &args![&x, &y, &mut sum, 31]);
    assert!(matches!(untyped, Err(Error::Argument { .. })));
    assert_eq!(sum.to_vec().unwrap(), [0.0; 64], "nothing ran");

    kernel.launch(stream, 1, &x, y.slice(16..), &mut sum, 48).unwrap();
    assert_eq!(sum.to_vec().unwrap(), [[3.0; 48].as_slice(), &[0.0; 16]].concat());
    // The kernel that promises nothing of the length takes any.
    vector_add::add_kernel(&device).unwrap().launch(stream, 1, &x, &y, &mut sum, 49).unwrap();
    assert_eq!(sum.to_vec().unwrap()[48..50], [3.0, 0.0]);
}

#[test]
fn arguments_by_name_are_those_of_their_fields() {
    use vector_add::AddKernelArgs;
    let device = Device::emulator();
    let (x, y) = (device.upload(&[1.0f32; 64]).unwrap(), device.upload(&[2.0f32; 64]).unwrap());
    let mut sum = device.upload(&[0.0f32; 64]).unwrap();
    let kernel = vector_add::add_kernel(&device).unwrap();
    let args = AddKernelArgs { n: 33, out_ptr: &mut sum, y_ptr: y.slice(16..), x_ptr: &x };
    kernel.launch_args(device.default_stream(), 1, args).unwrap();
    assert_eq!(sum.to_vec().unwrap(), [[3.0; 33].as_slice(), &[0.0; 31]].concat());
}
