//! What the runtime says where the driver of CUDA refuses, and what it asks of the driver: with a driver that has no GPU and
//! fails as it is told (`driver/stub.c`), in a process for each case.
#![allow(clippy::unwrap_used, unsafe_code)]
#![cfg(all(feature = "cuda", unix))]

#[cfg(feature = "jit")]
#[path = "driver/ahead.rs"]
mod ahead;
#[path = "driver/pool.rs"]
mod pool;

use rtc_runtime::{Device, Kernel, Result, Stream, args};
use rtc_test_needs::stubs::ptxas;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const PTX: &str = include_str!("kernels/scale.ptx");
const METADATA: &str = include_str!("kernels/scale.json");

/// The name of the test that is the process of a case.
const CASE: &str = "the_process_of_a_case";

fn load(device: &Device, ptx: &str, metadata: &str) -> Result<Kernel> {
    // SAFETY: the metadata is that of the kernel, and the driver of these tests runs nothing.
    Ok(unsafe { device.load_json(ptx, metadata)?.assume_in_bounds() })
}

/// What a case says with a driver that fails in that way.
fn said(case: &str, fault: &str) -> String {
    let folder = stub();
    let mut process = process(case);
    process.env("LD_LIBRARY_PATH", folder.path()).env("RTC_STUB", fault);
    lines(&mut process)
}

/// A stream of the driver's whose handle is given by number, that of `own` and 8.
fn foreign_stream(device: &Device, own: &Stream) -> Result<Stream> {
    // SAFETY: the driver of these tests runs nothing.
    unsafe { Stream::from_raw(device, own.as_raw().unwrap() + 8) }
}

fn stub() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver/stub.c");
    for name in ["libcuda.so", "libcuda.so.1"] {
        let library = folder.path().join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(library).arg(&source);
        assert!(compiler.status().expect("a C compiler").success());
    }
    folder
}

fn process(case: &str) -> Command {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", CASE, "--nocapture", "--test-threads=1"]).env("RTC_CASE", case);
    process
}

/// What a process says of its case.
fn lines(process: &mut Command) -> String {
    let output = process.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let lines =
        text.lines().filter_map(|line| line.split_once("says: ").map(|(_, said)| said).or_else(|| counts(line)));
    lines.collect::<Vec<_>>().join("\n")
}

fn counts(line: &str) -> Option<&str> {
    line.starts_with("driver: ").then_some(line)
}

/// Not a test by itself: runs one case where another test asks for it.
#[test]
fn the_process_of_a_case() {
    let Ok(case) = std::env::var("RTC_CASE") else { return };
    let result = match &case[..] {
        "open" => Device::cuda(0).map(|_| ()),
        "allocate" => Device::cuda(0).unwrap().alloc::<f32>(1 << 20).map(|_| ()),
        "load" => load(&Device::cuda(0).unwrap(), PTX, METADATA).map(|_| ()),
        "line info" => {
            rtc_runtime::set_line_info(true);
            let debugged = format!("{PTX}\n\t.section\t.debug_info\n\t{{\n.b8 0\n\t}}\n");
            load(&Device::cuda(0).unwrap(), &debugged, METADATA).map(|_| ())
        }
        "lost" => lost(),
        "illegal" => illegal(),
        "scratch" => scratch(),
        "maps" => maps(),
        "count" => Device::cuda_count().map(|count| println!("says: {count}")),
        "assemble" => assemble(),
        "one stream" => one_stream(),
        "two streams" => two_streams(),
        "a stream goes" => a_stream_goes(),
        "properties" => properties(),
        "few blocks" => few_blocks(),
        #[cfg(feature = "jit")]
        "ahead" => ahead::case(),
        other => pool::case(other),
    };
    if let Err(error) = result {
        println!("says: {}", error.to_string().replace('\n', "\nsays:     "));
    }
}

/// One stream besides the default one.
fn one_stream() -> Result<()> {
    let device = Device::cuda(0)?;
    let kernel = load(&device, PTX, METADATA)?;
    let (stream, x, mut y) = (device.stream()?, device.alloc::<f32>(32)?, device.alloc::<f32>(32)?);
    for stream in [&stream, device.default_stream()] {
        kernel.launch(stream, 1, &args![&x, &mut y, 2.0f32, 32])?;
        stream.copy(&x, &mut y)?;
        stream.write(&mut y, &[0.0; 32])?;
        stream.read(&y, &mut [0.0; 32])?;
    }
    Ok(())
}

/// Work of two streams on the same memory.
fn two_streams() -> Result<()> {
    let device = Device::cuda(0)?;
    let kernel = load(&device, PTX, METADATA)?;
    // The second waits for the first: an event, a wait.
    let (a, b) = (device.stream()?, device.stream()?);
    let (x, mut y, mut z) = (device.alloc::<f32>(32)?, device.alloc::<f32>(32)?, device.alloc::<f32>(32)?);
    // Each piece of work but that of the default stream records an event.
    kernel.launch(&a, 1, &args![&x, &mut y, 2.0f32, 32])?;
    kernel.launch(&b, 1, &args![&y, &mut z, 2.0f32, 32])?; // waits for the write of `y`
    kernel.launch(&b, 1, &args![&x, &mut z, 2.0f32, 32])?; // `x` was read by another stream
    a.zero(&mut y)?; // waits for the read of `y`
    kernel.launch(device.default_stream(), 1, &args![&x, &mut z, 2.0f32, 32])?;
    let graph = a.capture(|s| s.copy(&y, &mut z))?;
    graph.launch(&b)?; // waits for the zeros
    Ok(())
}

/// Work of a stream that is dropped before it has ended; no events are recorded for the other.
fn a_stream_goes() -> Result<()> {
    let device = Device::cuda(0)?;
    let (a, b) = (device.stream()?, device.stream()?);
    let mut x = device.alloc::<f32>(32)?;
    b.zero(&mut x)?;
    drop(b);
    a.zero(&mut x)
}

/// What a GPU is asked for its properties.
fn properties() -> Result<()> {
    let device = Device::cuda(0)?;
    let info = device.memory_info()?;
    println!("says: {}, {device}, {:?}, {}", device.name(), device.compute_capability(), device.arch());
    println!("says: {} of {} bytes, {:x?}", info.free, device.total_memory()?, device.uuid()?[0]);
    Ok(())
}

/// A launch after which nothing works.
fn lost() -> Result<()> {
    let device = Device::cuda(0)?;
    let kernel = load(&device, PTX, METADATA)?;
    let (stream, x, mut y) = (device.stream()?, device.alloc::<f32>(32)?, device.alloc::<f32>(32)?);
    kernel.launch(&stream, 1, &args![&x, &mut y, 2.0f32, 32])?;
    let later: [Result<()>; 5] = [
        stream.synchronize(),
        kernel.launch(&stream, 1, &args![&x, &mut y, 2.0f32, 32]),
        y.to_vec().map(|_| ()),
        device.alloc::<f32>(1).map(|_| ()),
        load(&device, PTX, METADATA).map(|_| ()),
    ];
    for error in later.iter().map(|result| result.as_ref().unwrap_err()) {
        assert!(error.is_sticky(), "{error}");
        println!("says: {error}");
    }
    Ok(())
}

/// A kernel that reads what is no memory, on a real GPU.
fn illegal() -> Result<()> {
    let device = Device::cuda(0)?;
    let kernel = load(&device, PTX, METADATA)?;
    let (stream, mut y) = (device.stream()?, device.alloc::<f32>(32)?);
    // SAFETY: it is what is tried; the process ends after it.
    let nowhere = unsafe { rtc_runtime::DeviceAddress::new(0x1000) };
    kernel.launch(&stream, 1, &args![nowhere, &mut y, 2.0f32, 32])?;
    let wait = stream.synchronize().unwrap_err();
    let later = [
        kernel.launch(&stream, 1, &args![nowhere, &mut y, 2.0f32, 32]).unwrap_err(),
        y.to_vec().unwrap_err(),
        load(&device, PTX, METADATA).unwrap_err(),
    ];
    for error in [wait].iter().chain(&later) {
        assert!(error.is_sticky() && error.to_string().contains("until the process is started again"), "{error}");
        println!("says: {error}");
    }
    Ok(())
}

/// Loads kernels of which the driver's assembler may make wrong code, and one of which it does not.
fn assemble() -> Result<()> {
    if std::env::var_os("RTC_HEAR").is_some() {
        rtc_runtime::on_warning(|warning| println!("says: {warning}"));
    }
    let device = Device::cuda(0)?;
    let products = PTX.replace("sm_80", "sm_90a").replace("    .reg .pred", "    // wgmma.mma_async\n    .reg .pred");
    let plain = PTX.replace("sm_80", "sm_90a");
    for ptx in [&plain, &products, &products] {
        let kernel = load(&device, ptx, &METADATA.replace("sm_80", "sm_90a"))?;
        println!("says: {}", if kernel.is_cubin() { "by ptxas" } else { "by the driver" });
    }
    Ok(())
}

/// Launches with scratch memory, on two streams.
fn scratch() -> Result<()> {
    let device = Device::cuda(0)?;
    let metadata = METADATA.replace(r#""global_scratch_bytes": 0"#, r#""global_scratch_bytes": 4096"#);
    let ptx = PTX
        .replace("    .param .u32 scale_param_3\n", "    .param .u32 scale_param_3,\n    .param .u64 scale_param_4\n");
    let kernel = load(&device, &ptx, &metadata)?;
    let (x, mut y) = (device.alloc::<f32>(32)?, device.alloc::<f32>(32)?);
    let other = device.stream()?;
    for grid in [1, 2, 100, 3] {
        for _ in 0..50 {
            kernel.launch(device.default_stream(), grid, &args![&x, &mut y, 2.0f32, 32])?;
            kernel.launch(&other, grid, &args![&x, &mut y, 2.0f32, 32])?;
        }
    }
    drop(other);
    no_allocation(|| kernel.launch(device.default_stream(), 100, &args![&x, &mut y, 2.0f32, 32]))
}

/// Launches of a kernel with a tensor map.
fn maps() -> Result<()> {
    let device = Device::cuda(0)?;
    let ptx = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry show(\n    .param .u64 show_param_0,\n    \
               .param .u32 show_param_1,\n    .param .align 64 .b8 show_param_2[128]\n)\n.reqntid 1\n{\n    ret;\n}\n";
    let params = r#"{"name": "x", "type": "*fp16", "offset": 0, "size": 8}, {"name": "M", "type": "i32", "offset": 8, "size": 4},
        {"name": "map.0", "type": "tensormap", "offset": 64, "size": 128, "hidden": {"tensor_map": {"base": "x",
          "start": "M * 8", "shape": ["M", 64], "strides": [64, 1], "dtype": "fp16", "box": [64, 32], "swizzle": 64,
          "padding": "zero"}}}"#;
    let metadata = METADATA
        .replace("scale", "show")
        .replace("\"threads_per_block\": 32", "\"threads_per_block\": 1")
        .replace("sm_80", "sm_90a");
    let (head, rest) = metadata.split_once("\"params\": [").unwrap();
    let (_, tail) = rest.split_once("],").unwrap();
    let kernel: Kernel = load(&device, ptx, &format!("{head}\"params\": [{params}],{tail}"))?;
    let (stream, x) = (device.stream()?, device.alloc::<half::f16>(1 << 12)?);
    // As many as are kept, again and again.
    for m in [2, 4, 6, 8] {
        kernel.launch(&stream, 1, &args![&x, m])?;
    }
    no_allocation(|| {
        (0..100).try_for_each(|_| [2, 4, 6, 8].into_iter().try_for_each(|m| kernel.launch(&stream, 1, &args![&x, m])))
    })
}

/// Launches of many and few blocks of a kernel whose registers are at a step of occupancy, the first of them recorded.
fn few_blocks() -> Result<()> {
    let device = Device::cuda(0)?;
    let metadata = METADATA.replace("\"threads_per_block\": 32", "\"threads_per_block\": 128");
    let kernel = load(&device, &PTX.replace(".reqntid 32", ".reqntid 128"), &metadata)?;
    let (stream, x, mut y) = (device.stream()?, device.alloc::<f32>(32)?, device.alloc::<f32>(32)?);
    stream.capture(|recording| kernel.launch(recording, 1, &args![&x, &mut y, 2.0f32, 32]))?;
    for grid in [1000, 265, 264, 1, 265] {
        println!("says: {grid} blocks");
        kernel.launch(&stream, grid, &args![&x, &mut y, 2.0f32, 32])?;
    }
    no_allocation(|| kernel.launch(&stream, 1, &args![&x, &mut y, 2.0f32, 32]))
}

fn no_allocation(work: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut result = Ok(());
    let counted = allocation_counter::measure(|| result = work());
    assert_eq!(counted.count_total, 0, "a warm launch allocates");
    result
}

#[test]
fn what_the_driver_refuses_is_told_with_a_remedy() {
    let mut table = String::new();
    for (what, case, fault) in [
        ("no GPU", "open", "none"),
        ("a driver older than all that is compiled", "open", "old"),
        ("too little memory", "allocate", "memory"),
        ("a driver too old for the PTX", "load", "load:222"),
        ("PTX that the driver takes for damaged", "load", "load:218"),
        ("PTX for another GPU", "load", "load:209"),
        ("a driver without its compiler", "load", "load:221"),
        ("an illegal address in a launch: wait, launch, read, allocate, load", "lost", "lost:700"),
    ] {
        let _ = writeln!(table, "{what}\n    {}", said(case, fault).replace('\n', "\n    "));
    }
    insta::assert_snapshot!(table);
    assert!(said("lost", "lost:719").contains("CUDA_ERROR_LAUNCH_FAILED"));
}

#[test]
fn a_driver_that_cannot_be_used_is_no_missing_driver() {
    for (fault, expected) in [
        ("", "1"),
        ("none", "0"),
        ("old", "the CUDA driver is too old: it is one for CUDA 11.4"),
        ("init:803", "CUDA: cuInit failed: "),
    ] {
        let said = said("count", fault);
        assert!(said.lines().any(|line| line.starts_with(expected)), "{fault}: {said}");
    }
}

/// The driver of these tests is one for CUDA 12.4.
#[test]
fn kernels_that_the_assembler_of_the_driver_may_get_wrong() {
    let (stub, places) = (stub(), tempfile::tempdir().unwrap());
    let (old, new, package) = (places.path().join("old"), places.path().join("new"), places.path().join("environment"));
    let (old_ptxas, new_ptxas) = (ptxas(&old, "12.8"), ptxas(&new, "12.9"));
    ptxas(&package.join("lib/python3.12/site-packages/nvidia/cuda_nvcc/bin"), "13.1");
    let said = |path: &Path, environment: &Path, named: Option<&Path>, heard: bool| {
        let mut process = process("assemble");
        process.env("LD_LIBRARY_PATH", stub.path()).env("VIRTUAL_ENV", environment);
        process.env("PATH", std::env::join_paths([path, Path::new("/usr/bin"), Path::new("/bin")]).unwrap());
        for name in ["RTC_PTXAS", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"] {
            process.env_remove(name);
        }
        process.envs(named.map(|named| ("RTC_PTXAS", named))).envs(heard.then_some(("RTC_HEAR", "1")));
        let output = process.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            let said = text.lines().filter_map(|line| line.split_once("says: ").map(|(_, said)| said.to_owned()));
            said.chain(text.lines().filter(|line| line.starts_with("warning[")).map(str::to_owned)).collect::<Vec<_>>()
        };
        (lines(&output.stdout), lines(&output.stderr))
    };
    let (by_driver, by_ptxas) = ("by the driver", "by ptxas");
    let warning = "warning[assembler-defect]: kernel `scale` is assembled for sm_90a by the driver's assembler of CUDA 12.4, which";
    // A toolkit of the machine may have a newer one, in which case nothing is wrong.
    let nowhere = places.path().join("nowhere");
    let (made, warnings) = said(&old, &nowhere, Some(&old_ptxas), false);
    assert_eq!(made, [by_driver; 3]);
    assert!(warnings.len() == 1 && warnings[0].starts_with(warning), "once: {warnings:?}");
    let (made, warnings) = said(&old, &nowhere, Some(&old_ptxas), true);
    assert!(made[1].starts_with(warning) && warnings.is_empty(), "{made:?}");
    let replaced = (vec![by_driver.to_owned(), by_ptxas.to_owned(), by_ptxas.to_owned()], Vec::new());
    assert_eq!(said(&old, &nowhere, Some(&new_ptxas), false), replaced);
    assert_eq!(said(&new, &nowhere, None, false), replaced, "on PATH");
    assert_eq!(said(&old, &package, None, false), replaced, "of a Python package");
    assert_eq!(said(&nowhere, &package, None, false), replaced, "of a Python package alone");
}

/// Two streams whose largest launch needs 100 blocks of 4 KiB allocate twice each (the first launch, the largest), and give back
/// what they hold.
#[test]
fn launches_of_few_blocks_have_more_registers() {
    let (held_back, given_up, free) =
        (said("few blocks", "registers:128"), said("few blocks", "registers:146"), said("few blocks", "registers:134"));
    insta::assert_snapshot!(format!("held back\n{held_back}\n\ngiven up for a block\n{given_up}\n\nneither\n{free}"));
}

#[test]
fn scratch_memory_is_kept() {
    assert_eq!(said("scratch", ""), "driver: 401 launches, 4 allocations on streams of which 0 are left, 0 maps");
}

#[test]
fn tensor_maps_are_kept_and_cost_no_allocation() {
    assert_eq!(said("maps", ""), "driver: 404 launches, 0 allocations on streams of which 0 are left, 4 maps");
}

/// The same with a GPU, where there is one.
#[test]
fn an_illegal_access_on_a_gpu() {
    if Device::cuda(0).is_ok() {
        let said = lines(&mut process("illegal"));
        assert_eq!(said.lines().count(), 4, "{said}");
        println!("{said}");
    }
}

#[test]
fn streams_are_put_in_order_by_events() {
    insta::assert_snapshot!(said("one stream", ""), @"driver: 2 launches, 0 allocations on streams of which 0 are left, 0 maps");
    insta::assert_snapshot!(said("two streams", ""), @r"
    driver: 4 launches, 0 allocations on streams of which 0 are left, 0 maps
    driver: 7 events recorded, 5 waits for them
    ");
}

#[test]
fn the_last_stream_waits_for_those_that_are_dropped() {
    insta::assert_snapshot!(said("a stream goes", "order"), @r"
    stream 2 waits for stream 0
    allocate A
    zero A on stream 2
    stream 0 waits for stream 2
    destroy stream 2
    zero A on stream 1
    free A
    destroy stream 1
    driver: 0 launches, 0 allocations on streams of which 0 are left, 0 maps
    driver: 3 events recorded, 2 waits for them
    ");
}

#[test]
fn properties_of_a_gpu() {
    insta::assert_snapshot!(said("properties", ""), @r"
    stub, cuda:0 (stub), (9, 0), sm_90a
    4096 of 1048576 bytes, ab
    driver: 0 launches, 0 allocations on streams of which 0 are left, 0 maps
    ");
}

#[test]
fn lines_of_the_source_are_kept_where_they_are_asked_for() {
    let options = |case: &str, wanted: Option<&str>| {
        let mut process = process(case);
        let folder = stub();
        process.env("LD_LIBRARY_PATH", folder.path()).env("RTC_STUB", "options").env_remove("RTC_LINE_INFO");
        wanted.map(|value| process.env("RTC_LINE_INFO", value));
        let said = lines(&mut process);
        said.lines().filter(|line| line.starts_with("option")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(options("load", None), "");
    assert_eq!(options("load", Some("0")), "");
    assert_eq!(options("load", Some("1")), "option 13 is 1, option 11 is 0");
    // By the call, and debug sections are kept, too.
    assert_eq!(options("line info", Some("0")), "option 13 is 1, option 11 is 1");
}
