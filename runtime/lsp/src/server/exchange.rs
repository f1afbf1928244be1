//! The protocol without a stream: each message is answered at once, as for a page that sends them as requests of its own.

use super::{Server, capabilities};
use crate::session::Session;
use lsp_server::{Message, Response};
use lsp_types::request::{Initialize, Request as _, Shutdown};
use serde_json::json;

/// A server that takes messages one by one. It reads imported files from the disk, and changes no other file than the one that is
/// shown.
///
/// ```
/// let mut server = rtc_lsp::Exchange::new();
/// let answers = server.take(r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}"#).unwrap();
/// assert!(answers[0]["result"]["capabilities"]["hoverProvider"].as_bool().unwrap());
/// assert!(server.take("no message").is_err());
/// ```
pub struct Exchange(Server);

impl Default for Exchange {
    fn default() -> Exchange {
        Exchange::new()
    }
}

impl Exchange {
    /// No file is open.
    pub fn new() -> Exchange {
        Exchange(Server { has_one_file: true, ..Server::new() })
    }

    /// The open files.
    pub fn session(&mut self) -> &mut Session {
        &mut self.0.session
    }

    /// The answers to a message: the response to a request, and after a change the diagnostics of the open files.
    ///
    /// # Errors
    ///
    /// One plain sentence if the text is no message of the protocol.
    pub fn take(&mut self, message: &str) -> Result<Vec<serde_json::Value>, String> {
        let message: Message =
            serde_json::from_str(message).map_err(|error| format!("no message of the protocol: {error}"))?;
        let mut answers = Vec::new();
        match message {
            Message::Request(request) => answers.push(Message::Response(match request.method.as_str() {
                Initialize::METHOD => Response::new_ok(request.id, json!({"capabilities": capabilities()})),
                Shutdown::METHOD => Response::new_ok(request.id, ()),
                _ => self.0.answer(request),
            })),
            Message::Notification(notification) => answers.extend(self.0.notified(notification)),
            Message::Response(_) => {}
        }
        if self.0.stale {
            answers.extend(self.0.publish());
        }
        let json = |message: &Message| {
            let mut value = serde_json::to_value(message).map_err(|error| error.to_string())?;
            value["jsonrpc"] = "2.0".into();
            Ok(value)
        };
        answers.iter().map(json).collect()
    }
}
