//! A session: the sources that a client sent, which of them are right, and the command lines of its calls.

use crate::Setup;
use crate::process::{self, Ended};
use crate::tools::Tool;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The arguments of a call.
pub(crate) type Given = Map<String, Value>;

/// The reason why a call gives nothing: a code and a message.
pub(crate) type Refusal = (&'static str, String);

/// The state of a session.
pub(crate) struct Session {
    setup: Setup,
    folder: TempDir,
    /// The texts that `verify` has found right, by their digest.
    right: HashSet<String>,
}

impl Session {
    pub(crate) fn new(setup: Setup) -> std::io::Result<Session> {
        let folder = tempfile::Builder::new().prefix("rtc-mcp-").tempdir()?;
        Ok(Session { setup, folder, right: HashSet::new() })
    }

    /// Answers a call, in the form of [`Tool::output`].
    pub(crate) async fn call(&mut self, tool: Tool, given: &Given) -> Value {
        match self.answer(tool, given).await {
            Ok(answer) => answer,
            Err((code, message)) => json!({
                "ok": false, "error": {"code": code, "message": message}, "diagnostics": [], "result": null, "seconds": 0.0,
            }),
        }
    }

    async fn answer(&mut self, tool: Tool, given: &Given) -> Result<Value, Refusal> {
        check(tool, given)?;
        if tool == Tool::Explain {
            let name = text(given, "name").unwrap_or_default();
            let folder = self.folder.path().to_owned();
            if name.starts_with('-') {
                return Err(("usage", format!("`{name}` is no name")));
            }
            return Ok(answer_of(tool, &self.run(&folder, ["explain".into(), name.into()]).await?));
        }
        let texts = self.texts(given)?;
        let key = digest(&texts);
        let folder = self.folder.path().join(&key);
        write(&folder, &texts).map_err(|error| ("io", error.to_string()))?;
        if tool == Tool::Bench && !self.right.contains(&key) {
            return Err(("no-verdict", "`verify` has not found this source right; only such a source is timed".into()));
        }
        if tool.takes_launch() && !self.right.contains(&key) {
            return Err((
                "no-verdict",
                "there is no launch of this source; `verify` keeps those of a right kernel".into(),
            ));
        }
        let _ = fs::remove_dir_all(folder.join("out"));
        let words = self.words(tool, given, &folder, texts.reference.is_some())?;
        let ended = self.run(&folder, words).await?;
        let mut answer = answer_of(tool, &ended);
        if tool == Tool::Verify {
            self.right.remove(&key);
            if answer["ok"] == true {
                self.keep_launches(&folder, texts.reference.is_some()).await?;
                self.right.insert(key);
            }
        }
        if tool == Tool::Compile && answer["ok"] == true {
            let has_ptx = given.get("ptx").and_then(Value::as_bool).unwrap_or(false);
            answer["result"] = artifacts(&folder.join("out"), has_ptx).map_err(|error| ("io", error.to_string()))?;
        }
        Ok(answer)
    }

    /// The source and the reference of a call. The reference of the server counts more than one of the client.
    fn texts(&self, given: &Given) -> Result<Texts, Refusal> {
        let reference = match (&self.setup.reference, text(given, "reference")) {
            (Some(_), Some(_)) => {
                return Err(("usage", "the server was started with a reference; leave out `reference`".into()));
            }
            (Some(path), None) => Some(read(path)?),
            (None, given) => given.map(str::to_owned),
        };
        if self.setup.reference.is_some() && given.contains_key("fixed") {
            return Err(("usage", "the server was started with a reference; it says which sizes are `fixed`".into()));
        }
        Ok(Texts { source: text(given, "source").unwrap_or_default().to_owned(), reference })
    }

    fn words(&self, tool: Tool, given: &Given, folder: &Path, has_reference: bool) -> Result<Vec<OsString>, Refusal> {
        let mut words = Words::default();
        match tool {
            Tool::Check | Tool::Layouts => {
                let stage = match (tool, given.contains_key("signature")) {
                    (Tool::Layouts, _) => "laid",
                    (_, true) => "tile-opt",
                    (_, false) => "ast",
                };
                words.add(["emit", "kernel.py", "--message-format", "json", "--stage", stage]);
                words.compilation(given);
            }
            Tool::Compile => {
                words.add(["build", "kernel.py", "--message-format", "json", "--verbose", "--output", "out"]);
                words.compilation(given);
            }
            Tool::Verify => {
                words.add(["verify", "--json"]);
                self.of_python(&mut words, "kernel.py");
                if has_reference {
                    words.add(["--reference", "reference.py"]);
                }
                if let Some(seed) = given.get("seed") {
                    words.add(["--seed", &seed.to_string()]);
                }
                for size in &self.setup.fixed {
                    words.add(["--fixed", &size.to_string()]);
                }
                for size in given.get("fixed").and_then(Value::as_array).into_iter().flatten() {
                    words.add(["--fixed", &size.to_string()]);
                }
            }
            Tool::Precision | Tool::Bench => {
                words.add([tool.name()]);
                self.of_python(&mut words, if has_reference { "both.py" } else { "kernel.py" });
                words.add(["--json"]);
            }
            Tool::Run | Tool::Counters | Tool::Tune | Tool::ExplainSpeed => {
                let number = given.get("launch").and_then(Value::as_u64).unwrap_or(0);
                let place = folder.join(format!("launches/launch_{number}"));
                if !place.is_dir() {
                    return Err((
                        "usage",
                        format!("the wrapper has made no launch {number}; they are numbered from 0"),
                    ));
                }
                words.add([match tool {
                    Tool::Tune => "tune",
                    Tool::ExplainSpeed => "explain-speed",
                    _ => "run",
                }]);
                words.0.extend([place.join("rtc_m0.py").into(), "--launch".into(), place.join("LAUNCH.json").into()]);
                words.add(["--message-format", "json"]);
                if tool == Tool::Tune {
                    words.add(["--space"]);
                }
                let expected = place.join("expected.safetensors");
                if tool == Tool::Run && expected.exists() {
                    words.0.extend(["--check".into(), expected.into()]);
                }
                let sanitize = text(given, "sanitize");
                if let Some(checks) = sanitize {
                    words.0.push(format!("--sanitize={checks}").into());
                }
                match (tool == Tool::Counters || sanitize.is_some(), &self.setup.device) {
                    // It counts in the emulator, and names a device only to time the launch there.
                    _ if tool == Tool::ExplainSpeed => {}
                    (true, _) => words.add(["--device", "emulator"]),
                    (false, Some(device)) => words.add(["--device", device]),
                    (false, None) => {}
                }
                if tool == Tool::Counters {
                    words.add(["--counters"]);
                }
            }
            Tool::Explain => {}
        }
        Ok(words.0)
    }

    /// The Python, the file, and the device of a command that Python runs.
    fn of_python(&self, words: &mut Words, file: &str) {
        if let Some(python) = &self.setup.python {
            words.0.extend(["--python".into(), python.into()]);
        }
        words.add([file]);
        if let Some(device) = &self.setup.device {
            words.add(["--device", device]);
        }
        // The command ends by itself, and its answer has what ran until then.
        words.add(["--time-limit", &self.setup.limits.time.as_secs().saturating_sub(10).max(1).to_string()]);
    }

    /// Writes the launches of a right kernel.
    async fn keep_launches(&self, folder: &Path, has_reference: bool) -> Result<(), Refusal> {
        let _ = fs::remove_dir_all(folder.join("launches"));
        let mut words = Words::default();
        words.add(["verify", "--json"]);
        self.of_python(&mut words, "kernel.py");
        if has_reference {
            words.add(["--reference", "reference.py"]);
        }
        words.add(["--no-boundary", "--no-sanitize", "--record", "launches"]);
        // Launches that cannot be recorded are none of the mistakes of the kernel.
        self.run(folder, words.0).await.map(drop)
    }

    async fn run(&self, folder: &Path, words: impl IntoIterator<Item = OsString>) -> Result<Ended, Refusal> {
        let all: Vec<OsString> = self.setup.command.iter().cloned().chain(words).collect();
        process::run(&all, folder, self.setup.limits).await.map_err(|error| ("io", error.to_string()))
    }
}

/// The words of a command line.
#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    /// The kernel, its arguments and its options. One word each, so that none is taken for an option.
    fn compilation(&mut self, given: &Given) {
        for name in ["kernel", "signature", "arch"] {
            if let Some(value) = text(given, name) {
                self.0.push(format!("--{name}={value}").into());
            }
        }
        for (name, value) in given.get("options").and_then(Value::as_object).into_iter().flatten() {
            self.0.push(format!("--option={name}={value}").into());
        }
    }
}

/// The texts that a client sent.
struct Texts {
    source: String,
    reference: Option<String>,
}

fn digest(texts: &Texts) -> String {
    let mut hash = Sha256::new();
    for part in [Some(&texts.source), texts.reference.as_ref()].into_iter().flatten() {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(folder: &Path, texts: &Texts) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("kernel.py"), &texts.source)?;
    if let Some(reference) = &texts.reference {
        fs::write(folder.join("reference.py"), reference)?;
        fs::write(
            folder.join("both.py"),
            "from kernel import kernel_fn\nfrom reference import get_inputs, reference_fn\n",
        )?;
    }
    Ok(())
}

fn read(path: &PathBuf) -> Result<String, Refusal> {
    fs::read_to_string(path).map_err(|error| ("io", format!("{}: {error}", path.display())))
}

fn text<'a>(given: &'a Given, name: &str) -> Option<&'a str> {
    given.get(name).and_then(Value::as_str)
}

/// Refuses arguments that the schema of the tool does not allow.
fn check(tool: Tool, given: &Given) -> Result<(), Refusal> {
    let schema = tool.input();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !given.contains_key(name) {
            return Err(("usage", format!("`{}` needs `{name}`", tool.name())));
        }
    }
    for (name, value) in given {
        let known = &schema["properties"][name];
        let is_right = match known["type"].as_str() {
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.as_array().is_some_and(|items| items.iter().all(Value::is_u64)),
            Some("object") => value.is_object(),
            _ => return Err(("usage", format!("`{}` takes no `{name}`", tool.name()))),
        };
        if !is_right {
            return Err(("usage", format!("`{name}` of `{}` is {value}; it takes: {}", tool.name(), known["type"])));
        }
    }
    Ok(())
}

/// The answer to a call from the output of its command.
fn answer_of(tool: Tool, ended: &Ended) -> Value {
    let object: Option<Value> = serde_json::from_str(ended.out.trim()).ok().filter(Value::is_object);
    let told = object.as_ref().and_then(|object| object.get("error")).filter(|error| error.is_object());
    let diagnosed = ended.diagnostics.iter().find(|one| one["severity"] == "error");
    let is_right = object.as_ref().is_none_or(|object| object["correct"] != false && object["passed"] != false);
    let error = if ended.is_late {
        json!({"code": "time-limit", "message": "the command took longer than the server allows"})
    } else if let Some(error) = told.or(diagnosed) {
        json!({"code": error["code"], "message": error["message"]})
    } else {
        match ended.status {
            Some(0) => Value::Null,
            Some(1) if tool.is_of_python() && object.is_some() => Value::Null,
            Some(status) => match error_in(&ended.text) {
                Some((code, message)) => json!({"code": code, "message": message}),
                None => {
                    json!({"code": "internal", "message": format!("the command ended with the status {status}: {}", last(&ended.text))})
                }
            },
            None => {
                let code = if tool.is_of_python() { "python" } else { "internal" };
                json!({"code": code, "message": "the command ended by a signal: it needed more memory or time than the server allows, \
                                                 or crashed"})
            }
        }
    };
    let is_text = object.is_none() && !ended.out.trim().is_empty() && !matches!(tool, Tool::Check | Tool::Compile);
    let result = if is_text { json!({"text": ended.out}) } else { object.unwrap_or(Value::Null) };
    json!({
        "ok": ended.status == Some(0) && error.is_null() && is_right,
        "error": error,
        "diagnostics": ended.diagnostics,
        "result": result,
        "seconds": (ended.seconds * 1e3).round() / 1e3,
    })
}

/// The error that a command wrote as text, `error[CODE]: MESSAGE`.
fn error_in(text: &str) -> Option<(&str, &str)> {
    text.lines().rev().find_map(|line| line.strip_prefix("error[")?.split_once("]: "))
}

/// The last lines of a text.
fn last(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

/// The output of `rtc build`: the metadata of each kernel, and its PTX.
fn artifacts(folder: &Path, has_ptx: bool) -> std::io::Result<Value> {
    let mut kernels = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let mut metadata: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
        if has_ptx {
            metadata["ptx"] = fs::read_to_string(path.with_extension("ptx"))?.into();
        }
        kernels.push(metadata);
    }
    Ok(json!({"kernels": kernels}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(tool: Tool, status: i32, text: &str) -> Value {
        let (out, diagnostics) = Default::default();
        let text = text.to_owned();
        answer_of(tool, &Ended { status: Some(status), out, text, diagnostics, is_late: false, seconds: 0.0 })["error"]
            .clone()
    }

    #[test]
    fn errors_that_are_text_keep_their_code() {
        let unknown = "note: of rtc\nerror[unknown-code]: there is no code or function `x`\n";
        assert_eq!(
            answer(Tool::Explain, 1, unknown),
            json!({"code": "unknown-code", "message": "there is no code or function `x`"})
        );
        let crashed = answer(Tool::Explain, 101, "thread panicked\n");
        assert_eq!(crashed["code"], "internal");
        assert!(crashed["message"].as_str().is_some_and(|text| text.ends_with("thread panicked")), "{crashed}");
    }
}
