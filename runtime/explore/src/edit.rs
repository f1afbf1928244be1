//! A page with an editor: diagnostics, types and shapes while typing, and runs of the kernel as it is in the editor.
//!
//! | file | content |
//! | --- | --- |
//! | `edit/guard.rs` | which requests are answered |
//! | `edit/language.rs` | the thread of the language server |
//! | `edit/inputs.rs` | inputs for a run |
//! | `edit/runs.rs`, `edit/process.rs` | runs in processes of their own, with limits |
//! | `edit/editor.min.js` | the script, made by `scripts/editor` from `editors/page` |

mod guard;
mod inputs;
mod language;
mod process;
mod runs;

pub use rtc_process::Limits;

use crate::html;
use guard::{Guard, Refusal, body};
use language::Language;
use runs::Runs;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tiny_http::{Header, Method, Request, Response, Server};

const SCRIPT: &str = include_str!("edit/editor.min.js");
const LICENCES: &str = include_str!("edit/editor.licences.txt");

/// What is edited, and how it runs.
#[derive(Clone, Debug)]
pub struct EditSetup {
    /// The file in the editor.
    pub file: PathBuf,
    /// The words of the command that runs it. It reads what the page sends from standard input, as JSON: `text`, and either
    /// `"launch": true` or `specialization`, `grid` and `values`. It prints the data of the page.
    pub command: Vec<OsString>,
    /// The specialization that is shown first, as a comment `# rtc: ..` has it.
    pub specialization: Option<String>,
    /// The launch file that the command runs when it gets no inputs.
    pub launch: Option<PathBuf>,
    /// Limits of a run.
    pub limits: Limits,
}

/// A server of an editor that listens.
pub struct Editing {
    server: Server,
    address: SocketAddr,
    guard: Guard,
}

/// Listens on a port of this machine's loopback interface; 0 takes any that is free.
///
/// # Errors
///
/// If the port is taken.
pub fn edit(port: u16) -> io::Result<Editing> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let address = listener.local_addr()?;
    let server = Server::from_listener(listener, None).map_err(io::Error::other)?;
    Ok(Editing { server, address, guard: Guard::new(address)? })
}

impl Editing {
    /// The address of the page, with the token that requests need.
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.guard.token())
    }

    /// Answers requests until the server is closed.
    ///
    /// # Errors
    ///
    /// If the file cannot be read at first, or no more requests can be taken.
    pub fn run(&self, setup: &EditSetup) -> io::Result<()> {
        let path = std::path::absolute(&setup.file)?;
        let text = std::fs::read_to_string(&path)?;
        let language = Language::start(path.clone())?;
        let runs = Arc::new(Runs::new(setup.command.clone(), setup.limits));
        let mut saved = text;
        loop {
            let mut request = self.server.recv()?;
            let path_of = self.guard.path(&request).map(|path| (request.method().clone(), path.to_owned()));
            let (method, wanted) = match path_of {
                Ok(found) => found,
                Err(refusal) => {
                    refuse(request, refusal);
                    continue;
                }
            };
            match (method, wanted.as_str()) {
                (Method::Get, "/editor.js") => answer(request, SCRIPT, "text/javascript; charset=utf-8"),
                (Method::Get, "/licences") => answer(request, LICENCES, "text/plain; charset=utf-8"),
                (Method::Get, "/") => {
                    // A page that is loaded again begins with the file as it is then.
                    saved = std::fs::read_to_string(&path).unwrap_or(saved);
                    answer(request, &self.page(setup, &path, &saved), HTML);
                }
                (Method::Get, "/result") => answer(request, &runs.page(), HTML),
                (Method::Post, "/lsp") => language.message(request),
                (Method::Post, "/inputs") => language.inputs(request, setup.specialization.clone()),
                (Method::Post, "/run") => runs.begin(request),
                (Method::Post, "/save") => match save(&mut request, &path, &mut saved) {
                    Ok(value) => json_answer(request, &value),
                    Err(refusal) => refuse(request, refusal),
                },
                _ => refuse(request, (404, "not found\n")),
            }
        }
    }

    fn page(&self, setup: &EditSetup, path: &std::path::Path, text: &str) -> String {
        let name = setup.file.file_name().unwrap_or_default().to_string_lossy();
        let launch = setup.launch.as_ref().map(|launch| launch.display().to_string());
        let uri = rtc_lsp::address_of(&path.to_string_lossy());
        html::editor(
            &name,
            &json!({"name": name, "uri": uri, "text": text, "token": self.guard.token(), "launch": launch}),
        )
    }
}

const HTML: &str = "text/html; charset=utf-8";

/// Writes the text of the editor to the file, unless the file has changed since the page read it.
fn save(request: &mut Request, path: &std::path::Path, saved: &mut String) -> Result<Value, Refusal> {
    let wanted = json_body(request)?;
    let Some(text) = wanted["text"].as_str() else { return Err((400, "`text` is missing\n")) };
    match std::fs::read_to_string(path) {
        Ok(now) if now == *saved || now == text => {}
        Ok(_) => return Err((409, "the file has changed since it was read; load the page again\n")),
        Err(_) => return Err((409, "the file cannot be read any more\n")),
    }
    std::fs::write(path, text).map_err(|_| (500, "the file cannot be written\n"))?;
    text.clone_into(saved);
    Ok(json!({"saved": true}))
}

/// The body of a request as JSON.
fn json_body(request: &mut Request) -> Result<Value, Refusal> {
    serde_json::from_str(&body(request)?).map_err(|_| (400, "the request is not JSON\n"))
}

fn answer(request: Request, text: &str, kind: &str) {
    let response = Response::from_string(text).with_header(header("Content-Type", kind));
    respond(request, response);
}

fn json_answer(request: Request, value: &Value) {
    answer(request, &value.to_string(), "application/json");
}

fn refuse(request: Request, (status, line): Refusal) {
    respond(request, Response::from_string(line).with_status_code(status));
}

fn respond(request: Request, response: Response<io::Cursor<Vec<u8>>>) {
    // Only scripts of this server run; the page of a result has its own script in it.
    let scripts = if request.url().starts_with("/result") { "'unsafe-inline'" } else { "'self'" };
    let policy = format!(
        "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; connect-src 'self'; frame-src 'self'; \
         frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
    );
    let response = response
        .with_header(header("Content-Security-Policy", &policy))
        .with_header(header("Referrer-Policy", "no-referrer"))
        .with_header(header("X-Content-Type-Options", "nosniff"))
        .with_header(header("Cross-Origin-Resource-Policy", "same-origin"))
        .with_header(header("Cache-Control", "no-store"));
    // A browser that is gone needs no answer.
    let _ = request.respond(response);
}

fn header(name: &str, value: &str) -> Header {
    // Names and values are those above.
    Header::from_bytes(name, value).unwrap_or_else(|()| unreachable!("{name} is a header"))
}
