//! Versions of NVIDIA's assembler that are known to make wrong code: what build scripts, `rtc doctor` and `rtc explain` say.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

mod scratch;

use rtc_build::Config;
use rtc_test_needs::stubs::ptxas;
use scratch::Scratch;
use std::path::Path;
use std::process::Command;

const PRODUCT: &str = "\
@triton.jit
def product(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(z_ptr + at, tl.dot(tl.load(x_ptr + at), tl.load(y_ptr + at)))

@triton.jit
def again(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    product(x_ptr, y_ptr, z_ptr, N)
";

/// A command that looks for `ptxas` in these places before any other.
fn command(scratch: &Scratch, words: &[&str], path: &Path, toolkit: &Path) -> Command {
    let mut command = scratch.command(words);
    for name in ["RTC_PTXAS", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"] {
        command.env_remove(name);
    }
    let path = std::env::join_paths([path, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    command.env("PATH", path).env("CUDA_HOME", toolkit);
    command
}

/// The output of `rtc embed` for cargo, and the machine code of a kernel by target.
fn embedded(scratch: &Scratch, config: &Config, path: &Path, toolkit: &Path) -> (Vec<String>, [String; 2]) {
    use std::io::Write;
    let out = scratch.0.join("out");
    let request = serde_json::json!({"config": config, "files": [scratch.0.join("product.rt")], "out_dir": out});
    let mut command = command(scratch, &["embed"], path, toolkit);
    let mut process = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let warnings = text.lines().filter_map(|line| line.strip_prefix("cargo::warning=")).map(str::to_owned).collect();
    let code = |arch: &str| std::fs::read_to_string(out.join(format!("product.product.{arch}.cubin"))).unwrap();
    (warnings, ["sm_80", "sm_90a"].map(code))
}

#[test]
fn build_scripts_take_another_assembler_or_warn_once() {
    let scratch = Scratch::new("assembler");
    scratch.write("product.rt", PRODUCT);
    let at = |name: &str| scratch.0.join(name);
    let (old, new) = (at("old"), at("toolkit/bin"));
    let old_ptxas = ptxas(&old, "12.8");
    ptxas(&new, "12.9");
    let signature = "*fp16:16, *fp16:16, *fp32:16, 64";
    let config =
        Config::new().arch(["sm_80", "sm_90a"]).cubins().kernel("product", signature).kernel("again", signature);

    let both = |code: [&str; 2]| code.map(|version| format!("{version}\n"));
    assert_eq!(embedded(&scratch, &config, &old, &at("toolkit")), (vec![], both(["12.8", "12.9"])));
    // A named assembler is used.
    let named = config.clone().ptxas(&old_ptxas);
    let (warnings, code) = embedded(&scratch, &named, &old, &at("toolkit"));
    assert_eq!(code, both(["12.8", "12.8"]));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let expected = format!(
        "warning[assembler-defect]: kernel `product` is assembled for sm_90a by `{}` of CUDA 12.8, which gives wrong code",
        old_ptxas.display()
    );
    assert!(warnings[0].starts_with(&expected) && warnings[0].contains("CUDA 12.9 or later"), "{warnings:?}");
    let allowed = named.clone().allow("assembler-defect");
    assert_eq!(embedded(&scratch, &allowed, &old, &at("toolkit")), (vec![], both(["12.8", "12.8"])));

    let denied = |config: Config| {
        let config = config.deny("assembler-defect").executable(env!("CARGO_BIN_EXE_rtc")).out_dir(at("denied"));
        config.compile(&[at("product.rt")]).map_err(|error| error.to_string())
    };
    assert!(denied(named.clone()).unwrap_err().starts_with("error[assembler-defect]: kernel `product` is assembled"));
    // Neither a target without the defect nor a kernel without products.
    let other = |arch: &str, size: &str| {
        let signature = format!("*fp16:16, *fp16:16, *fp32:16, {size}");
        Config::new().arch([arch]).cubins().kernel("product", signature).ptxas(&old_ptxas)
    };
    assert_eq!(denied(other("sm_80", "64")), Ok(()));
    assert!(denied(other("sm_90a", "64")).is_err());
    assert_eq!(denied(other("sm_90a", "16")), Ok(()), "too small for wgmma");
}

#[test]
fn the_doctor_names_the_assembler_that_is_called() {
    let scratch = Scratch::new("assembler-doctor");
    let (old, toolkit) = (scratch.0.join("old"), scratch.0.join("toolkit"));
    let old_ptxas = ptxas(&old, "12.8");
    let check = |command: &mut Command| -> serde_json::Value {
        let output = command.output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap();
        checks.iter().rfind(|check| check["topic"] == "assembler").unwrap().clone()
    };
    let words = ["doctor", "--json"];
    let found = check(command(&scratch, &words, &old, &toolkit).env("RTC_PTXAS", &old_ptxas));
    assert_eq!(found["status"], "warning", "{found}");
    assert!(found["text"].as_str().unwrap().contains("is 12.8; for sm_90a it gives wrong code"), "{found}");
    assert!(found["remedy"].as_str().unwrap().contains("CUDA 12.9 or later"), "{found}");
    let new_ptxas = ptxas(&toolkit.join("bin"), "13.0");
    let found = check(&mut command(&scratch, &words, &old, &toolkit));
    assert_eq!(found["status"], "ok", "{found}");
    let called = format!("`ptxas` is 12.8; for sm_90a `{}` is called", new_ptxas.display());
    assert_eq!(found["text"], called);
}
