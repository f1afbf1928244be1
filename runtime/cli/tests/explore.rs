//! `rtc explore`: its data, its size, and what it refuses.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::{LAUNCH, SIGNATURE, Scratch, tensors, tutorial};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;

fn data(scratch: &Scratch, args: &[&str]) -> Value {
    let output = scratch.rtc(&[&["explore", "--json"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn launch_scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("launch.json", LAUNCH).write("in.safetensors", tensors(300));
    scratch
}

#[test]
fn the_data_of_a_small_kernel() {
    let scratch = launch_scratch("explore-data");
    let mut data = data(&scratch, &["k.rt", "--launch", "launch.json", "--arch", "sm_80"]);
    // Instructions are chosen by LLVM, registers by an assembler if there is one.
    let source_of = |line: &Value| data["places"][line["p"][0].as_u64().unwrap() as usize][1].as_u64().unwrap();
    let ptx: Vec<&Value> = data["ptx"].as_array().unwrap().iter().filter(|line| line.get("p").is_some()).collect();
    let store = ptx.iter().find(|line| line["t"].as_str().unwrap().contains("st.global")).unwrap();
    assert_eq!(source_of(store), 5);
    assert!(ptx.iter().any(|line| source_of(line) == 3));
    for key in ["version", "ptx", "sass"] {
        data.as_object_mut().unwrap().shift_remove(key);
    }
    for key in ["registers", "registers_are_estimated", "spilled"] {
        data["resources"].as_object_mut().unwrap().shift_remove(key);
    }
    let launch = data["launch"].as_object_mut().unwrap();
    launch.shift_remove("ptx_heat");
    launch.shift_remove("instructions");
    for heat in launch["heat"].as_array_mut().unwrap() {
        for key in ["warps", "threads", "classes"] {
            assert!(heat.as_object_mut().unwrap().shift_remove(key).is_some());
        }
    }
    let kinds: Vec<&str> =
        launch["timeline"]["bars"].as_array().unwrap().iter().map(|bar| bar["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"load") && kinds.contains(&"wait") && kinds.contains(&"store"), "{kinds:?}");
    launch["timeline"].as_object_mut().unwrap().retain(|key, _| key == "model" || key.starts_with("warps"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&data).unwrap());
}

#[test]
fn the_differences_of_passes_lead_from_each_text_to_the_next() {
    let scratch = Scratch::new("explore-passes");
    let data = data(&scratch, &["k.rt", "--signature", SIGNATURE, "--arch", "sm_90a"]);
    let passes = data["passes"].as_array().unwrap();
    assert!(passes.len() > 3 && passes[0]["name"] == "sema");
    let count = |pass: &Value| pass["lines"].as_array().unwrap().len() as u64;
    for pair in passes.windows(2) {
        let sum = |kinds: [u64; 2]| -> u64 {
            let runs = pair[1]["changes"].as_array().unwrap().iter();
            runs.filter(|run| kinds.contains(&run[0].as_u64().unwrap())).map(|run| run[1].as_u64().unwrap()).sum()
        };
        assert_eq!((sum([0, 1]), sum([0, 2])), (count(&pair[0]), count(&pair[1])), "{}", pair[1]["name"]);
    }
    // Layouts are those of the values.
    let types = data["types"].as_array().unwrap();
    let laid = types.iter().find(|ty| ty.get("layout").is_some()).unwrap();
    let layout = &data["layouts"][laid["layout"].as_u64().unwrap() as usize];
    assert_eq!(layout["shape"], laid["shape"]);
    assert_eq!(layout["lane"].as_array().unwrap().len(), 5);
}

/// The copies of the tutorial's matrix multiplication are issued two iterations ahead, at the places of their loads.
#[test]
fn copies_of_the_tutorial_are_issued_ahead() {
    let scratch = Scratch::new("explore-tutorial");
    let (source, lines) = tutorial(&scratch);
    for arch in ["sm_80", "sm_90a"] {
        let data = data(&scratch, &[&source, "--launch", "matmul.json", "--arch", arch, "--no-sanitize"]);
        let rings = data["launch"]["timeline"]["rings"].as_array().unwrap();
        let places: Vec<u64> = rings
            .iter()
            .map(|ring| data["places"][ring["place"].as_u64().unwrap() as usize][1].as_u64().unwrap())
            .collect();
        assert_eq!(places, lines, "{arch}");
        for ring in rings {
            let stages = ring["stages"].as_u64().unwrap();
            let most = ring["ahead"][1].as_u64().unwrap();
            if arch == "sm_80" {
                assert_eq!((stages, &ring["ahead"]), (3, &serde_json::json!([2, 2])));
            } else {
                // A producer warp fills a slot as soon as the iteration that reads it is over.
                assert!(stages > 3 && (stages - 1..=stages).contains(&most), "{ring}");
            }
        }
    }
}

#[test]
fn a_trace_is_written_for_perfetto() {
    let scratch = launch_scratch("explore-trace");
    let output = scratch.rtc(&["explore", "k.rt", "--launch", "launch.json", "--trace", "trace.json"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "k.html\n");
    let trace: Value = serde_json::from_slice(&std::fs::read(scratch.0.join("trace.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = events.iter().filter(|event| event["name"] == "thread_name").count();
    assert_eq!(named, 4, "a thread for each warp");
    let phase = |name: &str| events.iter().filter(|event| event["ph"] == name).count();
    assert!(phase("X") > 0 && phase("b") > 0 && phase("b") == phase("e"));
}

/// Pages need no network, and those of the examples stay small.
#[test]
fn pages_of_the_examples_are_small_and_need_no_network() {
    let scratch = Scratch::new("explore-examples");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let attention = "*fp16:16, *fp16:16, *fp16:16, *fp16:16, fp32, i32:16, 64, 64, 32";
    let partial = "*fp16:16, *fp16:16, *fp32:16, i32, i32, i32, 32, 32, 32, 8";
    let signatures = [("attention", "attention.rt", attention), ("sharded_matmul", "partial_matmul.rt", partial)];
    let launched = ["vector_add", "softmax", "matmul", "dropout", "layer_norm"];
    let of_launch = launched.map(|name| {
        let folder = examples.join(name);
        vec![folder.join(format!("{name}.rt")), "--launch".into(), folder.join("launch.json")]
    });
    let of_signature = signatures.map(|(folder, file, signature)| {
        vec![examples.join(folder).join(file), "--signature".into(), signature.into(), "--arch".into(), "sm_90a".into()]
    });
    for arguments in of_launch.into_iter().chain(of_signature) {
        let arguments: Vec<&str> = arguments.iter().map(|argument| argument.to_str().unwrap()).collect();
        let output = scratch.rtc(&[&["explore", "-o", "page.html"], arguments.as_slice()].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let page = std::fs::read_to_string(scratch.0.join("page.html")).unwrap();
        assert!(page.len() <= 2 << 20, "{arguments:?}: {} bytes", page.len());
        for outside in ["src=", "href=", "@import", "url(", "https://"] {
            assert!(!page.contains(outside), "{arguments:?}: `{outside}`");
        }
    }
}

#[test]
fn findings_are_at_their_lines() {
    let scratch = launch_scratch("explore-findings");
    let source = "@triton.jit\ndef copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n    \
                  offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + offsets)\n    \
                  tl.store(y_ptr + offsets, x, mask=offsets < n)\n";
    scratch.write("bad.rt", source);
    let data = data(&scratch, &["bad.rt", "--launch", "launch.json"]);
    let finding = &data["launch"]["findings"][0];
    assert_eq!(data["places"][finding["places"][0].as_u64().unwrap() as usize], serde_json::json!([0, 4]), "{finding}");
    assert!(data["launch"]["fault"].is_string(), "the launch ends at the first access out of bounds");
}

/// The interpreter finds these: the PTX does not have the promise any more.
#[test]
fn a_false_promise_is_at_its_line() {
    let scratch = launch_scratch("explore-promise");
    let source = "@triton.jit\ndef copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n    \
                  offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.assume(n % 16 == 0)\n    \
                  tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)\n";
    scratch.write("promise.rt", source);
    let data = data(&scratch, &["promise.rt", "--launch", "launch.json"]);
    let findings = data["launch"]["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    let place = &data["places"][findings[0]["places"][0].as_u64().unwrap() as usize];
    assert_eq!((&findings[0]["code"], place), (&"false-promise".into(), &serde_json::json!([0, 4])), "{findings:?}");
}

#[test]
fn bad_input_is_refused() {
    let scratch = launch_scratch("explore-bad");
    scratch
        .write("wrong.rt", "@triton.jit\ndef k(x):\n    tl.store(x, y)\n")
        .write("half.json", "{\"spec\": ")
        .write("k.ptx", "");
    assert!(scratch.fails(1, &["explore", "none.rt", "--signature", "*fp32"]).starts_with("error[io]"));
    assert!(scratch.fails(1, &["explore", "wrong.rt", "--signature", "*fp32"]).contains("wrong.rt:3:17"));
    assert!(scratch.fails(1, &["explore", "k.rt", "--launch", "half.json"]).starts_with("error[launch-file]"));
    assert!(scratch.fails(2, &["explore", "k.ptx", "--signature", "*fp32"]).contains("has no stages"));
    assert!(scratch.fails(2, &["explore", "k.rt"]).contains("give --signature or --spec"));
    assert!(scratch.fails(2, &["explore", "k.rt", "--signature", SIGNATURE, "--trace", "t.json"]).contains("--launch"));
    let two = ["explore", "k.rt", "--signature", SIGNATURE, "--signature", SIGNATURE];
    assert!(scratch.fails(2, &two).contains("explore takes one kernel"));
    let targets = ["explore", "k.rt", "--signature", SIGNATURE, "--arch", "sm_80,sm_90a"];
    assert!(scratch.fails(2, &targets).contains("explore takes one target"));
    assert!(scratch.fails(2, &["explore", "-", "--signature", SIGNATURE, "--serve"]).contains("--serve needs a file"));
    assert!(!scratch.0.join("k.html").exists());
}

/// A served page follows its file, also through a state with an error.
/// Files that cannot be read or written, a port that is taken, and what is no trace.
#[test]
fn other_files_and_ports_are_refused() {
    let scratch = launch_scratch("explore-io");
    scratch.write("bytes.rt", b"\xff\xfe@triton.jit\n").write("shape.json", r#"{"spec": 3}"#).write("no.json", "{}");
    std::fs::create_dir(scratch.0.join("folder")).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let launch = |more: &[&str]| scratch.fails(1, &[&["explore", "k.rt", "--launch", "launch.json"], more].concat());
    for (found, expected) in [
        (scratch.fails(1, &["explore", "bytes.rt", "--signature", SIGNATURE]), "the file is not UTF-8 (at byte 0)"),
        (scratch.fails(1, &["explore", "folder", "--signature", SIGNATURE]), "error[io]: cannot read the file"),
        (scratch.fails(1, &["explore", "k.rt", "--launch", "shape.json"]), "`spec`: expected an object, found 3"),
        (launch(&["-o", "none/page.html"]), "cannot write the file: there is no directory none\n"),
        (launch(&["-o", "folder"]), "error[io]: cannot write the file"),
        (launch(&["--serve", "--port", &port]), "error[io]: cannot serve the page: Address already in use"),
        (scratch.fails(1, &["explore", "k.rt", "--timeline", "no.json"]), "error[trace]: it is no trace of a launch"),
        (scratch.fails(1, &["explore", "k.rt", "--timeline", "k.rt"]), "error[trace]: it is no JSON"),
        (scratch.fails(2, &["explore", "k.rt", "--timeline", "t.json", "--launch", "l.json"]), "cannot be used with"),
    ] {
        assert!(found.contains(expected), "{found}");
    }
    // A link is kept, and what it names is written.
    std::os::unix::fs::symlink("target.html", scratch.0.join("link.html")).unwrap();
    assert!(scratch.rtc(&["explore", "k.rt", "--signature", SIGNATURE, "-o", "link.html"]).status.success());
    assert!(std::fs::read_link(scratch.0.join("link.html")).is_ok() && scratch.0.join("target.html").is_file());
    let left: Vec<_> = std::fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{left:?}");
}

#[test]
fn a_served_page_follows_its_file() {
    let scratch = launch_scratch("explore-serve");
    let mut served = scratch.command(&["explore", "k.rt", "--signature", SIGNATURE, "--serve"]);
    let mut served = served.stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(served.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
    let address = url.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{url}");
    let ask = |path: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let (page, stamp) = (ask("/"), ask("/stamp"));
    scratch
        .write("k.rt", "@triton.jit\ndef copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n    tl.store(y_ptr, z)\n");
    let (wrong, after) = (ask("/"), ask("/stamp"));
    let _ = served.kill();
    let _ = served.wait();
    assert!(page.contains("<title>copy_kernel for sm_80</title>") && page.contains("const RELOADS = true"));
    assert!(wrong.contains("k.rt:3:21") && stamp != after, "{wrong}");
}
