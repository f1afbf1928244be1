//! Levels of warnings in a build script.
#![allow(clippy::unwrap_used)]

use rtc_build::Config;
use std::path::{Path, PathBuf};

const KERNEL: &str = "\
@triton.jit
def narrow_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.load(x_ptr + cols))
";

fn write_kernel(name: &str) -> (PathBuf, PathBuf) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("narrow.rt");
    std::fs::write(&file, KERNEL).unwrap();
    (directory, file)
}

#[test]
fn a_denied_warning_fails_the_build() {
    let (directory, file) = write_kernel("levels");
    let config = Config::new().kernel("narrow_kernel", "*fp32:16, *fp16:16, 128").out_dir(directory.join("out"));
    config.clone().deny("warnings").compile(&[&file]).expect("it is off by default");
    let error = config.clone().deny("narrowing-store").compile(&[&file]).unwrap_err().to_string();
    assert!(error.starts_with("error[narrowing-store]: "), "{error}");
    config.clone().deny("all").allow("narrowing-store").compile(&[&file]).expect("the last word counts");
    let error = config.deny("narrow-store").compile(&[&file]).unwrap_err().to_string();
    assert!(error.starts_with("there is no warning `narrow-store`"), "{error}");
    std::fs::remove_dir_all(directory).unwrap();
}
