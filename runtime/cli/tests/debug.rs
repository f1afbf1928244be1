//! `--debug`: what profilers and debuggers find of the source in PTX, and what NVIDIA's assembler keeps of it.
#![allow(clippy::unwrap_used)]

mod scratch;

use rtc_test_needs::{Need, missing};
use scratch::{LAUNCH, Scratch, tensors};
use std::path::Path;
use std::process::Command;

const LOOP: &str = "\
@triton.jit
def sums(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        chunk = tl.load(x_ptr + start + lanes)
        total += chunk
    tl.store(y_ptr + lanes, total)
";

fn ptx(scratch: &Scratch, more: &[&str]) -> String {
    let signature = "*fp32:16, *fp32:16, i32, 256";
    let output = scratch.rtc(&[&["emit", "sums.rt", "--signature", signature, "--arch", "sm_90a"], more].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The instructions, without directives, labels and comments.
fn instructions(ptx: &str) -> Vec<&str> {
    let body = ptx.split_once("\n{\n").unwrap().1.split_once("\n}\n").unwrap().0;
    let lines = body.lines().map(|line| line.split("//").next().unwrap().trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with('.') && !line.starts_with("$L__")).collect()
}

#[test]
fn lines_have_absolute_paths() {
    let scratch = Scratch::new("debug-lines");
    scratch.write("sums.rt", LOOP);
    let (plain, debug) = (ptx(&scratch, &[]), ptx(&scratch, &["--debug"]));
    let absolute = std::path::absolute(scratch.0.join("sums.rt")).unwrap();
    assert!(plain.contains(".file\t1 \"sums.rt\""), "{plain}");
    assert!(debug.contains(&format!("\"{}\"", absolute.display())), "{debug}");
    assert!(!debug.contains(".debug_info") && debug.contains("\t.loc\t1 6 "), "{debug}");
    assert_eq!(instructions(&plain), instructions(&debug));
    // The cache has one entry for both, and gives each its own path.
    for (more, path) in [(&["--debug"][..], absolute.to_str().unwrap()), (&[], "sums.rt")] {
        let words = ["build", "sums.rt", "--signature", "*fp32:16, *fp32:16, i32, 256", "-o", "out"];
        assert!(scratch.rtc(&[&words[..], more].concat()).status.success());
        let ptx = std::fs::read_to_string(scratch.0.join("out/sums.ptx")).unwrap();
        assert!(ptx.contains(&format!("\"{path}\"")), "{path}: {ptx}");
    }
}

#[test]
fn variables_are_described_and_change_no_instruction() {
    let scratch = Scratch::new("debug-variables");
    scratch.write("sums.rt", LOOP);
    let (plain, debug) = (ptx(&scratch, &[]), ptx(&scratch, &["--debug=variables"]));
    assert!(debug.contains(".target sm_90a, debug") && debug.contains(".section\t.debug_info"), "{debug}");
    assert_eq!(instructions(&plain), instructions(&debug));
    // The strings of the debug sections are written byte by byte.
    let bytes: String =
        debug.lines().filter_map(|line| line.trim().strip_prefix(".b8 ")).fold(String::new(), |all, byte| {
            let number: u8 = byte.split_whitespace().next().unwrap().parse().unwrap_or(0);
            all + &char::from(number).to_string()
        });
    for name in ["x_ptr", "n", "lanes", "total", "start", "chunk", "float", "int32"] {
        assert!(bytes.contains(&format!("{name}\0")), "{name}: {bytes:?}");
    }
    // Two elements of a tile lie in two registers: DW_OP_regx, DW_OP_piece of 4 bytes.
    let pieces = bytes.matches("\u{93}\u{4}").count();
    assert!(pieces >= 2 && debug.contains(".section\t.debug_loc"), "{pieces}: {debug}");
}

#[test]
fn a_kernel_with_variables_runs() {
    let scratch = Scratch::new("debug-runs");
    scratch.write("l.json", LAUNCH).write("in.safetensors", tensors(300));
    let words = ["run", "k.rt", "--launch", "l.json", "--device", "emulator", "--debug=variables", "--json"];
    let output = scratch.rtc(&words);
    assert!(output.status.success(), "{output:?}");
    assert!(scratch.fails(2, &["run", "k.rt", "--launch", "l.json", "--debug=all"]).contains("variables"));
}

#[test]
fn the_assembler_keeps_lines_and_variables() {
    let Some(assembler) = rtc_build::Assembler::find() else { return missing(Need::Ptxas) };
    let scratch = Scratch::new("debug-cubin");
    scratch.write("sums.rt", LOOP);
    for (more, sections) in
        [("--debug", &[".debug_line"][..]), ("--debug=variables", &[".debug_line", ".debug_info", ".debug_abbrev"])]
    {
        let ptx = ptx(&scratch, &[more]);
        let cubin = assembler.assemble(&ptx, "sums", "sm_90a").unwrap();
        let has = |name: &str| cubin.windows(name.len() + 1).any(|bytes| bytes == format!("{name}\0").as_bytes());
        let missing: Vec<&&str> = sections.iter().filter(|name| !has(name)).collect();
        assert!(missing.is_empty(), "{more}: {missing:?}");
        // The table of lines names the file.
        assert!(cubin.windows(7).any(|bytes| bytes == b"sums.rt"), "{more}");
        let file = scratch.0.join("sums.cubin");
        std::fs::write(&file, &cubin).unwrap();
        shown(&file);
    }
}

/// The lines of the loop are those of instructions, as NVIDIA's disassembler reads them, where it is.
fn shown(cubin: &Path) {
    let Ok(output) = Command::new("nvdisasm").args(["-g", "-c"]).arg(cubin).output() else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("sums.rt\", line 6") && text.contains("sums.rt\", line 7"), "{text}");
}
