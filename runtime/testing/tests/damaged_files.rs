//! Damaged LAUNCH.json, metadata and safetensors files give errors, never a panic, and end soon.
#![allow(unsafe_code)]

mod damage;

use damage::read_damaged;
use rtc_abi::{Expr, Metadata};
use rtc_runtime::Device;
use rtc_testing::{LaunchFile, Tensor, Tensors};

const METADATA: &str = include_str!("kernels/scale.json");
const LAUNCH: &str = r#"{"spec": {"kernel": "scale", "args": ["*fp32"]}, "grid": ["cdiv(n, 32) * 2 + max(n, 1) % 7", 1, "n // 3"], "tensors": "in.safetensors",
  "args": {"x": {"tensor": "x", "offset": 4, "shape": [4, 12], "strides": [16, 1]}, "y": {"tensor": "y", "undefined": true}, "a": 3.0, "n": 2,
           "d": {"descriptor": {"tensor": "x", "shape": [2, 2], "strides": [2, 1], "block_shape": [1, 1], "padding": "nan"}}, "none": null,
           "t": {"tuple": [1, {"float": "inf"}]}, "yes": true}}"#;
/// One that launches the kernel.
const SIMPLE: &str = r#"{"spec": {}, "grid": ["cdiv(n, 32)"], "args": {"x": {"tensor": "x", "offset": 4},
  "y": {"tensor": "y", "shape": [6, 4], "strides": [8, 1]}, "a": 3.0, "n": 5}}"#;

#[test]
fn launch_files() {
    let metadata = Metadata::from_json(METADATA).expect("the metadata are right");
    let read = |text: &[u8]| {
        let Ok(launch) = LaunchFile::parse(&String::from_utf8_lossy(text)) else { return false };
        let _ = launch.grid(&metadata);
        let _ = launch.host_values(&[], &Tensors::default());
        true
    };
    assert!(read(LAUNCH.as_bytes()));
    assert!(read_damaged(LAUNCH.as_bytes(), &read) > 100);
}

#[test]
fn launches() {
    // SAFETY: the files were made together.
    let scale = unsafe { Device::emulator().load_json(include_str!("kernels/scale.ptx"), METADATA) };
    let scale = scale.expect("it loads");
    let mut tensors = Tensors::default();
    tensors.insert("x", Tensor::of(vec![40], &[1.5f32; 40]).expect("it fits"));
    tensors.insert("y", Tensor::of(vec![48], &[0f32; 48]).expect("it fits"));
    let read = |text: &[u8]| {
        let Ok(launch) = LaunchFile::parse(&String::from_utf8_lossy(text)) else { return false };
        let grid = launch.grid(scale.metadata()).unwrap_or([u32::MAX; 3]);
        let blocks: u64 = grid.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
        blocks <= 64 && launch.run(&scale, &tensors).is_ok()
    };
    assert!(read(SIMPLE.as_bytes()));
    assert!(read_damaged(SIMPLE.as_bytes(), &read) > 100);
}

#[test]
fn metadata() {
    let read = |text: &[u8]| Metadata::from_json(&String::from_utf8_lossy(text)).is_ok();
    assert!(read_damaged(METADATA.as_bytes(), &read) > 100);
}

#[test]
fn safetensors() {
    let mut tensors = Tensors::default();
    tensors.insert("x", Tensor::of(vec![2, 3], &[1.0f32; 6]).expect("it fits"));
    tensors.insert("y", Tensor::of(vec![5], &[7i64; 5]).expect("it fits"));
    let bytes = tensors.to_bytes().expect("it fits");
    let read = |bytes: &[u8]| match Tensors::from_bytes(bytes) {
        Ok(tensors) => {
            tensors.iter().for_each(|(_, tensor)| drop(tensor.to_f64()));
            true
        }
        Err(error) => {
            // What is wrong is said in words.
            assert!(!error.to_string().is_empty());
            false
        }
    };
    assert!(read(&bytes));
    assert!(read_damaged(&bytes, &read) > 10);
}

#[test]
fn deep_nesting_ends_with_an_error() {
    for depth in [100, 1_000, 100_000] {
        let open = "(".repeat(depth);
        assert!(format!("{open}n").parse::<Expr>().is_err());
        let _ = format!("{open}n{}", ")".repeat(depth)).parse::<Expr>();
        let _ = format!("{}n", "-".repeat(depth)).parse::<Expr>();
        let _ = format!("n{}", " + n".repeat(depth)).parse::<Expr>();
        let nested = format!(r#"{{"spec": {}{}, "grid": [1], "args": {{}}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(LaunchFile::parse(&nested).is_err());
    }
}
