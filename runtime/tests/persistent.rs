//! Parameters that the launch fills by itself, and kernels that loop over programs: a kernel written by hand, with the
//! metadata that the compiler would write.
#![allow(clippy::unwrap_used, unsafe_code)]

use rtc_runtime::{Device, Kernel, args};

/// `y[p] = ctaid.x` for every program `p`, in the order x, y; one thread per block.
const PTX: &str = "\
.version 8.3
.target sm_80
.address_size 64

.visible .entry visit(
    .param .u64 visit_param_0,
    .param .u32 visit_param_1,
    .param .u32 visit_param_2
)
.reqntid 32
{
    .reg .pred %p<3>;
    .reg .b32 %r<10>;
    .reg .b64 %rd<5>;

    ld.param.u64 %rd1, [visit_param_0];
    ld.param.u32 %r1, [visit_param_1];
    ld.param.u32 %r2, [visit_param_2];
    mul.lo.s32 %r3, %r1, %r2;
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %nctaid.x;
    mov.u32 %r6, %tid.x;
    setp.ne.s32 %p1, %r6, 0;
    @%p1 bra DONE;
    mov.u32 %r7, %r4;
LOOP:
    setp.ge.s32 %p2, %r7, %r3;
    @%p2 bra DONE;
    mul.wide.s32 %rd2, %r7, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    add.s32 %r7, %r7, %r5;
    bra LOOP;
DONE:
    ret;
}
";

const METADATA: &str = r#"{"kernel": "visit", "symbol": "visit", "arch": "sm_80", "ptx_version": 83, "num_warps": 1,
"num_ctas": 1, "threads_per_block": 32, "shared_bytes": 0, "global_scratch_bytes": 0, "global_scratch_align": 1,
"cluster": [1, 1, 1], "params": [{"name": "y", "type": "*i32", "offset": 0, "size": 8},
{"name": "grid.0", "type": "i32", "offset": 8, "size": 4, "hidden": {"grid": 0}},
{"name": "grid.1", "type": "i32", "offset": 12, "size": 4, "hidden": {"grid": 1}}],
"persistent": {"blocks_per_multiprocessor": 2}, "constexprs": {}, "source_hash": "", "compiler_version": ""}"#;

fn load(device: &Device, metadata: &str) -> Kernel {
    // SAFETY: the metadata is that of the kernel; it writes an element for each program, and the buffers have as many.
    unsafe { device.load_json(PTX, metadata).unwrap().assume_in_bounds() }
}

/// Which block ran each of the programs of the grid; -1 where none did.
fn visited(device: &Device, metadata: &str, grid: (u32, u32), programs: usize) -> Vec<i32> {
    let kernel = load(device, metadata);
    let mut y = device.upload(&vec![-1; programs]).unwrap();
    let stream = device.default_stream();
    kernel.launch(stream, grid, &args![&mut y]).unwrap();
    stream.synchronize().unwrap();
    y.to_vec().unwrap()
}

#[test]
fn every_program_runs_once_in_rounds_of_equal_size() {
    for device in [Device::emulator(), Device::auto()] {
        let at_once = 2 * device.sm_count() as usize;
        // All at once; two rounds; three rounds of fewer blocks than fit.
        for programs in [1, at_once, 2 * at_once, 2 * at_once + 1] {
            let blocks = programs.div_ceil(programs.div_ceil(at_once));
            let expected: Vec<i32> = (0..programs).map(|p| (p % blocks) as i32).collect();
            assert_eq!(visited(&device, METADATA, (programs as u32, 1), programs), expected, "{programs} on {device}");
        }
        let blocks = (2 * at_once).div_ceil(2);
        let expected: Vec<i32> = (0..2 * at_once).map(|p| (p % blocks) as i32).collect();
        assert_eq!(visited(&device, METADATA, (at_once as u32, 2), 2 * at_once), expected, "{device}");
        assert_eq!(visited(&device, METADATA, (0, 3), 2), [-1, -1]);
    }
}

#[test]
fn without_the_key_a_block_is_a_program() {
    let metadata = METADATA.replace(r#""persistent": {"blocks_per_multiprocessor": 2}, "#, "");
    assert_ne!(metadata, METADATA);
    assert_eq!(visited(&Device::emulator(), &metadata, (9, 1), 9), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn hidden_parameters_take_no_argument() {
    let device = Device::emulator();
    let kernel = load(&device, METADATA);
    let y = device.alloc::<i32>(16).unwrap();
    let error = kernel.launch(device.default_stream(), 4, &args![&y, 4, 1]).unwrap_err();
    insta::assert_snapshot!(error, @"kernel `visit` takes 1 arguments (y), the launch gives 3");
}
