//! Launches from files, on the emulator.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use rtc_runtime::Device;
use rtc_testing::{Dtype, Error, LaunchFile, Tensor, Tensors};

/// `y[i] = x[i] * a` for `i < n`, one thread per element.
const PTX: &str = include_str!("kernels/scale.ptx");
const METADATA: &str = include_str!("kernels/scale.json");

fn inputs() -> Tensors {
    let mut tensors = Tensors::default();
    let floats = |values: &mut dyn Iterator<Item = f32>| values.flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
    tensors.insert("x", Tensor::new(Dtype::F32, vec![40], floats(&mut (0..40).map(|i| i as f32))).unwrap());
    tensors.insert("y", Tensor::new(Dtype::F32, vec![40], vec![0; 160]).unwrap());
    tensors.insert("unused", Tensor::new(Dtype::I8, vec![3], vec![1, 2, 3]).unwrap());
    tensors
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// The metadata of the same kernel, compiled for `*fp32:16, *fp32, fp32, i32:4`.
fn promised() -> String {
    let params = [("\"x\", \"type\": \"*fp32\"", 16), ("\"n\", \"type\": \"i32\"", 4)];
    params.iter().fold(METADATA.to_owned(), |text, (param, factor)| {
        assert!(text.contains(param));
        text.replace(param, &format!("{param}, \"divisible_by\": {factor}"))
    })
}

fn run(launch: &str, tensors: &Tensors) -> Result<Tensors, Error> {
    // SAFETY: the files were made together.
    let kernel = unsafe { Device::emulator().load_json(PTX, &promised())? };
    Ok(LaunchFile::parse(launch)?.run(&kernel, tensors)?.outputs)
}

const SPEC: &str = r#"{"args": [{"name": "x", "type": "*fp32", "divisible_by": 16}, {"name": "y", "type": "*fp32"},
 {"name": "a", "type": "fp32"}, {"name": "n", "type": "i32", "divisible_by": 4}, {"name": "BLOCK", "constexpr": 32}]}"#;

fn launch(args: &str) -> String {
    format!(r#"{{"spec": {SPEC}, "grid": [2], "args": {args}}}"#)
}

#[test]
fn a_launch_file_computes_and_gives_every_tensor() {
    let args = r#"{"x": {"tensor": "x"}, "y": {"tensor": "y"}, "a": 2, "n": 40, "BLOCK": 32}"#;
    let outputs = run(&launch(args), &inputs()).unwrap();
    assert_eq!(floats(outputs.get("y").unwrap()), (0..40).map(|i| i as f32 * 2.0).collect::<Vec<_>>());
    assert_eq!(outputs.get("x"), inputs().get("x"));
    assert_eq!(outputs.get("unused"), inputs().get("unused"));
    let outputs = run(
        &launch(&args.replace(r#"{"tensor": "y"}"#, r#"{"tensor": "y", "offset": 32}"#).replace("40", "32")),
        &inputs(),
    );
    let expected: Vec<f32> = [0.0; 8].into_iter().chain((0..32).map(|i| i as f32 * 2.0)).collect();
    assert_eq!(floats(outputs.unwrap().get("y").unwrap()), expected);
}

#[test]
fn views_share_one_allocation() {
    // `x` lies at 0 and `y` one element later: the kernel reads what it has not written yet only within a warp.
    let args = r#"{"x": {"tensor": "x", "view_of": "s", "offset": 16}, "y": {"tensor": "y", "view_of": "s", "offset": 192},
        "a": {"float": "inf"}, "n": 40}"#;
    let outputs = run(&launch(args), &inputs()).unwrap();
    let y = floats(outputs.get("y").unwrap());
    assert!(y[0].is_nan() && y[1..].iter().all(|v| *v == f32::INFINITY), "{y:?}");
    assert_eq!(outputs.get("x"), inputs().get("x"));
    // In place through two names of the same bytes.
    let args = r#"{"x": {"tensor": "x", "view_of": "x"}, "y": {"tensor": "x", "view_of": "x"}, "a": 0.5, "n": 40}"#;
    let outputs = run(&launch(args), &inputs()).unwrap();
    assert_eq!(floats(outputs.get("x").unwrap()), (0..40).map(|i| i as f32 * 0.5).collect::<Vec<_>>());
}

#[test]
fn mistakes_name_their_field() {
    let mut tensors = inputs();
    tensors.insert("h", Tensor::new(Dtype::F16, vec![40], vec![0; 80]).unwrap());
    tensors.insert("w", Tensor::new(Dtype::I32, vec![40], vec![0; 160]).unwrap());
    let good = r#"{"x": {"tensor": "x"}, "y": {"tensor": "y"}, "a": 2, "n": 40}"#;
    run(&launch(good), &tensors).unwrap();
    let mut said = String::new();
    for (from, to) in [
        (r#""n": 40"#, r#""n": 41"#),
        (r#""n": 40"#, r#""n": 4000000000"#),
        (r#""n": 40"#, r#""n": 0.5"#),
        (r#""n": 40"#, r#""n": null"#),
        (r#""n": 40"#, r#""n": {"tuple": [1]}"#),
        (r#", "n": 40"#, ""),
        (r#""n": 40"#, r#""n": 40, "m": 1"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "z"}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "h"}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "w"}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "x", "offset": 4}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "x", "offset": 161}"#),
        (r#"{"tensor": "x"}"#, r#"{"tensor": "x", "view_of": "s", "offset": 18446744073709551615}"#),
        (r#"{"tensor": "y"}"#, r#"{"tensor": "x", "view_of": "y"}"#),
        (r#"{"tensor": "x"}"#, "7"),
        (r#""a": 2"#, r#""a": {"tensor": "x"}"#),
        (r#""a": 2"#, r#""a": true"#),
        (r#"{"tensor": "x"}"#, r#"{"descriptor": {"tensor": "z", "shape": [4], "strides": [1], "block_shape": [4]}}"#),
    ] {
        assert!(good.contains(from), "{from}");
        let error = run(&launch(&good.replacen(from, to, 1)), &tensors).expect_err(to);
        said += &format!("{to}\n    {error}\n");
    }
    for grid in ["[5000000000]", r#"["n - 41"]"#, "[2147483648]", "[1, 65536]", "[1, 1, 65536]"] {
        let error = run(&launch(good).replacen("[2]", grid, 1), &tensors).expect_err(grid);
        said += &format!("grid {grid}\n    {error}\n");
    }
    run(&launch(good).replacen("[2]", "[0, 65536]", 1), &tensors).unwrap();
    insta::assert_snapshot!(said);
}
