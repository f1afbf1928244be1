//! The server as an editor uses it: over its standard streams.

mod client;

use client::Client;
use serde_json::{Value, json};

const TEXT: &str = "\
import triton
import triton.language as tl
from helpers import twice

# rtc: kernel(*fp16:16, M=128, N=64)
@triton.jit
def kernel(x, M: tl.constexpr, N: tl.constexpr):
    s = '🚀🚀' ; rows = tl.arange(0, M)
    tile = tl.load(x + rows[:, None] * N + tl.aragne(0, N)[None, :])
    tl.store(x, twice(tile))
";

/// A folder with the helpers that the text imports; the address of a file in it.
fn folder() -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let folder = tempfile::Builder::new().prefix("with space ").tempdir().expect("a folder");
    let helpers = "import triton\n\n@triton.jit\ndef twice(x):\n    return x + x\n";
    std::fs::write(folder.path().join("helpers.py"), helpers).expect("a file");
    let base = folder.path().display().to_string().replace(' ', "%20");
    (folder, move |name: &str| format!("file://{base}/{name}"))
}

fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})
}

fn change(client: &mut Client, uri: &str, start: (u32, u32), end: (u32, u32), text: &str) {
    let range = json!({"start": {"line": start.0, "character": start.1}, "end": {"line": end.0, "character": end.1}});
    let changes = json!([{"range": range, "text": text}]);
    client.notify(
        "textDocument/didChange",
        json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": changes}),
    );
}

#[test]
fn a_wrong_kernel_is_mended_by_the_answers() {
    let (_folder, address) = folder();
    let uri = address("kernel.py");
    let mut client = Client::start();
    client.open(&uri, &TEXT.replace("s = '🚀🚀' ; ", ""));
    let found = client.diagnostics(&uri);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["code"], "undefined-name");
    assert_eq!(found[0]["range"], json!({"start": {"line": 8, "character": 46}, "end": {"line": 8, "character": 52}}));

    let context = json!({"diagnostics": [], "triggerKind": 1});
    let actions = client.request(
        "textDocument/codeAction",
        json!({"textDocument": {"uri": uri}, "range": found[0]["range"], "context": context}),
    );
    let edit = &actions[0]["edit"]["changes"][&uri][0];
    assert_eq!((&actions[0]["title"], &edit["newText"]), (&json!("Did you mean `tl.arange`?"), &json!("arange")));
    change(&mut client, &uri, (8, 46), (8, 52), edit["newText"].as_str().expect("text"));
    let found = client.diagnostics(&uri);
    assert!(found.iter().all(|d| d["severity"] != 1 || d["code"] != "undefined-name"), "{found:?}");

    let hover = client.request("textDocument/hover", at(&uri, 8, 5));
    assert!(hover["contents"]["value"].as_str().is_some_and(|t| t.contains("tile: tile<128x64xf16>")), "{hover}");
    let hints = client.request(
        "textDocument/inlayHint",
        json!({"textDocument": {"uri": uri}, "range": {"start": {"line": 8, "character": 0}, "end": {"line": 9, "character": 0}}}),
    );
    assert_eq!(hints[0]["label"], ": fp16[128, 64]");
    assert_eq!(hints[0]["position"], json!({"line": 8, "character": 8}));
    let there = client.request("textDocument/definition", at(&uri, 9, 18));
    assert_eq!(there[0]["uri"], address("helpers.py"));
    assert_eq!(there[0]["range"]["start"], json!({"line": 3, "character": 4}));
    client.end();
}

#[test]
fn columns_count_utf16_units() {
    let (_folder, address) = folder();
    let uri = address("kernel.py");
    let mut client = Client::start();
    client.open(&uri, TEXT);
    let found = client.diagnostics(&uri);
    let constant = found.iter().find(|d| d["code"] == "type-mismatch").expect("a string is no value");
    // Each rocket is two units.
    assert_eq!(constant["range"], json!({"start": {"line": 7, "character": 8}, "end": {"line": 7, "character": 14}}));
    let hover = client.request("textDocument/hover", at(&uri, 7, 18));
    assert!(hover["contents"]["value"].as_str().is_some_and(|t| t.contains("rows: tile<128xi32>")), "{hover}");
    // An edit behind the rockets: `rows` becomes `lines`.
    change(&mut client, &uri, (7, 17), (7, 21), "lines");
    let found = client.diagnostics(&uri);
    assert!(
        found.iter().any(|d| d["message"].as_str().is_some_and(|m| m.contains("`rows` is not defined"))),
        "{found:?}"
    );
    client.end();
}

#[test]
fn an_import_that_changes_is_analysed_again() {
    let (folder, address) = folder();
    let uri = address("kernel.py");
    let mut client = Client::start();
    let text = TEXT.replace("s = '🚀🚀' ; ", "").replace("aragne", "arange").replace("tl.store(x, ", "y = (");
    client.open(&uri, &text);
    assert_eq!(client.diagnostics(&uri), Vec::<Value>::new());
    std::fs::write(folder.path().join("helpers.py"), "import triton\n\n@triton.jit\ndef thrice(x):\n    return x\n")
        .expect("a file");
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": address("helpers.py")}}));
    let found = client.diagnostics(&uri);
    assert_eq!(found.len(), 1, "{found:?}");
    std::fs::remove_file(folder.path().join("helpers.py")).expect("it is there");
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    let gone = client.diagnostics(&uri);
    assert!(gone.len() == 1 && gone[0]["code"] == "not-callable", "{gone:?}");
    std::fs::write(folder.path().join("helpers.py"), "import triton\n\n@triton.jit\ndef twice(x):\n    return x\n")
        .expect("a file");
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    assert_eq!(client.diagnostics(&uri), Vec::<Value>::new());
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    assert_eq!(client.diagnostics(&uri), Vec::<Value>::new());
    client.end();
}

#[test]
fn bad_requests_get_errors_and_the_server_goes_on() {
    let (_folder, address) = folder();
    let uri = address("kernel.py");
    let mut client = Client::start();
    assert!(client.try_request("textDocument/hover", json!({"wrong": 1})).is_err());
    assert!(client.try_request("no/such", json!(null)).is_err_and(|m| m.contains("no/such")));
    assert_eq!(client.request("textDocument/hover", at(&uri, 0, 0)), Value::Null, "a file that is not open");
    client.notify("textDocument/didChange", json!({"nonsense": true}));
    client.open(&uri, TEXT);
    assert_eq!(client.request("textDocument/hover", at(&uri, 4_000_000, 4_000_000)), Value::Null);
    let new = json!({"textDocument": {"uri": uri}, "position": {"line": 7, "character": 18}, "newName": "2x"});
    assert!(client.try_request("textDocument/rename", new).is_err_and(|m| m == "`2x` is not a name"));
    client.end();
}

/// The kernel's file, one that uses it by three ways, and one that is open and changed: all places are found, from each of them.
#[test]
fn a_name_is_renamed_in_all_files() {
    const KERNELS: &str = "\
import triton

WIDTH = 32

@triton.jit
def twice(x, factor):
    return x * factor + WIDTH
";
    const USER: &str = "\
import kernels
from kernels import twice, WIDTH as width

def run(x):
    twice[(1,)](x, factor=2)
    kernels.twice[(width,)](x, factor=kernels.WIDTH)
";
    let folder = tempfile::tempdir().expect("a folder");
    let address = |name: &str| format!("file://{}/{name}", folder.path().display());
    std::fs::write(folder.path().join("kernels.py"), KERNELS).expect("a file");
    std::fs::write(folder.path().join("user.py"), USER).expect("a file");
    std::fs::write(folder.path().join("other.rt"), "from kernels import no_such\n").expect("a file");
    let other = "from kernels import twice as two\n\ndef run(x):\n    two(x, factor=3)\n";
    let mut client = Client::start();
    for (name, text) in [("kernels.py", KERNELS), ("other.rt", other)] {
        client.open(&address(name), text);
        client.diagnostics(&address(name));
    }
    let position = |text: &str, needle: &str| {
        let at = text.find(needle).expect("it is there") + needle.len();
        let line = text[..at].matches('\n').count();
        (line as u32, (at - text[..at].rfind('\n').map_or(0, |end| end + 1)) as u32)
    };
    let mut edits = |file: &str, (line, character): (u32, u32), new: &str| -> Vec<(String, usize)> {
        let mut params = at(&address(file), line, character);
        params["newName"] = new.into();
        let changes = client.request("textDocument/rename", params)["changes"].clone();
        let mut found: Vec<(String, usize)> = changes
            .as_object()
            .expect("edits by file")
            .iter()
            .map(|(uri, edits)| {
                (uri.rsplit('/').next().unwrap_or_default().to_owned(), edits.as_array().map_or(0, Vec::len))
            })
            .collect();
        found.sort();
        let references = client.request("textDocument/references", {
            let mut params = at(&address(file), line, character);
            params["context"] = json!({"includeDeclaration": true});
            params
        });
        assert_eq!(references.as_array().map_or(0, Vec::len), found.iter().map(|(_, count)| count).sum::<usize>());
        found
    };
    let all = |kernels: usize, other: usize, user: usize| {
        let counts = [("kernels.py", kernels), ("other.rt", other), ("user.py", user)];
        counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect::<Vec<_>>()
    };
    // The function: its definition, its import under another name, and two calls and an import.
    assert_eq!(edits("kernels.py", position(KERNELS, "def twi"), "double"), all(1, 1, 3));
    assert_eq!(edits("other.rt", position(other, "import twi"), "double"), all(1, 1, 3));
    // That other name is one of its file alone.
    assert_eq!(edits("other.rt", position(other, "    tw"), "double"), all(0, 2, 0));
    // The parameter, from its definition and from the name of an argument.
    assert_eq!(edits("kernels.py", position(KERNELS, "(x, fac"), "scale"), all(2, 1, 2));
    assert_eq!(edits("other.rt", position(other, "x, fac"), "scale"), all(2, 1, 2));
    // The variable: an import under another name and an attribute.
    assert_eq!(edits("kernels.py", position(KERNELS, "WID"), "LANES"), all(2, 0, 2));
    let mut refused = |new: &str| {
        let (line, character) = position(KERNELS, "def twi");
        let mut params = at(&address("kernels.py"), line, character);
        params["newName"] = new.into();
        client.try_request("textDocument/rename", params).expect_err("it is refused")
    };
    assert!(refused("kernels").contains("`kernels` is already a name in `"), "{}", refused("kernels"));
    assert_eq!(refused("WIDTH"), "`WIDTH` is already a name there");
    std::fs::write(folder.path().join("star.py"), "from kernels import *\ntwice(1, 2)\n").expect("a file");
    assert!(refused("double").contains("star.py` imports all names of this file"));
    client.end();
}
