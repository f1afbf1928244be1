//! The thread of the language server: it answers in the order of the requests, and runs do not keep it waiting.

use super::guard::{Refusal, body};
use super::inputs::inputs;
use super::{json_answer, json_body, refuse};
use rtc_lsp::{Exchange, Session};
use serde_json::{Value, json};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use tiny_http::Request;

/// Deeply nested sources recurse deeply; the stack is only reserved, not used.
const STACK_BYTES: usize = 256 << 20;

enum Work {
    /// A message of the protocol.
    Message(Request),
    /// Inputs for a run; the specialization that is shown first.
    Inputs(Request, Option<String>),
}

/// The thread.
pub(crate) struct Language(Sender<Work>);

impl Language {
    pub(crate) fn start(file: PathBuf) -> io::Result<Language> {
        let (sender, receiver) = channel();
        let serve = move || {
            let mut exchange = Exchange::new();
            // Files of their own: the text of a request must not come between the edits of the protocol.
            let mut others = Exchange::new();
            let file = file.to_string_lossy().into_owned();
            for work in receiver {
                match work {
                    Work::Message(mut request) => {
                        let answers = guarded(|| message(&mut exchange, &mut request));
                        reply(request, answers);
                    }
                    Work::Inputs(mut request, first) => {
                        let found = guarded(|| proposed(others.session(), &mut request, &file, first.as_deref()));
                        reply(request, found);
                    }
                }
            }
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(serve)?;
        Ok(Language(sender))
    }

    /// Answers a message of the protocol, with a list of messages.
    pub(crate) fn message(&self, request: Request) {
        // The thread lives as long as the sender.
        let _ = self.0.send(Work::Message(request));
    }

    /// Answers with inputs for a run of the text in the request.
    pub(crate) fn inputs(&self, request: Request, first: Option<String>) {
        let _ = self.0.send(Work::Inputs(request, first));
    }
}

/// A panic is an answer, too, so that the next request gets one.
fn guarded(work: impl FnOnce() -> Result<Value, Refusal>) -> Result<Value, Refusal> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err((500, "a bug of rtc: the request panicked\n")))
}

fn reply(request: Request, answer: Result<Value, Refusal>) {
    match answer {
        Ok(value) => json_answer(request, &value),
        Err(refusal) => refuse(request, refusal),
    }
}

fn message(exchange: &mut Exchange, request: &mut Request) -> Result<Value, Refusal> {
    let text = body(request)?;
    let answers = exchange.take(&text).map_err(|_| (400, "no message of the protocol\n"))?;
    Ok(Value::Array(answers))
}

fn proposed(session: &mut Session, request: &mut Request, file: &str, first: Option<&str>) -> Result<Value, Refusal> {
    let wanted = json_body(request)?;
    let Some(text) = wanted["text"].as_str() else { return Err((400, "`text` is missing\n")) };
    session.set_text(file, text);
    Ok(json!(inputs(session, file, wanted["specialization"].as_str().or(first))))
}
