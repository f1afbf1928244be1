//! What the safe launches refuse: all of which it is not proved that it stays within the memory of its arguments.
#![allow(clippy::unwrap_used, unsafe_code)]
#![cfg(feature = "emulator")]

use rtc_runtime::{Device, DeviceAddress, Kernel, Read, Write, args};

const PTX: &str = include_str!("kernels/scale.ptx");
const METADATA: &str = include_str!("kernels/scale.json");

/// `scale(x, y, a, n)`: `y[i] = x[i] * a` for `i < n`.
fn load(device: &Device, metadata: &str) -> Kernel {
    // SAFETY: the files were made together.
    unsafe { device.load_json(PTX, metadata) }.unwrap()
}

/// The metadata with the extent of `x` taken away.
fn unproved(why: &str) -> String {
    METADATA.replace(r#""access": "read", "extent": "n""#, &format!(r#""extent_unknown": "{why}""#))
}

#[test]
fn short_slices_are_refused_on_every_handle() {
    for device in [Device::emulator(), Device::auto()] {
        let kernel = load(&device, METADATA);
        let stream = device.default_stream();
        let x = device.upload(&[1.0f32; 8]).unwrap();
        let mut y = device.zeros::<f32>(64).unwrap();
        let said = kernel.launch(stream, 1, &args![&x, &mut y, 2.0f32, 9]).unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(said, @"kernel `scale`, argument `x` (*fp32): the kernel touches 9 elements (`n`), the slice has 8; pass a longer one, or check sizes, strides and grid of the launch");
        }
        let typed: Kernel<(Read<f32>, Write<f32>, f32, i32)> = kernel.typed().unwrap();
        assert_eq!(typed.launch(stream, 1, (&x, &mut y, 2.0, 9)).unwrap_err(), said);
        assert_eq!(typed.untyped().launch(stream, 1, &args![&x, &mut y, 2.0f32, 9]).unwrap_err(), said);
        let recorded = stream.capture(|s| kernel.launch(s, 1, &args![&x, &mut y, 2.0f32, 9])).unwrap_err();
        assert_eq!(recorded, said);
        assert_eq!(y.to_vec().unwrap(), [0.0; 64], "nothing ran");
        kernel.launch(stream, 1, &args![&x, &mut y, 2.0f32, 8]).unwrap();
        assert_eq!(y.to_vec().unwrap()[..9], [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.0]);
    }
}

#[test]
fn what_is_not_proved_is_refused_with_the_pointer_and_the_reason() {
    let device = Device::emulator();
    let kernel = load(&device, &unproved("an index is read from memory"));
    let stream = device.default_stream();
    let (x, mut y) = (device.upload(&[1.0f32; 64]).unwrap(), device.zeros::<f32>(64).unwrap());
    let said = kernel.launch(stream, 1, &args![&x, &mut y, 2.0f32, 4]).unwrap_err();
    insta::assert_snapshot!(said, @"kernel `scale`, argument `x` (*fp32): it is not proved how far the kernel gets from this pointer: an index is read from memory; where you know that its accesses lie within the slice, call the unsafe function `launch_unchecked`");
    // SAFETY: it accesses four elements, and both have 64.
    unsafe { kernel.launch_unchecked(stream, 1, &args![&x, &mut y, 2.0f32, 4]) }.unwrap();
    // SAFETY: as above, for the launches of this handle.
    let assumed: Kernel<(Write<f32>, Write<f32>, f32, i32)> = unsafe { kernel.assume_in_bounds() }.typed().unwrap();
    let mut x = x;
    assumed.launch(stream, 1, (&mut x, &mut y, 3.0, 4)).unwrap();
    assert_eq!(y.to_vec().unwrap()[..5], [3.0, 3.0, 3.0, 3.0, 0.0]);
    assert!(kernel.launch(stream, 1, &args![&x, &mut y, 2.0f32, 4]).is_err(), "the first handle checks as before");
}

#[test]
fn the_null_pointer_has_no_elements() {
    let device = Device::emulator();
    let kernel = load(&device, METADATA);
    let (stream, mut y) = (device.default_stream(), device.zeros::<f32>(64).unwrap());
    // An index of a kernel, far enough from 0, is an address of other memory.
    let said = kernel.launch(stream, 1, &args![DeviceAddress::NULL, &mut y, 2.0f32, 4]).unwrap_err();
    assert!(said.to_string().contains("argument `x`") && said.to_string().contains("the slice has 0"), "{said}");
    kernel.launch(stream, 1, &args![DeviceAddress::NULL, &mut y, 2.0f32, 0]).unwrap();
}

#[test]
fn errors_are_readable_where_a_program_ends_with_them() {
    let error = load(&Device::emulator(), METADATA).launch(Device::emulator().default_stream(), 1, &[]).unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn slices_are_taken_by_reference_too() {
    let device = Device::emulator();
    let (kernel, stream) = (load(&device, METADATA), device.default_stream());
    let (x, mut y) = (device.upload(&[1.0f32; 64]).unwrap(), device.zeros::<f32>(64).unwrap());
    let (from, mut to) = (x.slice(8..), y.slice_mut(8..));
    kernel.launch(stream, 1, &args![&from, &mut to, 2.0f32, 8]).unwrap();
    let typed: Kernel<(Read<f32>, Write<f32>, f32, i32)> = kernel.typed().unwrap();
    typed.launch(stream, 1, (&from, &mut to, 3.0, 4)).unwrap();
    stream.copy(from.slice(..2), to.reborrow().slice_mut(..2)).unwrap();
    // What was given to be read is not written.
    assert!(kernel.launch(stream, 1, &args![&from, &to, 2.0f32, 8]).is_err());
    assert_eq!(y.to_vec().unwrap()[8..17], [1.0, 1.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 0.0]);
}

#[cfg(feature = "jit")]
mod compiled {
    use super::*;
    use rtc_runtime::{TensorDescriptor, jit::Options};

    fn said(device: &Device, source: &str, args: &[rtc_runtime::Arg<'_>]) -> String {
        let program = device.jit(&[("k.rt", source)]).unwrap().with_cache(None);
        let kernel = program.kernel("k").unwrap();
        let launched = kernel.launch(device.default_stream(), 1, args, &Options::new());
        launched.err().map_or("launched".into(), |error| error.to_string())
    }

    fn devices() -> [Device; 2] {
        [Device::emulator(), Device::interpreter().unwrap()]
    }

    #[test]
    fn launches_of_compiled_kernels_follow_the_same_rule() {
        let fill = "@triton.jit\ndef k(y, n):\n    i = tl.arange(0, 16)\n    tl.store(y + i, 1.0, mask=i < n)\n";
        let gather = "@triton.jit\ndef k(y, at):\n    tl.store(y + tl.load(at), 1.0)\n";
        for device in devices() {
            let mut y = device.zeros::<f32>(8).unwrap();
            assert_eq!(said(&device, fill, &args![&mut y, 8]), "launched");
            let short = said(&device, fill, &args![&mut y, 9]);
            assert!(short.contains("argument `y`") && short.contains("the slice has 8"), "{short}");
            let at = device.upload(&[1 << 20]).unwrap();
            let open = said(&device, gather, &args![&mut y, &at]);
            assert!(open.contains("argument `y`") && open.contains("`launch_unchecked`"), "{open}");
        }
    }

    #[test]
    fn pointers_that_are_no_arguments_are_refused() {
        let source = "@triton.jit\ndef k(address):\n    tl.store(address.to(tl.pointer_type(tl.float32)), 1.0)\n";
        for device in devices() {
            let said = said(&device, source, &args![0x7f00_0000_0000u64]);
            assert!(said.contains("kernel `k` may access memory other than that of its arguments"), "{said}");
        }
    }

    #[test]
    fn descriptors_must_lie_within_their_slice() {
        let source = "@triton.jit\ndef k(d):\n    d.store([0, 0], tl.zeros([8, 16], tl.float32))\n";
        for device in devices() {
            let mut y = device.zeros::<f32>(8 * 16).unwrap();
            let whole = TensorDescriptor::new(&mut y, &[8, 16], &[16, 1]).with_block(&[8, 16]);
            assert_eq!(said(&device, source, &args![&whole]), "launched");
            let beyond = TensorDescriptor::new(&mut y, &[9, 16], &[16, 1]).with_block(&[8, 16]);
            let said = said(&device, source, &args![&beyond]);
            assert!(said.contains("the slice has 128"), "{said}");
        }
    }
}

#[test]
fn sizes_of_a_grid_that_no_launch_has_are_errors() {
    let device = Device::emulator();
    let kernel = load(&device, METADATA);
    let (x, mut y) = (device.upload(&[1.0f32; 32]).unwrap(), device.zeros::<f32>(32).unwrap());
    let mut refused = |grid: rtc_runtime::Grid| {
        let arguments = args![&x, &mut y, 2.0f32, 32];
        kernel.launch(device.default_stream(), grid, &arguments).unwrap_err()
    };
    insta::assert_snapshot!(refused((1, -3).into()), @"kernel `scale`: the grid has -3 programs along y; give 0 to 2147483647");
    insta::assert_snapshot!(refused((1usize << 32).into()), @"kernel `scale` is out of resources: grid size x (blocks): needed 4294967296, available 2147483647. Let each program do more.");
    insta::assert_snapshot!(refused([u64::MAX, 1, 1].into()), @"kernel `scale` is out of resources: grid size x (blocks): needed 9223372036854775807, available 2147483647. Let each program do more.");
    let mut launched = |grid: rtc_runtime::Grid| {
        let arguments = args![&x, &mut y, 2.0f32, 32];
        kernel.launch(device.default_stream(), grid, &arguments)
    };
    launched(x.len().div_ceil(32).into()).unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; 32]);
}
