//! The cache as a user of the command line meets it.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{LAUNCH, SIGNATURE, Scratch, tensors};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Imports, prints while it is compiled, and gets a warning.
const TALKATIVE: &str = "\
from helper import twice
@triton.jit
def talkative(x_ptr, N: tl.constexpr):
    tl.static_print(\"N is\", N)
    i = tl.arange(0, N)
    tl.store(x_ptr + i, twice(tl.load(x_ptr + i).to(tl.float32)))
";
const HELPER: &str = "@triton.jit\ndef twice(x):\n    return x / (x + 2)\n";

/// Standard error of a command that succeeds.
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

/// The text without the lines about times and the cache.
fn said(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.contains(" ms,") && !line.starts_with("cache: ")).collect()
}

fn entries(scratch: &Scratch) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for shard in fs::read_dir(scratch.0.join("cache/rtc-cache-1/entries/kernel")).unwrap() {
        found.extend(fs::read_dir(shard.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
    }
    found
}

#[test]
fn a_hit_gives_what_a_compilation_gives() {
    let scratch = Scratch::new("cache-hit");
    scratch.write("t.rt", TALKATIVE).write("helper.rt", HELPER);
    let build = |rest: &[&str]| {
        let args =
            [&["build", "t.rt", "--signature", "*fp16:16, 128", "--warn", "narrowing-store", "-v"][..], rest].concat();
        succeeds(&mut scratch.command(&args))
    };
    let first = build(&["-o", "first"]);
    assert!(first.contains("cache: talkative: miss, as there is no entry") && first.contains(" codegen "), "{first}");
    let second = build(&["-o", "second"]);
    assert!(second.contains("cache: talkative: hit (") && !second.contains(" codegen "), "{second}");
    let none = build(&["-o", "none", "--no-cache"]);
    assert!(none.contains("compiled without a cache: --no-cache") && none.contains(" codegen "), "{none}");
    assert_eq!(said(&first), said(&second));
    assert_eq!(said(&first), said(&none));
    assert!(said(&first).contains(&"N is 128") && first.contains("warning[narrowing-store]"), "{first}");
    for name in ["talkative.ptx", "talkative.json"] {
        let file = |directory: &str| fs::read(scratch.0.join(directory).join(name)).unwrap();
        assert!(file("first") == file("second") && file("first") == file("none"), "{name}");
    }
    assert_eq!(entries(&scratch).len(), 1);
}

#[test]
fn whatever_the_result_depends_on_makes_a_miss() {
    let scratch = Scratch::new("cache-miss");
    scratch.write("t.rt", TALKATIVE).write("helper.rt", HELPER);
    let build = |rest: &[&str]| {
        let args = [&["build", "t.rt", "-v", "-o", "out"][..], rest].concat();
        succeeds(&mut scratch.command(&args)).contains(": hit (")
    };
    let plain = ["--signature", "*fp16:16, 128"];
    for round in [false, true] {
        assert_eq!(build(&plain), round);
        for other in [
            &["--signature", "*fp16, 128"][..],
            &["--signature", "*fp16:16, 64"],
            &["--signature", "*bf16:16, 128"],
            &["--signature", "*fp16:16, 128", "--arch", "sm_90a"],
            &["--signature", "*fp16:16, 128", "--num-warps", "8"],
            &["--signature", "*fp16:16, 128", "--option", "enable_fp_fusion=false"],
            &["--signature", "*fp16:16, 128", "--warn", "narrowing-store"],
        ] {
            assert_eq!(build(other), round, "{other:?}");
        }
    }
    // An error stays an error, and nothing is kept of it.
    let kept = entries(&scratch).len();
    let denied = ["build", "t.rt", "--signature", "*fp16:16, 128", "--deny", "narrowing-store"];
    assert!(scratch.fails(1, &denied).contains("error[narrowing-store]"));
    assert!(scratch.fails(1, &denied).contains("error[narrowing-store]"));
    assert_eq!(entries(&scratch).len(), kept);
    scratch.write("helper.rt", HELPER.replace('2', "3"));
    assert!(!build(&plain));
    scratch.write("helper.rt", HELPER);
    assert!(build(&plain));
}

/// The same sources in another directory are the same kernel; the names in its line information are those of the reader.
#[test]
fn directories_do_not_count() {
    let scratch = Scratch::new("cache-moved");
    scratch.write("t.rt", TALKATIVE).write("helper.rt", HELPER);
    fs::create_dir(scratch.0.join("moved")).unwrap();
    scratch.write("moved/t.rt", TALKATIVE).write("moved/helper.rt", HELPER);
    let absolute = scratch.0.join("moved/t.rt");
    let build = |file: &str, rest: &[&str]| {
        let args = [&["build", file, "--signature", "*fp16:16, 128", "-v", "-o", "out"][..], rest].concat();
        let text = succeeds(&mut scratch.command(&args));
        (text.contains(": hit ("), fs::read_to_string(scratch.0.join("out/talkative.ptx")).unwrap())
    };
    assert!(!build("t.rt", &[]).0);
    for file in ["moved/t.rt", "./t.rt", absolute.to_str().unwrap()] {
        let (hit, ptx) = build(file, &[]);
        assert!(hit, "{file}");
        assert_eq!(ptx, build(file, &["--no-cache"]).1, "{file}");
    }
    // `device_assert` prints the name of the file at run time, so there it is part of the key.
    let checked = "@triton.jit\ndef checked(x):\n    tl.device_assert(tl.load(x) > 0, \"low\")\n    tl.store(x, 1)\n";
    scratch.write("a.rt", checked).write("moved/a.rt", checked);
    for file in ["a.rt", "moved/a.rt"] {
        let args = ["build", file, "--signature", "*i32", "--option", "debug=true", "-v"];
        assert!(succeeds(&mut scratch.command(&args)).contains(": miss"));
        let ptx = fs::read_to_string(scratch.0.join("checked.ptx")).unwrap();
        assert!(succeeds(&mut scratch.command(&args)).contains(": hit ("));
        assert_eq!(ptx, fs::read_to_string(scratch.0.join("checked.ptx")).unwrap());
    }
}

#[test]
fn a_corrupt_entry_is_reported_and_never_used() {
    let scratch = Scratch::new("cache-corrupt");
    let args = ["build", "k.rt", "--signature", SIGNATURE, "-o", "out"];
    assert_eq!(succeeds(&mut scratch.command(&args)), "");
    let good = fs::read(scratch.0.join("out/copy_kernel.ptx")).unwrap();
    let path = entries(&scratch).remove(0);
    let entry = fs::read(&path).unwrap();
    let mut flipped = entry.clone();
    *flipped.last_mut().unwrap() ^= 4;
    for (damaged, reason) in [(&entry[..entry.len() / 2], "it is cut off"), (&flipped, "its checksum is wrong")] {
        fs::write(&path, damaged).unwrap();
        fs::write(scratch.0.join("out/copy_kernel.ptx"), "").unwrap();
        let text = succeeds(&mut scratch.command(&args));
        let expected = format!("is corrupt ({reason}); it was removed and will be rebuilt");
        assert!(text.starts_with("warning[cache]: cache entry ") && text.contains(&expected), "{text}");
        assert_eq!(fs::read(scratch.0.join("out/copy_kernel.ptx")).unwrap(), good);
        assert_eq!(fs::read(&path).unwrap(), entry);
        assert_eq!(succeeds(&mut scratch.command(&args)), "");
    }
}

#[test]
fn without_a_usable_cache_everything_works() {
    let scratch = Scratch::new("cache-none");
    scratch.write("file", "");
    let args = ["build", "k.rt", "--signature", SIGNATURE, "-o", "out"];
    // The directory was requested, so its problem is reported.
    let text = succeeds(scratch.command(&args).env("RTC_CACHE_DIR", scratch.0.join("file/below")));
    assert!(text.starts_with("warning[cache]: cannot make the cache directory"), "{text}");
    let text = succeeds(scratch.command(&args).env("RTC_CACHE_LIMIT", "lots"));
    assert!(text.starts_with("warning[cache]: RTC_CACHE_LIMIT is `lots`, which is not a size"), "{text}");
    let text = succeeds(scratch.command(&args).env("RTC_CACHE_LIMIT", "100"));
    assert!(text.starts_with("warning[cache]: an entry of "), "{text}");
    // The directory was not requested.
    let mut homeless = scratch.command(&args);
    homeless.env_remove("RTC_CACHE_DIR").env_remove("XDG_CACHE_HOME").env("HOME", scratch.0.join("file/home"));
    assert_eq!(succeeds(&mut homeless), "");
    assert!(succeeds(homeless.arg("-v")).contains("compiled without a cache: cannot make the cache directory"));
    assert!(!scratch.0.join("cache/rtc-cache-1/entries").exists());
}

#[test]
fn run_uses_it_and_the_command_manages_it() {
    let scratch = Scratch::new("cache-run");
    scratch.write("launch.json", LAUNCH).write("in.safetensors", tensors(300));
    let run = |rest: &[&str]| {
        let args = [&["run", "k.rt", "--launch", "launch.json", "--device", "emulator", "-v"][..], rest].concat();
        succeeds(&mut scratch.command(&args))
    };
    assert!(run(&["-o", "a.safetensors"]).contains(": miss"));
    assert!(run(&["-o", "b.safetensors"]).contains(": hit ("));
    let outputs = ["a", "b"].map(|name| fs::read(scratch.0.join(format!("{name}.safetensors"))).unwrap());
    assert_eq!(outputs[0], outputs[1]);

    let cache = |command: &str, status: i32| {
        let output = scratch.command(&["cache", command]).output().unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(status), "{out}{err}");
        (out, err)
    };
    let (list, _) = cache("list", 0);
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].contains("kernel") && lines[0].ends_with("copy_kernel for sm_90a"), "{list}");
    assert!(lines[1].starts_with("1 entry, "), "{list}");
    assert!(cache("verify", 0).0.starts_with("1 entry in "));
    fs::write(&entries(&scratch)[0], "rubbish").unwrap();
    assert!(cache("list", 0).0.contains("is corrupt"));
    let (_, err) = cache("verify", 1);
    assert!(err.contains("warning[cache]: cache entry ") && err.contains("error[cache]: 1 entry corrupt"), "{err}");
    assert!(run(&[]).contains(": miss, as there is no entry"));
    assert!(cache("clear", 0).0.starts_with("removed 1 entry, "));
    assert!(cache("list", 0).0.starts_with("0 entries, 0 B in "));
    assert!(run(&[]).contains(": miss"));
}

#[test]
fn entries_as_json() {
    let scratch = Scratch::new("cache-json");
    succeeds(&mut scratch.command(&["build", "k.rt", "--signature", SIGNATURE, "--arch", "sm_80,sm_90a"]));
    let object = |args: &[&str], status: i32| -> serde_json::Value {
        let output = scratch.rtc(args);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("one object")
    };
    let list = object(&["cache", "list", "--json"], 0);
    let listed = list["entries"].as_array().unwrap();
    let mut archs: Vec<&str> = listed.iter().map(|entry| entry["arch"].as_str().unwrap()).collect();
    archs.sort_unstable();
    assert_eq!(archs, ["sm_80", "sm_90a"]);
    assert!(listed.iter().all(|entry| entry["symbol"] == "copy_kernel" && entry["kind"] == "kernel"), "{list}");
    assert_eq!(listed.iter().map(|entry| entry["bytes"].as_u64().unwrap()).sum::<u64>(), list["bytes"]);
    fs::write(&entries(&scratch)[0], "damaged").unwrap();
    let verified = object(&["cache", "verify", "--message-format", "json"], 1);
    assert_eq!((&verified["good"], verified["problems"].as_array().unwrap().len()), (&1.into(), 1));
    let cleared = object(&["cache", "--json", "clear"], 0);
    assert_eq!((&cleared["removed"], &cleared["directory"]), (&1.into(), &list["directory"]));
    assert_eq!(object(&["cache", "list", "--json"], 0)["entries"], serde_json::json!([]));
}
