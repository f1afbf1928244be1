//! The calls of the driver by which memory is allocated and freed in the order of streams.

use crate::{foreign_stream, said};
use rtc_runtime::{Device, Result};

/// The cases of the tests below.
pub fn case(name: &str) -> Result<()> {
    match name {
        "one stream's memory" => one_stream(),
        "memory of two streams" => two_streams(),
        "memory outlives its stream" => outlives(),
        "memory on a stream of another library" => foreign_use(),
        "memory of a stream by its handle" => handle(),
        #[cfg(feature = "cudarc")]
        "memory of a stream of cudarc" => cudarc(),
        "recorded memory" => recorded(),
        "memory of the default stream" => default_stream(),
        "no memory" => Device::cuda(0)?.stream()?.alloc::<f32>(1 << 20).map(|_| ()),
        "threshold" => Device::cuda(0)?.set_pool_release_threshold(1 << 30),
        #[cfg(feature = "dlpack")]
        "exported memory" => exported(),
        other => panic!("no case {other}"),
    }
}

fn one_stream() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let x = stream.alloc_zeros::<f32>(32)?;
    let mut y = stream.alloc::<f32>(32)?;
    stream.copy(&x, &mut y)?;
    drop(x);
    y.to_vec()?;
    drop(y);
    assert!(stream.alloc::<u64>(usize::MAX).is_err());
    // Nothing is allocated for no elements by the driver of a GPU either, which refuses that.
    stream.alloc::<f32>(0).map(|empty| assert!(empty.is_empty()))
}

fn two_streams() -> Result<()> {
    let device = Device::cuda(0)?;
    let (a, b, c) = (device.stream()?, device.stream()?, device.stream()?);
    let x = a.alloc_zeros::<f32>(32)?;
    let (mut y, mut z) = (b.alloc::<f32>(32)?, c.alloc::<f32>(32)?);
    println!("says: copies");
    b.copy(&x, &mut y)?;
    c.copy(&x, &mut z)?;
    println!("says: drops");
    drop(x);
    drop(y);
    drop(z);
    Ok(())
}

fn outlives() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let x = stream.alloc::<f32>(32)?;
    drop(stream);
    println!("says: drops");
    drop(x);
    Ok(())
}

fn foreign_use() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let theirs = foreign_stream(&device, &stream)?;
    let (x, mut y) = (device.alloc::<f32>(32)?, stream.alloc::<f32>(32)?);
    let mut z = stream.alloc::<f32>(32)?;
    stream.zero(&mut y)?;
    println!("says: copies");
    theirs.copy(&x, &mut y)?;
    theirs.copy(&y, &mut z)?;
    stream.zero(&mut z)?;
    println!("says: drops");
    drop(y);
    Ok(())
}

fn handle() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    foreign_stream(&device, &stream)?.alloc_zeros::<f32>(32).map(|_| ())
}

#[cfg(feature = "cudarc")]
fn cudarc() -> Result<()> {
    let device = Device::cuda(0)?;
    let theirs = cudarc::driver::CudaContext::new(0).unwrap().new_stream().unwrap();
    let stream = rtc_runtime::interop::stream(&device, &theirs)?;
    println!("says: allocates");
    let x = stream.alloc_zeros::<f32>(32)?;
    x.to_vec()?;
    drop((stream, theirs));
    println!("says: drops");
    drop(x);
    Ok(())
}

fn recorded() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let error = stream.capture(|s| s.alloc::<f32>(32).map(|_| ())).unwrap_err();
    println!("says: {error}");
    let (x, mut y) = (stream.alloc_zeros::<f32>(32)?, stream.alloc::<f32>(32)?);
    let graph = stream.capture(|s| s.copy(&x, &mut y))?;
    drop((x, y));
    graph.launch(&stream)?;
    println!("says: drops");
    drop(graph);
    Ok(())
}

fn default_stream() -> Result<()> {
    let device = Device::cuda(0)?;
    let other = device.stream()?;
    let mut x = device.default_stream().alloc::<f32>(32)?;
    other.zero(&mut x)
}

#[cfg(feature = "dlpack")]
fn exported() -> Result<()> {
    let stream = Device::cuda(0)?.stream()?;
    let theirs = stream.alloc::<f32>(32)?.into_dlpack()?;
    println!("says: drops");
    drop(theirs);
    Ok(())
}

#[test]
fn memory_is_freed_on_its_stream() {
    insta::assert_snapshot!(said("one stream's memory", "order"), @r"
    allocate A on stream 1
    zero A on stream 1
    allocate B on stream 1
    copy A to B on stream 1
    free A on stream 1
    read B
    free B on stream 1
    allocate C on stream 1
    free C on stream 1
    destroy stream 1
    driver: 0 launches, 3 allocations on streams of which 0 are left, 0 maps
    ");
    insta::assert_snapshot!(said("memory outlives its stream", "order"), @r"
    allocate A on stream 1
    drops
    free A on stream 1
    destroy stream 1
    driver: 0 launches, 1 allocations on streams of which 0 are left, 0 maps
    ");
    insta::assert_snapshot!(said("memory of the default stream", "order"), @r"
    allocate A on stream 0
    zero A on stream 1
    free A on stream 0
    destroy stream 1
    driver: 0 launches, 1 allocations on streams of which 0 are left, 0 maps
    ");
}

#[test]
fn other_streams_wait_for_an_allocation_and_a_free_for_them() {
    insta::assert_snapshot!(said("memory of two streams", "order"), @r"
    stream 2 waits for stream 0
    allocate A on stream 1
    zero A on stream 1
    allocate B on stream 2
    allocate C on stream 3
    copies
    stream 2 waits for stream 1
    copy A to B on stream 2
    stream 3 waits for stream 1
    copy A to C on stream 3
    drops
    stream 3 waits for stream 1
    stream 3 waits for stream 2
    free A on stream 3
    free B on stream 2
    free C on stream 3
    destroy stream 3
    stream 0 waits for stream 2
    destroy stream 2
    destroy stream 1
    driver: 0 launches, 3 allocations on streams of which 0 are left, 0 maps
    driver: 8 events recorded, 6 waits for them
    ");
}

#[test]
fn streams_of_other_libraries_take_part() {
    insta::assert_snapshot!(said("memory on a stream of another library", "order"), @r"
    allocate A
    allocate B on stream 1
    allocate C on stream 1
    zero B on stream 1
    copies
    stream 9 waits for stream 1
    copy A to B on stream 9
    stream 9 waits for stream 1
    copy B to C on stream 9
    zero C on stream 1
    drops
    stream 1 waits for stream 9
    stream 1 waits for stream 9
    free B on stream 1
    stream 1 waits for stream 9
    free C on stream 1
    free A
    destroy stream 1
    driver: 0 launches, 2 allocations on streams of which 0 are left, 0 maps
    driver: 4 events recorded, 5 waits for them
    ");
    insta::assert_snapshot!(said("memory of a stream by its handle", "order"), @r"
    allocate A
    zero A on stream 9
    free A
    destroy stream 1
    driver: 0 launches, 0 allocations on streams of which 0 are left, 0 maps
    ");
    #[cfg(feature = "cudarc")]
    insta::assert_snapshot!(said("memory of a stream of cudarc", "order"), @r"
    wait for all work
    allocates
    allocate A on stream 1
    stream 0 waits for stream 1
    zero A on stream 1
    read A
    drops
    stream 1 waits for stream 0
    free A on stream 1
    destroy stream 1
    driver: 0 launches, 1 allocations on streams of which 0 are left, 0 maps
    driver: 4 events recorded, 2 waits for them
    ");
}

#[test]
fn a_graph_keeps_memory_of_streams() {
    insta::assert_snapshot!(said("recorded memory", "order"), @r"
    destroy stream 2
    while work is recorded, an allocation cannot be part of it; do that before or after the recording
    allocate A on stream 1
    zero A on stream 1
    allocate B on stream 1
    copy A to B on stream 3
    destroy stream 3
    launch a graph on stream 1
    drops
    free A on stream 1
    free B on stream 1
    destroy stream 1
    driver: 0 launches, 2 allocations on streams of which 0 are left, 0 maps
    ");
}

#[test]
fn a_gpu_without_a_pool_has_memory_like_any_other() {
    insta::assert_snapshot!(said("one stream's memory", "no pools"), @r"
    allocate A
    zero A on stream 1
    allocate B
    copy A to B on stream 1
    free A
    read B
    free B
    allocate C
    free C
    destroy stream 1
    driver: 0 launches, 0 allocations on streams of which 0 are left, 0 maps
    ");
    insta::assert_snapshot!(said("threshold", "no pools"), @"driver: 0 launches, 0 allocations on streams of which 0 are left, 0 maps");
}

#[test]
fn a_pool_without_memory_is_an_error() {
    insta::assert_snapshot!(said("no memory", "memory"), @r"
    CUDA: cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY (2): in the driver's words; needed 4194304 bytes, available 4096; free buffers, or use smaller ones
    driver: 0 launches, 0 allocations on streams of which 0 are left, 0 maps
    ");
}

#[test]
fn the_pool_keeps_memory() {
    insta::assert_snapshot!(said("threshold", "order"), @r"
    the pool keeps 1073741824 bytes
    driver: 0 launches, 0 allocations on streams of which 0 are left, 0 maps
    ");
}

/// The library that gets the memory may use it on streams of its own until it frees it.
#[test]
#[cfg(feature = "dlpack")]
fn exported_memory_is_freed_after_all_work() {
    insta::assert_snapshot!(said("exported memory", "order"), @r"
    allocate A on stream 1
    wait for all work
    drops
    wait for all work
    free A on stream 1
    destroy stream 1
    driver: 0 launches, 1 allocations on streams of which 0 are left, 0 maps
    ");
}
