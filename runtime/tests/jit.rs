//! Kernels that are compiled at their launches: what is specialized, what is kept, and what faults of the cache do.
#![cfg(feature = "jit")]
#![allow(clippy::unwrap_used, unsafe_code)]

use rtc_compiler::ConstValue;
use rtc_runtime::jit::cache::{Cache, CacheConfig, Error, Origin};
use rtc_runtime::jit::{JitEvent, JitKernel, JitProgram, Options};
use rtc_runtime::{Device, TensorDescriptor, args};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// `bias` may be None; `factor` is never specialized.
const SOURCE: &str = "\
@triton.jit(do_not_specialize=['factor'])
def scale(x, y, stride, factor, bias, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i * stride) * factor
    if bias is not None:
        value += tl.load(bias + i)
    tl.store(y + i, value)
";

type Heard = Arc<Mutex<Vec<String>>>;

/// The kernel on a new emulator with its cache in `directory`, and what is heard of it.
fn scale(directory: Option<&Path>) -> (Device, JitKernel, Heard) {
    let device = Device::emulator();
    let (program, heard) = program(&device, directory);
    (device, program.kernel("scale").unwrap(), heard)
}

fn program(device: &Device, directory: Option<&Path>) -> (JitProgram, Heard) {
    let heard = Heard::default();
    let list = heard.clone();
    let cache = directory.map(|directory| Cache::open(CacheConfig::new(directory)).unwrap());
    let program = device.jit(&[("scale.rt", SOURCE)]).unwrap().with_cache(cache).with_observer(move |event| {
        let text = match event {
            JitEvent::Ready { origin: Origin::Made, signature, .. } => format!("made {signature}"),
            JitEvent::Ready { signature, .. } => format!("found {signature}"),
            JitEvent::CacheProblem(Error::Corrupt { removed: true, .. }) => "corrupt".into(),
            other => format!("{other:?}"),
        };
        list.lock().unwrap().push(text);
    });
    (program, heard)
}

fn take(heard: &Heard) -> Vec<String> {
    std::mem::take(&mut *heard.lock().unwrap())
}

fn no_bias() -> Options {
    Options::new().constexpr("bias", ConstValue::None).num_warps(1)
}

/// Launches and checks the result.
fn run(device: &Device, kernel: &JitKernel, stride: i32, factor: i32) {
    let options = no_bias();
    let values: Vec<f32> = (0..32 * stride.max(1)).map(|v| v as f32).collect();
    let (x, mut y) = (device.upload(&values).unwrap(), device.zeros::<f32>(32).unwrap());
    kernel.launch(device.default_stream(), 1, &args![&x, &mut y, stride, factor, 32], &options).unwrap();
    let expected: Vec<f32> = (0..32).map(|i| (i * stride * factor) as f32).collect();
    assert_eq!(y.to_vec().unwrap(), expected);
}

#[test]
fn kinds_of_arguments_have_kernels_of_their_own() {
    let (device, kernel, heard) = scale(None);
    for (stride, factor, expected) in [
        (1, 1, Some("made x=*fp32:16, y=*fp32:16, stride=1, factor=i32, bias=None, BLOCK=32")),
        (1, 16, None),
        (2, 3, Some("made x=*fp32:16, y=*fp32:16, stride=i32, factor=i32, bias=None, BLOCK=32")),
        (3, 1, None),
        (16, 1, Some("made x=*fp32:16, y=*fp32:16, stride=i32:16, factor=i32, bias=None, BLOCK=32")),
        (0, 1, None),
        (32, 5, None),
        (1, 2, None),
    ] {
        run(&device, &kernel, stride, factor);
        assert_eq!(take(&heard), expected.map(String::from).into_iter().collect::<Vec<_>>(), "{stride} {factor}");
    }
    assert_eq!(kernel.variants(), 3);
    // A slice that begins elsewhere, another element type, a bias, another block.
    let (x, b) = (device.upload(&[half::f16::ONE; 33]).unwrap(), device.upload(&[0.5f32; 32]).unwrap());
    let mut y = device.zeros::<f32>(32).unwrap();
    let options = Options::new().num_warps(1);
    let arguments = args![x.slice(1..), &mut y, 1, 2, &b, 32];
    kernel.launch(device.default_stream(), 1, &arguments, &options).unwrap();
    assert_eq!(take(&heard), ["made x=*fp16, y=*fp32:16, stride=1, factor=i32, bias=*fp32:16, BLOCK=32"]);
    assert_eq!(y.to_vec().unwrap(), [2.5; 32]);
}

#[test]
fn equal_content_is_one_kernel() {
    let (device, kernel, heard) = scale(None);
    let (x, mut y) = (device.zeros::<f32>(32).unwrap(), device.zeros::<f32>(32).unwrap());
    let by_name = no_bias().constexpr("BLOCK", 32);
    for _ in 0..3 {
        run(&device, &kernel, 1, 1);
        kernel.launch(device.default_stream(), 1, &args![&x, &mut y, 1, 1], &by_name).unwrap();
        kernel.launch(device.default_stream(), 1, &args![&x, &mut y, 1, 1], &by_name.clone()).unwrap();
    }
    assert_eq!((kernel.variants(), take(&heard).len()), (1, 1));
    kernel.launch(device.default_stream(), 1, &args![&x, &mut y, 1, 1], &by_name.num_warps(2)).unwrap();
    assert_eq!(kernel.variants(), 2);
}

#[test]
fn the_next_process_finds_them_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    for origin in ["made", "found", "found"] {
        let (device, kernel, heard) = scale(Some(directory.path()));
        run(&device, &kernel, 1, 1);
        run(&device, &kernel, 2, 1);
        let heard = take(&heard);
        assert!(heard.len() == 2 && heard.iter().all(|text| text.starts_with(origin)), "{heard:?}");
    }
}

#[test]
fn faults_of_the_cache_cost_time_only() {
    let directory = tempfile::tempdir().unwrap();
    let (device, kernel, _) = scale(Some(directory.path()));
    run(&device, &kernel, 2, 1);
    let cache = Cache::open(CacheConfig::new(directory.path())).unwrap();
    let entry = cache.list().unwrap().remove(0);
    let good = std::fs::read(&entry.path).unwrap();
    // Each time as if the process were new.
    let again = |expected: &[&str]| {
        let (device, kernel, heard) = scale(Some(directory.path()));
        run(&device, &kernel, 2, 1);
        let heard = take(&heard);
        assert_eq!(heard.len(), expected.len(), "{heard:?}");
        assert!(heard.iter().zip(expected).all(|(text, start)| text.starts_with(start)), "{heard:?}");
    };
    again(&["found"]);
    std::fs::write(&entry.path, &good[..good.len() - 1]).unwrap();
    again(&["corrupt", "made"]);
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 0x20;
    std::fs::write(&entry.path, flipped).unwrap();
    again(&["corrupt", "made"]);
    // An entry with the right checksum whose content is of no kernel.
    cache.put("kernel", &entry.key, b"rubbish").unwrap();
    again(&["corrupt", "made"]);
    assert_eq!(std::fs::read(&entry.path).unwrap(), good);
    // The directory becomes a file under the hands of the process.
    std::fs::remove_dir_all(directory.path().join("rtc-cache-1")).unwrap();
    std::fs::write(directory.path().join("rtc-cache-1"), "").unwrap();
    again(&["CacheProblem(Io", "made"]);
}

#[test]
fn of_several_threads_one_compiles() {
    let (device, kernel, heard) = scale(None);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| run(&device, &kernel, 2, 1));
        }
    });
    assert_eq!(take(&heard).len(), 1);
    assert_eq!(kernel.variants(), 1);
}

/// The same over the lock of a shared directory: each thread is a program of its own.
#[test]
fn of_several_programs_one_compiles() {
    let directory = tempfile::tempdir().unwrap();
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let (device, kernel, heard) = scale(Some(directory.path()));
                run(&device, &kernel, 2, 1);
                all.lock().unwrap().extend(take(&heard));
            });
        }
    });
    let all = all.into_inner().unwrap();
    assert_eq!(all.len(), 6, "{all:?}");
    assert_eq!(all.iter().filter(|text| text.starts_with("made")).count(), 1, "{all:?}");
}

#[test]
fn a_known_launch_allocates_nothing() {
    let (device, kernel, _) = scale(None);
    let (x, mut y) = (device.zeros::<f32>(32).unwrap(), device.zeros::<f32>(32).unwrap());
    let options = no_bias();
    let arguments = args![&x, &mut y, 1, 7, 32];
    let first = allocation_counter::measure(|| drop(kernel.specialize(&arguments, &options).unwrap()));
    assert!(first.count_total > 0, "the compiler allocates");
    let again = allocation_counter::measure(|| drop(kernel.specialize(&arguments, &options).unwrap()));
    assert_eq!(again.count_total, 0, "{again:?}");
}

/// `pair` is a tuple of a pointer and a number; descriptors have a block.
const PARTS: &str = "\
@triton.jit
def parts(desc, pair, out, SIZE: tl.constexpr):
    tile = desc.load([1, 4])
    i = tl.arange(0, 8)
    base, factor = pair
    v = tl.load(base + i) * factor[0] + factor[1]
    tl.store(out + tl.arange(0, 2)[:, None] * 8 + i[None, :], tile + v[None, :] * SIZE)
";

#[test]
fn tuples_and_descriptors_are_arguments() {
    for device in [Device::emulator(), Device::interpreter().unwrap()] {
        let heard = Heard::default();
        let list = heard.clone();
        let program = device.jit(&[("parts.rt", PARTS)]).unwrap().with_cache(None).with_observer(move |event| {
            if let JitEvent::Ready { signature, .. } = event {
                list.lock().unwrap().push((*signature).to_string());
            }
        });
        let kernel = program.kernel("parts").unwrap();
        let x = device.upload(&(0..64).map(|v| v as f32).collect::<Vec<_>>()).unwrap();
        let b = device.upload(&[10.0f32; 8]).unwrap();
        let mut out = device.zeros::<f32>(16).unwrap();
        let stream = device.default_stream();
        let options = Options::new().num_warps(1);
        for (factor, offset, rows, made) in [(1, 3, 4, 1), (1, 5, 3, 1), (2, 5, 4, 2), (16, 5, 4, 3)] {
            // Rows from 1 and columns from 4 on; what lies beside the tensor is zero.
            let desc = TensorDescriptor::new(&x, &[rows, 12], &[16, 1]).with_block(&[2, 8]);
            let inner = args![factor, offset];
            let pair = args![&b, &inner];
            kernel.launch(stream, 1, &args![&desc, &pair, &mut out, 2], &options).unwrap();
            let expected = (0..16).map(|i| {
                let (row, column) = (1 + i / 8, 4 + i % 8);
                let inside = (row as u64) < rows && column < 12;
                let tile = if inside { (row * 16 + column) as f32 } else { 0.0 };
                tile + (10 * factor + offset) as f32 * 2.0
            });
            assert_eq!(out.to_vec().unwrap(), expected.collect::<Vec<f32>>(), "{device} {factor} {offset}");
            assert_eq!(kernel.variants(), made, "{:?}", heard.lock().unwrap());
        }
        // Another block is another kernel; a block that is missing or of another rank is an error.
        let inner = args![1, 3];
        let pair = args![&b, &inner];
        let mut fails = |desc: TensorDescriptor<'_>| {
            kernel.launch(stream, 1, &args![&desc, &pair, &mut out, 2], &options).unwrap_err().to_string()
        };
        let text = fails(TensorDescriptor::new(&x, &[4, 12], &[16, 1]));
        assert!(
            text.contains("argument `desc`: the descriptor does not tell the block") && text.contains("with_block"),
            "{text}"
        );
        let text = fails(TensorDescriptor::new(&x, &[4, 12], &[16, 1]).with_block(&[8]));
        assert!(text.contains("has 2 sizes and 2 strides, and its block 1 sizes"), "{text}");
        let signature = heard.lock().unwrap()[0].clone();
        assert_eq!(signature, "desc=tensordesc<fp32[2,8]>, pair=(*fp32:16, (1, i32)), out=*fp32:16, SIZE=2");
    }
    // A kernel that is compiled takes the elements one by one.
    let (device, kernel, _) = scale(None);
    let (x, mut y) = (device.zeros::<f32>(32).unwrap(), device.zeros::<f32>(32).unwrap());
    let ready = kernel.specialize(&args![&x, &mut y, 1, 7, 32], &no_bias()).unwrap();
    let both = args![&x, 7];
    let error = ready.kernel().launch(device.default_stream(), 1, &args![&both, &mut y, 7]).unwrap_err();
    insta::assert_snapshot!(error, @"kernel `scale`, argument `x` (*fp32): a buffer is needed, a tuple of 2 was given; pass a `Buffer`, a slice of one or a `DeviceAddress`");
}

#[test]
fn the_interpreter_takes_them_too() {
    let device = Device::interpreter().unwrap();
    let (program, heard) = program(&device, None);
    run(&device, &program.kernel("scale").unwrap(), 3, 2);
    assert_eq!(take(&heard).len(), 1);
}

#[test]
fn mistakes_name_kernel_and_argument() {
    let (device, kernel, _) = scale(None);
    let (x, mut y) = (device.zeros::<f32>(32).unwrap(), device.zeros::<f32>(32).unwrap());
    let stream = device.default_stream();
    let mut fails = |options: &Options, rest: &[i128]| {
        let mut arguments: Vec<_> = args![&x, &mut y].into();
        arguments.extend(rest.iter().map(|value| rtc_runtime::Arg::Int(*value)));
        kernel.launch(stream, 1, &arguments, options).unwrap_err().to_string()
    };
    let options = no_bias();
    insta::assert_snapshot!(fails(&options, &[1, 1, 32, 5]), @"kernel `scale` takes 5 arguments (x, y, stride, factor, BLOCK), the launch gives 6");
    insta::assert_snapshot!(fails(&options, &[1, 1]), @"error[launch]: kernel `scale`: the launch gives nothing for parameter `BLOCK`; pass an argument, or set it by `Options::constexpr`");
    insta::assert_snapshot!(fails(&options, &[1 << 64, 1, 32]), @"error[launch]: kernel `scale`, argument `stride`: 18446744073709551616 fits no integer type");
    insta::assert_snapshot!(fails(&options.clone().constexpr("BLOK", 32), &[1, 1]), @"error[spec]: kernel `scale` has no parameter `BLOK`; it has x, y, stride, factor, bias, BLOCK");
    insta::assert_snapshot!(fails(&options.launch(|o| o.num_warps = 64), &[1, 1, 32]), @"error[out-of-resources]: out of threads: 2048 needed for 64 warps, 1024 available");
    insta::assert_snapshot!(program(&device, None).0.kernel("scal").unwrap_err(), @"error[unknown-kernel]: there is no `@triton.jit` function `scal`, did you mean `scale`?; the file has scale");
    let bad = device.jit(&[("k.rt", "@triton.jit\ndef k(x):\n    tl.store(x, y)\n")]).unwrap().with_cache(None);
    let error = bad.kernel("k").unwrap().launch(stream, 1, &args![&mut y], &Options::new()).unwrap_err();
    insta::assert_snapshot!(error, @r"
    error[undefined-name]: the name `y` is not defined
     --> k.rt:3:17
      |
    3 |     tl.store(x, y)
      |                 ^ not found
      |
      = help: pass the value as an argument, or define a global constant
    ");
}

#[test]
fn what_the_interpreter_finds_says_where() {
    let device = Device::interpreter().unwrap();
    let source = "@triton.jit\ndef k(x, y, n):\n    i = tl.arange(0, 32)\n    value = tl.load(x + i * tl.multiple_of(n, 16))\n    \
                  tl.store(y + i, value)\n";
    let program = device.jit(&[("k.rt", source)]).unwrap().with_cache(None);
    let kernel = program.kernel("k").unwrap();
    let stream = device.default_stream();
    let (x, mut y) = (device.upload(&[2.0f32; 64]).unwrap(), device.zeros::<f32>(32).unwrap());
    let options = Options::new();
    // A promise that does not hold, which ends nothing.
    let ready = kernel.specialize(&args![&x, &mut y, 2], &options).unwrap();
    ready.kernel().launch(stream, 1, &args![&x, &mut y, 2]).unwrap();
    let found = ready.kernel().take_findings();
    assert_eq!(found[0].code, "false-promise");
    let (file, line, column) = found[0].place.clone().unwrap();
    assert_eq!((&file[..], line), ("k.rt", 4));
    assert!(found[0].message.contains("multiple_of"), "{}", found[0]);
    assert_eq!(found[0].to_string(), format!("k.rt:4:{column}: {}", found[0].message));
    assert!(ready.kernel().take_findings().is_empty(), "they are taken once");
    // An access outside of all memory ends the launch.
    // SAFETY: on the interpreter, an access out of bounds is a fault.
    let launched = unsafe { kernel.launch_unchecked(stream, 1, &args![&x, &mut y, 1 << 20], &options) };
    let text = launched.unwrap_err().to_string();
    assert!(text.starts_with("interpreter: ") && text.ends_with(", source k.rt:4:13"), "{text}");
}
