//! The binary as a user meets it: exit status, first lines, files.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{LAUNCH, SIGNATURE, Scratch, safetensors, tensors};

#[test]
fn help_teaches() {
    let scratch = Scratch::new("help");
    for args in [
        &["--help"][..],
        &["build", "--help"],
        &["emit", "--help"],
        &["explore", "--help"],
        &["run", "--help"],
        &["tune", "--help"],
        &["verify", "--help"],
        &["bench", "--help"],
        &["precision", "--help"],
        &["fix", "--help"],
        &["doctor", "--help"],
        &["cache", "--help"],
        &["explain", "--help"],
        &["explain-speed", "--help"],
        &["lsp", "--help"],
        &["mcp", "--help"],
        &["devices", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
    ] {
        let output = scratch.rtc(args);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        insta::assert_snapshot!(format!("help_{}", args.join("_").replace("--", "")), text);
    }
}

#[test]
fn mistakes_on_the_command_line() {
    let scratch = Scratch::new("usage");
    scratch.fails(2, &[]);
    scratch.fails(2, &["compile", "k.rt"]);
    scratch.fails(2, &["build"]);
    assert!(scratch.fails(2, &["emit", "k.rt", "--stage", "asm"]).contains("stages are ast, tile"));
    assert!(scratch.fails(2, &["run", "k.rt", "--launch", "l.json", "--device", "gpu"]).contains("cuda:N"));
    assert!(scratch.fails(2, &["run", "k.rt", "--launch", "l", "--check", "g", "--tolerance", "x"]).contains("2ulp"));
    insta::assert_snapshot!(scratch.fails(2, &["build", "k.rt"]), @r"
    error[usage]: give --signature or --spec: kernel `copy_kernel` takes x_ptr, y_ptr, n, BLOCK; see `rtc build --help`
     = note: For help, try `--help`.
    ");
    insta::assert_snapshot!(scratch.fails(2, &["build", "k.rt", "--signature", SIGNATURE, "--num-warps", "3"]), @r"
    error[usage]: option `num_warps`: expected a power of two from 1 to 32, found 3
     = note: For help, try `--help`.
    ");
    insta::assert_snapshot!(scratch.fails(2, &["build", "k.rt", "--signature", SIGNATURE, "--option", "maxnreg"]), @r"
    error[usage]: --option takes NAME=VALUE, found `maxnreg`
     = note: For help, try `--help`.
    ");
    let text = scratch.fails(2, &["emit", "k.rt", "--signature", SIGNATURE, "--print-after", "fuse"]);
    assert!(text.starts_with("error[usage]: there is no pass `fuse`; passes are "), "{text}");
    let text = scratch.fails(2, &["emit", "k.rt", "--signature", SIGNATURE, "--signature", SIGNATURE]);
    assert!(text.contains("emit takes one kernel"), "{text}");
}

#[test]
fn mistakes_in_the_input() {
    let scratch = Scratch::new("input");
    scratch
        .write("bad.rt", [b'x', 0xff])
        .write("none.rt", "x = 1\n")
        .write("spec.json", r#"{"args": [{"name": "x"}]}"#);
    scratch.write("other.json", r#"{"args": [{"name": "z", "type": "i32"}]}"#);
    let build = |file: &str, rest: &[&str]| scratch.fails(1, &[&["build", file][..], rest].concat());
    insta::assert_snapshot!(build("missing.rt", &["--signature", ""]), @r"
    error[io]: cannot read the file: No such file or directory (os error 2)
     --> missing.rt
    ");
    insta::assert_snapshot!(build("bad.rt", &["--signature", ""]), @r"
    error[io]: the file is not UTF-8 (at byte 1)
     --> bad.rt
    ");
    insta::assert_snapshot!(build("none.rt", &["--signature", ""]), @"error[unknown-kernel]: the file has no `@triton.jit` function, and no other function");
    insta::assert_snapshot!(build("k.rt", &["--signature", SIGNATURE, "--kernel", "kopy"]), @"error[unknown-kernel]: there is no `@triton.jit` function `kopy`; the file has copy_kernel");
    insta::assert_snapshot!(build("k.rt", &["--signature", "*fp33"]), @"error[signature]: signature, entry 1 `*fp33`: `*fp33` is not a type; types are i1 to i64, u8 to u64, fp16, bf16, fp32, fp64, fp8e5, fp8e4nv, fp8e4b15, pointers such as *fp32, and tensordesc<..>");
    insta::assert_snapshot!(build("k.rt", &["--signature", "*fp32"]), @"error[spec]: `args`: nothing is said about parameter `y_ptr` of kernel `copy_kernel`; give its type or its value");
    insta::assert_snapshot!(build("k.rt", &["--spec", "spec.json"]), @r"
    error[spec]: `args[0]`: needs `type`, `constexpr` or `tuple`
     --> spec.json
    ");
    insta::assert_snapshot!(build("k.rt", &["--spec", "other.json"]), @"error[spec]: `args[0].name`: kernel `copy_kernel` has no parameter `z`; it has x_ptr, y_ptr, n, BLOCK");
    let text = build("k.rt", &["--signature", SIGNATURE, "--arch", "sm_42"]);
    assert!(text.starts_with("error[unsupported-target]: unknown target `sm_42`; known targets: sm_80"), "{text}");
    assert!(!scratch.0.join("copy_kernel.ptx").exists());
}

#[test]
fn errors_as_json() {
    let scratch = Scratch::new("json");
    scratch.write("syntax.rt", "@triton.jit\ndef f(x):\n    y = = 1\n");
    let text = scratch.fails(1, &["build", "k.rt", "--signature", "*fp33", "--message-format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((json["severity"].as_str(), json["code"].as_str()), (Some("error"), Some("signature")));
    scratch.write("close.rt", "@triton.jit\ndef k(x):\n    tl.stroe(x, 1)\n");
    let text = scratch.fails(1, &["build", "close.rt", "--signature", "*fp32", "--message-format", "json"]);
    let edit = r#""edits":[{"file":"close.rt","line":3,"column":8,"end_line":3,"end_column":13,"text":"store"}]"#;
    assert!(text.contains(edit), "{text}");
    let text = scratch.fails(1, &["build", "syntax.rt", "--signature", "i32", "--message-format", "json"]);
    for line in text.lines() {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((json["severity"].as_str(), json["code"].as_str()), (Some("error"), Some("syntax")), "{line}");
    }
}

#[test]
fn a_wrong_command_line_as_json() {
    let scratch = Scratch::new("usage");
    for words in [
        &["build", "k.rt", "--no-such-option", "--message-format", "json"][..],
        &["--message-format=json", "run", "k.rt"],
        &["--message-format", "json", "no-such-command"],
        &["build", "k.rt", "--message-format", "json"],
    ] {
        let text = scratch.fails(2, words);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!((json["severity"].as_str(), json["code"].as_str()), (Some("error"), Some("usage")), "{text}");
    }
}

#[test]
fn results_as_json() {
    let scratch = Scratch::new("results");
    scratch.write("l.json", LAUNCH).write("in.safetensors", tensors(300));
    let args =
        ["run", "k.rt", "--launch", "l.json", "--counters", "--check", "in.safetensors", "--message-format", "json"];
    let output = scratch.rtc(&args);
    // `y` is compared with the zeros that it was before the launch.
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!((&json["kernel"], &json["grid"]), (&"copy_kernel".into(), &serde_json::json!([3, 1, 1])));
    assert_eq!(json["counters"]["loads"]["bytes"], 1200);
    assert_eq!(json["counters"]["shared"]["conflicts"], 0);
    assert_eq!(json["counters"]["roofline"][0]["machine"], "H200");
    // Lines 3 to 5 of the kernel: a store and a load in the last one, 128 contiguous bytes each.
    let loads = &json["counters"]["loads"];
    let efficiency = 1200.0 / (loads["sectors"].as_f64().unwrap() * 32.0);
    assert!((loads["efficiency"].as_f64().unwrap() - efficiency).abs() < 1e-9, "{loads}");
    assert!(json["counters"]["shared"]["conflict_share"].is_null(), "there is no shared memory");
    let lines = json["counters"]["by_line"].as_array().expect("a list");
    let numbers: Vec<u64> = lines.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted() && numbers.contains(&3) && numbers.last() == Some(&5), "{numbers:?}");
    let last = lines.last().unwrap();
    assert_eq!((&last["file"], &last["global"]["bytes"]), (&"k.rt".into(), &2400.into()));
    let warps = |of: &serde_json::Value| -> u64 {
        of["instructions"].as_object().unwrap().values().map(|class| class["warps"].as_u64().unwrap()).sum()
    };
    assert_eq!(last["warps"], warps(last));
    assert!(lines.iter().map(warps).sum::<u64>() <= warps(&json["counters"]));
    let wrong: Vec<_> = json["check"].as_array().expect("a list").iter().map(|tensor| &tensor["wrong"]).collect();
    assert_eq!(wrong, [0, 299]);
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).expect("one object");
    assert_eq!(error["code"], "wrong-result");
    // With --json alone errors are text.
    let output = scratch.rtc(&[&args[..7], &["--json"]].concat());
    let same: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!((&same["counters"], &same["check"]), (&json["counters"], &json["check"]));
    assert!(output.stderr.starts_with(b"error[wrong-result]: "), "{output:?}");
}

#[test]
fn codes_and_pages_as_json() {
    let scratch = Scratch::new("explain-json");
    let object = |args: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&scratch.rtc(&[&["explain", "--json"], args].concat()).stdout).expect("one object")
    };
    let codes = object(&[])["codes"].as_array().expect("a list").clone();
    let level = |name: &str| codes.iter().find(|code| code["code"] == name).expect("a code")["level"].clone();
    assert_eq!(codes.len(), rtc_source::CODES.len());
    assert_eq!((level("index-may-overflow"), level("deprecated")), ("allow".into(), "warn".into()));
    assert!(level("shape-mismatch").is_null() && codes.iter().all(|code| code["meaning"] != ""));
    let page = object(&["tl.dot"]);
    assert!(page["name"] == "tl.dot" && page["text"].as_str().unwrap().contains("input_precision"), "{page}");
}

#[test]
fn a_syntax_error_is_shown_with_its_place() {
    let scratch = Scratch::new("syntax");
    scratch.write("s.rt", "@triton.jit\ndef f(x):\n    y = = 1\n");
    let text = scratch.fails(1, &["build", "s.rt", "--signature", "i32"]);
    assert!(text.starts_with("error[syntax]: "), "{text}");
    assert!(text.contains("--> s.rt:3:"), "{text}");
}

#[test]
fn launch_files_and_tensor_files_are_checked() {
    let scratch = Scratch::new("launch");
    let says = |launch: &str, tensors: &[u8]| {
        scratch.write("l.json", launch).write("in.safetensors", tensors);
        let text = scratch.fails(1, &["run", "k.rt", "--launch", "l.json", "--device", "emulator"]);
        text.lines().take(2).collect::<Vec<_>>().join("\n") + "\n"
    };
    let good = tensors(300);
    let mut all = String::new();
    // Errors found before the compilation.
    for launch in [
        "{",
        "[]",
        "{}",
        r#"{"spec": {}, "grid": [], "args": {}}"#,
        r#"{"spec": {}, "grid": [1, -1], "args": {}}"#,
        r#"{"spec": {}, "grid": [1, 2, 3, 4], "args": {}}"#,
        r#"{"spec": 3, "grid": [1], "args": {}}"#,
        r#"{"spec": {}, "grid": [1], "args": []}"#,
        r#"{"spec": {}, "grid": [1], "args": {}, "tensor": "x"}"#,
        r#"{"spec": {}, "grid": [1], "args": {"x": {}}}"#,
        r#"{"spec": {}, "grid": [1], "args": {"x": {"tensor": 3}}}"#,
        r#"{"spec": {}, "grid": [1], "args": {"x": {"tensor": "x", "offset": -4}}}"#,
        r#"{"spec": {}, "grid": [1], "args": {"x": {"tensor": "x", "at": 4}}}"#,
        r#"{"spec": {}, "grid": [1], "args": {"x": {"float": "large"}}}"#,
        r#"{"spec": {}, "grid": [1], "args": {"x": {"double": 1}}}"#,
        r#"{"spec": {}, "grid": [1], "args": {"t": {"tuple": [1, {"tensor": null}]}}}"#,
        r#"{"spec": {}, "grid": [1], "args": {"d": {"descriptor": {"tensor": "x", "shape": [4], "strides": [], "block_shape": [4]}}}}"#,
        r#"{"spec": {}, "grid": [1], "args": {"d": {"descriptor": {"tensor": "x", "shape": [4], "strides": [1], "block_shape": [4], "padding": "one"}}}}"#,
        r#"{"spec": {"options": {"num_warp": 4}}, "grid": [1], "args": {}}"#,
        r#"{"spec": {"args": [{"name": "x", "type": "fp33"}]}, "grid": [1], "args": {}}"#,
        r#"{"spec": {}, "grid": [1], "args": {}, "tensors": "missing.safetensors"}"#,
    ] {
        all += &says(launch, &good);
    }
    for bytes in [
        &good[..4],
        &good[..60],
        &good[..good.len() - 1],
        &safetensors(r#"{"x":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}}"#, &[0; 4])[..],
        &safetensors(r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#, &[0; 4]),
        &safetensors(
            r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"y":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}"#,
            &[0; 6],
        ),
        &u64::MAX.to_le_bytes(),
    ] {
        all += &says(LAUNCH, bytes);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn explain_knows_every_code() {
    let scratch = Scratch::new("explain");
    let list = String::from_utf8(scratch.rtc(&["explain"]).stdout).unwrap();
    assert!(list.lines().any(|line| line.starts_with("shape-mismatch ")), "{list}");
    for line in list.lines() {
        let code = line.split_whitespace().next().unwrap();
        let output = scratch.rtc(&["explain", code]);
        assert!(output.status.success() && !output.stdout.is_empty(), "{code}");
    }
    let page = String::from_utf8(scratch.rtc(&["explain", "index-may-overflow"]).stdout).unwrap();
    assert!(page.contains("row.to(tl.int64) * stride") && page.contains("off by default"), "{page}");
    assert!(scratch.fails(1, &["explain", "nothing"]).starts_with("error[unknown-code]: "));
}

#[test]
fn explain_shows_the_reference() {
    let scratch = Scratch::new("explain-names");
    let text = String::from_utf8(scratch.rtc(&["explain", "tl.dot"]).stdout).unwrap();
    assert!(text.starts_with("tl.dot\n") && text.contains("input_precision"), "{text}");
    let message = scratch.fails(1, &["explain", "tl.aragne"]);
    assert!(message.contains("did you mean `tl.arange`?"), "{message}");
}

#[test]
fn what_v_tells_is_json_among_json() {
    let scratch = Scratch::new("verbose-json");
    scratch.write("k.rt", "@triton.jit\ndef k(x):\n    tl.static_print('seen')\n    tl.store(x, 1.0)\n");
    let output = scratch.rtc(&[
        "-v",
        "--message-format",
        "json",
        "build",
        "k.rt",
        "--signature",
        "*fp32",
        "--no-cache",
        "-o",
        "o",
    ]);
    let text = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |message: &str| lines.iter().any(|line| line["message"].as_str().unwrap().contains(message));
    assert!(has("seen") && has("together"), "{text}");
}

#[test]
fn colors_are_those_of_terminals() {
    let scratch = Scratch::new("colors");
    let text = scratch.fails(1, &["--color", "always", "run", "k.rt", "--launch", "missing.json"]);
    assert!(text.contains("\x1b[31m") && text.contains("error[io]\x1b[0m"), "{text:?}");
    assert!(!scratch.fails(1, &["--color", "never", "run", "k.rt", "--launch", "missing.json"]).contains('\x1b'));
}

#[test]
fn the_language_server_answers_on_the_standard_streams() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtc"));
    command.args(["lsp", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#,
        r#"{"jsonrpc":"2.0","method":"exit"}"#,
    ];
    let mut input = server.stdin.take().unwrap();
    for message in messages {
        write!(input, "Content-Length: {}\r\n\r\n{message}", message.len()).unwrap();
    }
    drop(input);
    let output = server.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text.contains("\"hoverProvider\":true") && text.contains(r#""id":2"#), "{text}");
}
