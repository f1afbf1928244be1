//! The server in an editor: Neovim shows a diagnostic, a hover and a definition, and applies a code action.

use std::process::Command;

use rtc_test_needs::{Need, missing};
use serde_json::{Value, json};

/// Runs in Neovim. It needs no window, no configuration and no plugins.
const SCRIPT: &str = include_str!("neovim.lua");

const KERNEL: &str = "\
import triton
import triton.language as tl
from helpers import twice

# rtc: kernel(*fp16:16, *fp32:16, M=128, N=64)
@triton.jit
def kernel(x, y, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.aragne(0, N)[None, :]
    tile = tl.load(x + at)
    tl.store(y + at, twice(tile))
";

#[test]
fn neovim_shows_and_mends() {
    if Command::new("nvim").arg("--version").output().is_err() {
        return missing(Need::Neovim);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("kernel.py"), KERNEL).expect("a file");
    std::fs::write(path("helpers.py"), "import triton\n\n@triton.jit\ndef twice(v):\n    return v + v\n")
        .expect("a file");
    std::fs::write(path("script.lua"), SCRIPT).expect("a file");
    let run = Command::new("nvim")
        .args(["--headless", "-u", "NONE", "-i", "NONE", "-n"])
        .arg(path("kernel.py"))
        .args(["-c", "luafile script.lua"])
        .env("LANGUAGE_SERVER", env!("CARGO_BIN_EXE_rtc-lsp"))
        .env("XDG_STATE_HOME", folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .env("XDG_CACHE_HOME", folder.path())
        .current_dir(folder.path())
        .output()
        .expect("it starts");
    let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let text = std::fs::read_to_string(path("result.json")).unwrap_or_else(|error| panic!("{error}: {said}"));
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(result["error"], Value::Null, "{said}");
    // Lines and columns count from 0, columns in bytes.
    let diagnostic = json!([{"lnum": 7, "col": 43, "end_col": 49, "source": "rtc", "severity": 1}]);
    assert_eq!(result["before"], diagnostic, "{result}");
    assert_eq!(result["title"], "Did you mean `tl.arange`?");
    assert_eq!(result["line"], "    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]");
    assert_eq!(result["after"], json!({}), "no diagnostics are left");
    let hover = result["hover"].as_str().unwrap_or_default();
    assert!(hover.contains("tile: tile<128x64xf16>"), "{hover}");
    let definition = &result["definition"];
    assert!(definition["uri"].as_str().is_some_and(|uri| uri.ends_with("/helpers.py")), "{definition}");
    assert_eq!(definition["line"], 3);
    let hover_ms = result["hover_ms"].as_f64().expect("a time");
    println!("hover in {hover_ms:.1} ms");
}
