//! Completion, signatures, hints, symbols, tokens, renaming and changes, on the logic.

use lsp_types::{Position, Range, SignatureHelp, TextEdit, Uri};
use rtc_lsp::{Lines, Session, TOKEN_TYPES};

const TEXT: &str = "\
import triton
import triton.language as tl

WIDTH = 32

@triton.jit
def helper(value, scale: tl.constexpr = 2):
    return value * scale

# rtc: kernel(*fp32:16, i32, B=256)
@triton.jit
def kernel(x, n, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + at, mask=at < n)
    w = helper(v, scale=3)
    tl.store(x + at, w, mask=at < n)
";

fn uri(name: &str) -> Option<Uri> {
    format!("file://{name}").parse().ok()
}

fn session(text: &str) -> Session {
    let mut session = Session::new(Box::new(()));
    session.open("/m.py", text);
    session
}

/// The position behind a text.
fn behind(text: &str, needle: &str) -> Position {
    let at = text.find(needle).unwrap_or_else(|| panic!("no `{needle}`")) + needle.len();
    Lines::new(text).position(text, at)
}

fn whole() -> Range {
    Range { start: Position::default(), end: Position { line: u32::MAX, character: 0 } }
}

fn labels(session: &mut Session, text: &str, needle: &str) -> Vec<String> {
    session.completion("/m.py", behind(text, needle)).into_iter().map(|item| item.label).collect()
}

/// The text after edits of it.
fn applied(text: &str, mut edits: Vec<TextEdit>) -> String {
    let lines = Lines::new(text);
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.range.start));
    let mut text = text.to_owned();
    for edit in edits {
        let original = text.clone();
        text.replace_range(
            lines.offset(&original, edit.range.start)..lines.offset(&original, edit.range.end),
            &edit.new_text,
        );
    }
    text
}

#[test]
fn members_and_names_complete_while_the_line_is_unfinished() {
    let text = TEXT.replace("    w = helper(v, scale=3)\n", "    w = tl.\n");
    let mut session = session(&text);
    let tl = labels(&mut session, &text, "w = tl.");
    for name in ["load", "dot", "float16", "sum", "exp"] {
        assert!(tl.contains(&name.to_owned()), "{name}: {tl:?}");
    }
    assert!(!tl.contains(&"WIDTH".to_owned()));
    let text = TEXT.replace("    w = helper(v, scale=3)\n", "    w = v.\n");
    session.open("/m.py", &text);
    let method = labels(&mut session, &text, "w = v.");
    assert!(["to", "shape", "sum", "reshape"].iter().all(|n| method.contains(&(*n).to_owned())), "{method:?}");
    assert!(!method.contains(&"load_".to_owned()) && !method.contains(&"program_id".to_owned()), "{method:?}");
    let text = TEXT.replace("    w = helper(v, scale=3)\n", "    w = helper(v, \n");
    session.open("/m.py", &text);
    let names = labels(&mut session, &text, "w = helper(v, ");
    for name in ["scale=", "at", "v", "B", "WIDTH", "helper", "kernel", "tl", "range"] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
    let text = TEXT.replace("helper(v, scale=3)", "v  # tl.");
    session.open("/m.py", &text);
    assert_eq!(labels(&mut session, &text, "# tl."), [""; 0], "in a comment");
}

#[test]
fn completions_have_types() {
    let mut session = session(TEXT);
    let items = session.completion("/m.py", behind(TEXT, "    tl.store(x + at, "));
    let detail = |name: &str| items.iter().find(|i| i.label == name).and_then(|i| i.detail.clone());
    assert_eq!(detail("w").as_deref(), Some("fp32[256]"));
    assert_eq!(detail("B").as_deref(), Some("256"));
}

#[test]
fn signatures_show_the_current_parameter() {
    let active = |text: &str, needle: &str| {
        let mut session = session(text);
        let help: Option<SignatureHelp> = session.signature_help("/m.py", behind(text, needle));
        let help = help.unwrap_or_else(|| panic!("{needle}: no call"));
        let signature = &help.signatures[0];
        let parameters = signature.parameters.as_ref().expect("parameters");
        let active = help.active_parameter.map(|index| match &parameters[index as usize].label {
            lsp_types::ParameterLabel::Simple(text) => text.clone(),
            other => panic!("{other:?}"),
        });
        (signature.label.clone(), active.unwrap_or_default())
    };
    let (label, parameter) = active(TEXT, "helper(v, ");
    assert_eq!(
        (label.as_str(), parameter.as_str()),
        ("helper(value, scale: tl.constexpr = 2)", "scale: tl.constexpr = 2")
    );
    let (label, parameter) = active(TEXT, "tl.load(x + at, mask=at");
    assert!(label.starts_with("tl.load(pointer, ") && parameter.starts_with("mask"), "{label} {parameter}");
    let unfinished = TEXT.replace("tl.arange(0, B)", "tl.arange(0, ");
    let (label, parameter) = active(&unfinished, "tl.arange(0, ");
    assert!(label.starts_with("tl.arange(") && parameter.starts_with("end"), "{label} {parameter}");
}

#[test]
fn hints_show_shapes_and_specialized_parameters() {
    let mut session = session(TEXT);
    let hints: Vec<String> = session
        .inlay_hints("/m.py", whole())
        .into_iter()
        .map(|hint| match hint.label {
            lsp_types::InlayHintLabel::String(text) => {
                format!("{}:{}{text}", hint.position.line + 1, hint.position.character)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    insta::assert_snapshot!(hints.join("\n"));
}

#[test]
fn renaming_follows_keywords_and_respects_scopes() {
    let mut session = session(TEXT);
    let edits = session.rename("/m.py", behind(TEXT, "value, scal"), "factor").expect("a new name");
    let [(file, edits)] = <[_; 1]>::try_from(edits).expect("one file");
    assert_eq!((file.as_str(), applied(TEXT, edits)), ("/m.py", TEXT.replace("scale", "factor")));
    let error = session.rename("/m.py", behind(TEXT, "    at"), "v").expect_err("taken");
    assert_eq!(error, "`v` is already a name there");
    assert!(session.rename("/m.py", behind(TEXT, "    at"), "for").is_err());
    assert!(session.rename("/m.py", behind(TEXT, "import triton.language as t"), "lang").is_err(), "an import");
    let places = session.references("/m.py", behind(TEXT, "    at"));
    assert_eq!(places.len(), 5);
}

#[test]
fn symbols_are_listed() {
    let mut session = session(TEXT);
    let symbols: Vec<String> = session
        .symbols("/m.py")
        .into_iter()
        .map(|s| format!("{:?} {} {}", s.kind, s.name, s.detail.unwrap_or_default()))
        .collect();
    insta::assert_snapshot!(symbols.join("\n"));
}

#[test]
fn tokens_have_kinds() {
    let mut session = session(TEXT);
    let (mut line, mut column) = (0, 0);
    let lines: Vec<&str> = TEXT.lines().collect();
    let tokens: Vec<String> = session
        .semantic_tokens("/m.py")
        .into_iter()
        .map(|token| {
            column = if token.delta_line > 0 { token.delta_start } else { column + token.delta_start };
            line += token.delta_line;
            let text = &lines[line as usize][column as usize..(column + token.length) as usize];
            format!(
                "{} {text} {} {}",
                line + 1,
                TOKEN_TYPES[token.token_type as usize].as_str(),
                token.token_modifiers_bitset
            )
        })
        .collect();
    insta::assert_snapshot!(tokens.join("\n"));
}

/// Mistakes with the text that a code action makes of them.
#[test]
fn code_actions_mend_mistakes() {
    let mended = [
        ("tl.load(x", "tl.laod(x", "tl.load(x"),
        ("mask=at < n)\n    w", "maks=at < n)\n    w", "mask=at < n)\n    w"),
        ("helper(v, scale=3)", "helper(v, scal=3)", "helper(v, scale=3)"),
        ("helper(v, scale=3)", "helpr(v, scale=3)", "helper(v, scale=3)"),
        ("tl.arange(0, B)", "arange(0, B)", "tl.arange(0, B)"),
        ("helper(v, scale=3)", "v.reshap(B)", "v.reshape(B)"),
        ("at < n)\n    w", "at < n && at > 0)\n    w", "at < n and at > 0)\n    w"),
        ("B: tl.constexpr):", "B: tl.constexpr)", "B: tl.constexpr):"),
        ("    w = helper(v, scale=3)\n", "    w = 017\n", "    w = 0o17\n"),
        ("@triton.jit\ndef kernel", "@trition.jit\ndef kernel", "@triton.jit\ndef kernel"),
        ("tl.store(x + at, w, mask=at < n)", "tl.store(x + at, w)", "tl.store(x + at, w, mask=at < n)"),
    ];
    for (right, wrong, after) in mended {
        let text = TEXT.replace(right, wrong);
        assert_ne!(text, TEXT, "{right}");
        let mut session = session(&text);
        let actions = session.code_actions("/m.py", whole(), &uri);
        let action = actions.into_iter().find(|a| a.diagnostics.is_some());
        let action = action.unwrap_or_else(|| panic!("{wrong}: {:?}", session.diagnostics("/m.py", &uri)));
        #[allow(clippy::mutable_key_type)] // The type of the protocol's crate.
        let changes = action.edit.and_then(|edit| edit.changes).expect("changes");
        let edits = changes.into_values().next().expect("one file");
        assert_eq!(applied(&text, edits), TEXT.replace(right, after), "{wrong}");
    }
}

#[test]
fn a_comment_for_the_assumed_types_can_be_inserted() {
    let text = TEXT.replace("# rtc: kernel(*fp32:16, i32, B=256)\n", "");
    let mut session = session(&text);
    let place = behind(&text, "def kern");
    let actions = session.code_actions("/m.py", Range { start: place, end: place }, &uri);
    let [action] = actions.as_slice() else { panic!("{actions:?}") };
    #[allow(clippy::mutable_key_type)] // The type of the protocol's crate.
    let changes = action.edit.clone().and_then(|edit| edit.changes).expect("changes");
    let after = applied(&text, changes.into_values().next().expect("one file"));
    assert_eq!(after, TEXT.replace("*fp32:16, i32, B=256", "x=*fp32:16, n=i32, B=128"));
    session.open("/m.py", &after);
    assert_eq!(session.diagnostics("/m.py", &uri), Vec::new());
}
