//! The protocol without a stream.
#![allow(clippy::unwrap_used)]

use rtc_lsp::{Exchange, address_of};
use serde_json::{Value, json};

fn open(text: &str) -> Value {
    let document = json!({"uri": address_of("/none/a b.py"), "languageId": "python", "version": 0, "text": text});
    json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}})
}

#[test]
fn a_change_is_answered_with_diagnostics() {
    let mut server = Exchange::new();
    let answers = server.take(&open("@triton.jit\ndef k(x):\n    tl.store(y, 1)\n").to_string()).unwrap();
    let [answer] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(answer["method"], "textDocument/publishDiagnostics");
    assert_eq!(answer["params"]["uri"], "file:///none/a%20b.py");
    assert_eq!(answer["params"]["diagnostics"][0]["code"], "undefined-name");
    let change = json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
        "textDocument": {"uri": address_of("/none/a b.py"), "version": 1},
        "contentChanges": [{"range": {"start": {"line": 2, "character": 13}, "end": {"line": 2, "character": 14}}, "text": "x"}]}});
    let answers = server.take(&change.to_string()).unwrap();
    assert_eq!(answers[0]["params"]["diagnostics"], json!([]));
    assert_eq!(server.session().open_files(), ["/none/a b.py"]);
}

#[test]
fn wrong_messages_do_not_end_it() {
    let mut server = Exchange::new();
    for wrong in ["", "{", "[]", "3", "null", r#"{"method": 3}"#] {
        assert!(server.take(wrong).is_err(), "{wrong}");
    }
    let unknown = server.take(r#"{"jsonrpc": "2.0", "id": 7, "method": "none", "params": {}}"#).unwrap();
    assert_eq!((&unknown[0]["id"], &unknown[0]["jsonrpc"]), (&json!(7), &json!("2.0")));
    assert!(unknown[0]["error"]["message"].as_str().unwrap().contains("none"));
    let hover = server.take(r#"{"jsonrpc": "2.0", "id": 8, "method": "textDocument/hover", "params": {}}"#).unwrap();
    assert!(hover[0]["error"].is_object());
    assert!(server.take(r#"{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": 4}"#).unwrap().is_empty());
}

/// The client shows one file, and could not apply edits of another.
#[test]
fn a_name_of_two_files_is_not_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("user.py"), "from kernels import twice\n\ndef run(x):\n    twice[(1,)](x)\n").unwrap();
    let text = "import triton\n\n@triton.jit\ndef twice(x):\n    y = 1\n";
    let mut server = Exchange::new();
    let document = json!({"uri": address_of(&path("kernels.py")), "languageId": "python", "version": 0, "text": text});
    server
        .take(
            &json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}})
                .to_string(),
        )
        .unwrap();
    let mut rename = |line: u32, character: u32| {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "textDocument/rename", "params": {
            "textDocument": {"uri": address_of(&path("kernels.py"))}, "position": {"line": line, "character": character}, "newName": "z"}});
        server.take(&request.to_string()).unwrap().remove(0)
    };
    let refused = rename(3, 5)["error"]["message"].as_str().unwrap().to_owned();
    assert!(refused.contains("user.py` has the name, too"), "{refused}");
    let edits = rename(4, 5)["result"]["changes"][address_of(&path("kernels.py"))].clone();
    assert_eq!(edits.as_array().unwrap().len(), 1);
}
