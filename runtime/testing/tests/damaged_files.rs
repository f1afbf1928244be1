//! Damaged LAUNCH.json, metadata and safetensors files give errors, never a panic, and end soon.

use rtc_abi::{Expr, Metadata};
use rtc_runtime::Device;
use rtc_testing::{LaunchFile, Tensor, Tensors};

const METADATA: &str = include_str!("../../tests/kernels/scale.json");
const LAUNCH: &str = r#"{"spec": {"kernel": "scale", "args": ["*fp32"]}, "grid": ["cdiv(n, 32) * 2 + max(n, 1) % 7", 1, "n // 3"], "tensors": "in.safetensors",
  "args": {"x": {"tensor": "x", "offset": 4, "shape": [4, 12], "strides": [16, 1]}, "y": {"tensor": "y", "undefined": true}, "a": 3.0, "n": 2,
           "d": {"descriptor": {"tensor": "x", "shape": [2, 2], "strides": [2, 1], "block_shape": [1, 1], "padding": "nan"}}, "none": null,
           "t": {"tuple": [1, {"float": "inf"}]}, "yes": true}}"#;
/// One that launches the kernel.
const SIMPLE: &str = r#"{"spec": {}, "grid": ["cdiv(n, 32)"], "args": {"x": {"tensor": "x", "offset": 4},
  "y": {"tensor": "y", "shape": [6, 4], "strides": [8, 1]}, "a": 3.0, "n": 5}}"#;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }

    /// A text with one to four places changed.
    fn damage(&mut self, text: &[u8]) -> Vec<u8> {
        const WORDS: [&str; 22] = [
            "0",
            "-1",
            "99999999999999999999",
            "18446744073709551615",
            "-9223372036854775808",
            "1e999",
            "null",
            "true",
            "\"\"",
            "[]",
            "{}",
            "\"x\"",
            "[[[[[[[[",
            "((((((((",
            "\"%\"",
            "n",
            "cdiv(",
            " // 0",
            "% 0",
            "\\u0000",
            "\u{202e}",
            ",",
        ];
        let mut text = text.to_vec();
        for _ in 0..=self.below(3) {
            let (at, other) = (self.below(text.len()), self.below(text.len()));
            let (from, to) = (at.min(other), at.max(other).min(at.min(other) + 40));
            match self.below(5) {
                0 => text[at] ^= 1 << self.below(8),
                1 => text.truncate(at),
                2 => drop(text.drain(from..to)),
                3 => {
                    let piece = text[from..to].to_vec();
                    text.splice(other..other, piece);
                }
                _ => drop(text.splice(from..(from + self.below(4)).min(to), WORDS[self.below(WORDS.len())].bytes())),
            }
            if text.is_empty() {
                text.push(b'{');
            }
        }
        text
    }
}

/// Calls `read` with so many damaged texts; gives how many it could read.
fn read_damaged(text: &[u8], read: &dyn Fn(&[u8]) -> bool) -> usize {
    let rounds = std::env::var("RTC_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let seed = std::env::var("RTC_FUZZ_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed);
    (0..rounds).filter(|_| read(&random.damage(text))).count()
}

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
    let scale =
        Device::emulator().load_json(include_str!("../../tests/kernels/scale.ptx"), METADATA).expect("it loads");
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
