//! Scratch memory of launches: each block has its own, launches of several streams do not share it, and graphs have theirs.
#![allow(clippy::unwrap_used, unsafe_code)]
#![cfg(feature = "emulator")]

use rtc_runtime::{Device, Kernel, args};

/// `squares(out, n)`: each block writes `n` numbers that depend on it to its scratch memory and then sums them up.
const PTX: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry squares(
    .param .u64 squares_param_0,
    .param .u32 squares_param_1,
    .param .u64 squares_param_2
)
.reqntid 1
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [squares_param_0];
    ld.param.u32 %r1, [squares_param_1];
    ld.param.u64 %rd2, [squares_param_2];
    mov.u32 %r2, %ctaid.x;
    mul.wide.u32 %rd3, %r2, 4096;
    add.s64 %rd4, %rd2, %rd3;
    mov.u32 %r3, 0;
    mov.u64 %rd5, %rd4;
$write:
    add.s32 %r4, %r2, %r3;
    st.global.u32 [%rd5], %r4;
    add.s64 %rd5, %rd5, 4;
    add.s32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra $write;
    mov.u32 %r3, 0;
    mov.u32 %r5, 0;
    mov.u64 %rd5, %rd4;
$read:
    ld.global.u32 %r4, [%rd5];
    add.s32 %r5, %r5, %r4;
    add.s64 %rd5, %rd5, 4;
    add.s32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra $read;
    mul.wide.u32 %rd6, %r2, 4;
    add.s64 %rd7, %rd1, %rd6;
    st.global.u32 [%rd7], %r5;
    ret;
}
";

fn kernel(device: &Device) -> Kernel {
    let metadata = r#"{"kernel": "squares", "symbol": "squares", "arch": "sm_80", "ptx_version": 80, "num_warps": 1,
        "num_ctas": 1, "threads_per_block": 1, "shared_bytes": 0, "global_scratch_bytes": 4096, "global_scratch_align": 128,
        "cluster": [1, 1, 1], "params": [{"name": "out", "type": "*i32", "offset": 0, "size": 8, "access": "write"},
        {"name": "n", "type": "i32", "offset": 8, "size": 4}], "constexprs": {}, "source_hash": "", "compiler_version": ""}"#;
    // SAFETY: the metadata is that of the kernel; it writes an element for each block, and the buffers have as many.
    unsafe { device.load_json(PTX, metadata).unwrap().assume_in_bounds() }
}

/// What the kernel gives.
fn expected(blocks: i32, n: i32) -> Vec<i32> {
    (0..blocks).map(|block| (0..n).map(|i| block + i).sum()).collect()
}

#[test]
fn blocks_and_streams_have_their_own() {
    for device in [Device::emulator(), Device::auto()] {
        let kernel = kernel(&device);
        let others = [device.stream().unwrap(), device.stream().unwrap()];
        let streams = [device.default_stream(), &others[0], &others[1]];
        // The memory of a stream grows in flight, while launches that have the old one may still run.
        for (round, blocks) in [3, 300, 7, 2000, 2000, 1].into_iter().enumerate() {
            let mut outs: Vec<_> = streams.iter().map(|_| device.zeros::<i32>(blocks).unwrap()).collect();
            for (index, (stream, out)) in streams.into_iter().zip(&mut outs).enumerate() {
                let n = 20 + (round + index) as i32;
                kernel.launch(stream, blocks as u32, &args![out, n]).unwrap();
            }
            for (index, (stream, out)) in streams.into_iter().zip(&outs).enumerate() {
                stream.synchronize().unwrap();
                let n = 20 + (round + index) as i32;
                assert_eq!(out.to_vec().unwrap(), expected(blocks as i32, n), "{device}, stream {index}");
            }
        }
    }
}

#[test]
fn graphs_have_their_own() {
    for device in [Device::emulator(), Device::auto()] {
        let (kernel, stream) = (kernel(&device), device.stream().unwrap());
        let mut outs = [device.zeros::<i32>(50).unwrap(), device.zeros::<i32>(50).unwrap()];
        let [first, second] = &mut outs;
        let graph = stream
            .capture(|s| {
                kernel.launch(s, 50, &args![&mut *first, 30])?;
                kernel.launch(s, 50, &args![&mut *second, 40])
            })
            .unwrap();
        for _ in 0..3 {
            first.write(0, &[0; 50]).unwrap();
            graph.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert_eq!(first.to_vec().unwrap(), expected(50, 30), "{device}");
            assert_eq!(second.to_vec().unwrap(), expected(50, 40), "{device}");
        }
    }
}
