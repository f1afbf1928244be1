//! Graphs: recorded launches run as they were given, with the contents that the buffers have then.
#![allow(clippy::unwrap_used, unsafe_code)]
#![cfg(feature = "emulator")]

use rtc_runtime::{Device, Kernel, args};

const PTX: &str = include_str!("kernels/scale.ptx");
const METADATA: &str = include_str!("kernels/scale.json");

fn load(device: &Device) -> Kernel {
    // SAFETY: the files were made together.
    unsafe { device.load_json(PTX, METADATA) }.unwrap()
}

fn devices() -> Vec<Device> {
    let mut devices = vec![Device::emulator()];
    devices.extend(Device::cuda(0));
    devices
}

#[test]
fn a_graph_runs_again_and_again() {
    for device in devices() {
        let kernel = load(&device);
        let stream = device.stream().unwrap();
        let mut x = device.upload(&[1.0f32; 64]).unwrap();
        let mut y = device.zeros::<f32>(64).unwrap();
        let mut z = device.zeros::<f32>(64).unwrap();
        let graph = stream
            .capture(|s| {
                kernel.launch(s, 2, &args![&x, &mut y, 3.0f32, 64])?;
                kernel.launch(s, 2, &args![&y, &mut z, 2.0f32, 32])?;
                s.copy(y.slice(..8), z.slice_mut(56..))
            })
            .unwrap();
        assert_eq!((y.to_vec().unwrap(), z.to_vec().unwrap()), (vec![0.0; 64], vec![0.0; 64]), "{device}");
        for value in [1.0f32, 5.0] {
            x.write(0, &[value; 64]).unwrap();
            graph.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            let expected = [[6.0 * value; 32].as_slice(), &[0.0; 24], &[3.0 * value; 8]].concat();
            assert_eq!(z.to_vec().unwrap(), expected, "{device}");
        }
    }
}

#[test]
fn a_graph_keeps_what_it_uses() {
    for device in devices() {
        let stream = device.stream().unwrap();
        let mut out = device.zeros::<f32>(32).unwrap();
        let graph = {
            let kernel = load(&device);
            let x = device.upload(&[4.0f32; 32]).unwrap();
            stream.capture(|s| kernel.launch(s, 1, &args![&x, &mut out, 0.5f32, 32])).unwrap()
        };
        // Memory that was freed would be given out again here.
        let _others: Vec<_> = (0..4).map(|_| device.upload(&[-1.0f32; 32]).unwrap()).collect();
        graph.launch(&stream).unwrap();
        assert_eq!(out.to_vec().unwrap(), [2.0; 32], "{device}");
    }
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    for device in devices() {
        let kernel = load(&device);
        let stream = device.stream().unwrap();
        let mut x = device.zeros::<f32>(32).unwrap();
        let mut host = device.pinned::<f32>(32).unwrap();
        let outside = stream.record().unwrap();
        let said = |result: rtc_runtime::Result<rtc_runtime::Graph>| result.unwrap_err().to_string();
        let refused = |what: &str| {
            format!("while work is recorded, {what} cannot be part of it; do that before or after the recording")
        };
        assert_eq!(said(stream.capture(|s| s.synchronize())), refused("a wait of the host"));
        let event = refused("an event of work outside of it, or outside an event of its work,");
        assert_eq!(said(stream.capture(|s| s.wait(&outside))), event);
        assert_eq!(said(stream.capture(|s| s.upload(&host, &mut x))), refused("a copy from the host"));
        assert_eq!(said(stream.capture(|s| s.download(&x, &mut host))), refused("a copy to the host"));
        // A mistake in the work is the error of the recording, and the device can be used afterwards.
        let error = stream.capture(|s| kernel.launch(s, 1, &args![&x])).unwrap_err().to_string();
        assert!(error.contains("takes 4 arguments"), "{error}");
        let graph = stream.capture(|_| Ok(())).unwrap();
        graph.launch(&stream).unwrap();
        let other = Device::emulator();
        assert!(graph.launch(other.default_stream()).is_err());
        assert_eq!(x.to_vec().unwrap(), [0.0; 32]);
    }
}

/// Memory and a stream of cudarc, where there is a GPU.
#[test]
#[cfg(feature = "cudarc")]
fn memory_and_streams_of_cudarc() {
    use cudarc::driver::CudaContext;
    use rtc_runtime::interop;
    use rtc_test_needs::{Need, missing};
    let Ok(device) = Device::cuda(0) else { return missing(Need::Gpu) };
    let theirs = CudaContext::new(0).unwrap().new_stream().unwrap();
    let x = theirs.clone_htod(&[3.0f32; 64]).unwrap();
    let mut y = theirs.alloc_zeros::<f32>(64).unwrap();
    let kernel = load(&device);
    let stream = interop::stream(&device, &theirs).unwrap();
    {
        let read = interop::read(&device, &x, &theirs).unwrap();
        let mut write = interop::write(&device, &mut y, &theirs).unwrap();
        kernel.launch(&stream, 2, &args![read.slice(), write.slice_mut(), 2.0f32, 64]).unwrap();
    }
    assert_eq!(theirs.clone_dtoh(&y).unwrap(), [6.0; 64]);
    assert!(interop::stream(&Device::emulator(), &theirs).is_err());
}
