//! Common code of the tests of the binary: a kernel, its launch, and a directory to run in.

#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The kernel that every directory holds as `k.rt`.
const SOURCE: &str = "\
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)
";
/// The signature of [`SOURCE`], fp32 and a block of 128.
pub const SIGNATURE: &str = "*fp32:16, *fp32:16, i32, 128";

/// A directory of one test, removed at its end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let scratch = Scratch(path);
        scratch.write("k.rt", SOURCE);
        scratch
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Scratch {
        std::fs::write(self.0.join(name), content).unwrap();
        self
    }

    pub fn rtc(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// With a cache of its own.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rtc"));
        command
            .args(args)
            .current_dir(&self.0)
            .env("RTC_CACHE_DIR", self.0.join("cache"))
            .env_remove("RTC_CACHE_LIMIT");
        command
    }

    /// Runs, checks the exit status, gives stderr.
    pub fn fails(&self, status: i32, args: &[&str]) -> String {
        let output = self.rtc(args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{args:?}\n{text}");
        text.trim_end().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Remaining files are in the target directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A safetensors file of a header and its data.
pub fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// `x` counts up by halves and `y` is zero, `n` fp32 values each.
pub fn tensors(n: usize) -> Vec<u8> {
    let bytes = n * 4;
    let header = format!(
        r#"{{"x":{{"dtype":"F32","shape":[{n}],"data_offsets":[0,{bytes}]}},"y":{{"dtype":"F32","shape":[{n}],"data_offsets":[{bytes},{}]}}}}"#,
        2 * bytes
    );
    let x: Vec<u8> = (0..n).flat_map(|i| (i as f32 * 0.5).to_le_bytes()).collect();
    safetensors(&header, &[x, vec![0; bytes]].concat())
}

/// A launch of [`SOURCE`] on the 300 values of `in.safetensors`.
pub const LAUNCH: &str = r#"{"spec": {"args": [{"name": "x_ptr", "type": "*fp32", "divisible_by": 16},
 {"name": "y_ptr", "type": "*fp32", "divisible_by": 16}, {"name": "n", "type": "i32"}, {"name": "BLOCK", "constexpr": 128}]},
 "grid": [3, 1, 1], "args": {"x_ptr": {"tensor": "x"}, "y_ptr": {"tensor": "y"}, "n": 300}, "tensors": "in.safetensors"}"#;

/// The matrix multiplication of the tutorial with a launch; gives its path, and the lines of its loads.
pub fn tutorial(scratch: &Scratch) -> (String, [u64; 2]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial/code");
    let source = folder.join("matmul.py");
    let text = std::fs::read_to_string(&source).unwrap();
    let line = |start: &str| text.lines().position(|line| line.trim().starts_with(start)).unwrap() as u64 + 1;
    let size = 256;
    let mut launch: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("matmul.json")).unwrap()).unwrap();
    launch["args"]
        .as_object_mut()
        .unwrap()
        .values_mut()
        .filter(|value| value.is_number())
        .for_each(|value| *value = size.into());
    for (name, value) in [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 32)] {
        launch["spec"]["args"].as_array_mut().unwrap().push(serde_json::json!({"name": name, "constexpr": value}));
    }
    let bytes = 2 * size * size;
    let header = ["a", "b", "c"].iter().enumerate().map(|(at, name)| {
        format!(
            "\"{name}\":{{\"dtype\":\"F16\",\"shape\":[{size},{size}],\"data_offsets\":[{},{}]}}",
            at * bytes,
            (at + 1) * bytes
        )
    });
    let header = format!("{{{}}}", header.collect::<Vec<_>>().join(","));
    scratch.write("matmul.json", launch.to_string());
    scratch.write("matmul.safetensors", safetensors(&header, &vec![0; 3 * bytes]));
    (source.display().to_string(), [line("a = tl.load"), line("b = tl.load")])
}
