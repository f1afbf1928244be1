//! The protocol: messages in, answers and diagnostics out.
//!
//! One thread answers in the order of the messages. Diagnostics are made when no message is waiting, so that a burst of
//! keys costs one analysis.

mod address;
mod disk;
mod exchange;
mod handle;

pub use address::address_of;
pub use exchange::Exchange;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument,
    Notification as _, PublishDiagnostics,
};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CompletionOptions, DidChangeTextDocumentParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, HoverProviderCapability, OneOf, PublishDiagnosticsParams,
    RenameOptions, SemanticTokensFullOptions, SemanticTokensLegend, SemanticTokensOptions, ServerCapabilities,
    SignatureHelpOptions, TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, Uri,
};

use crate::session::Session;
use crate::symbols::{TOKEN_MODIFIERS, TOKEN_TYPES};

/// How long to wait for another key before diagnostics are made.
const PAUSE: Duration = Duration::from_millis(30);
/// Deeply nested sources recurse deeply; the stack is only reserved, not used.
const STACK_BYTES: usize = 256 << 20;

/// Serves one client on standard input and output, until it asks for the end or closes its side.
///
/// # Errors
///
/// One plain sentence if the client breaks the protocol or a stream fails.
pub fn serve_stdio() -> Result<(), String> {
    let (connection, threads) = Connection::stdio();
    let served = std::thread::scope(|scope| {
        let server = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || serve(connection));
        let server = server.map_err(|error| format!("cannot start a thread: {error}"))?;
        server.join().unwrap_or_else(|_| Err("the server panicked".into()))
    });
    served?;
    threads.join().map_err(|error| format!("the connection failed: {error}"))
}

/// Serves the client of a connection, which owns the other end.
///
/// # Errors
///
/// One plain sentence if the client breaks the protocol.
pub fn serve(connection: Connection) -> Result<(), String> {
    let capabilities = serde_json::to_value(capabilities()).map_err(|error| error.to_string())?;
    match connection.initialize(capabilities) {
        Ok(_) => {}
        Err(error) if error.channel_is_disconnected() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    }
    let mut server = Server::new();
    // If the client is gone, the loop ends with the next message.
    let send = |message: Message| connection.sender.send(message).is_ok();
    loop {
        let message = if server.stale {
            match connection.receiver.recv_timeout(PAUSE) {
                Ok(message) => message,
                Err(error) if error.is_timeout() => {
                    server.publish().into_iter().for_each(|message| _ = send(message));
                    continue;
                }
                Err(_) => return Ok(()),
            }
        } else {
            match connection.receiver.recv() {
                Ok(message) => message,
                Err(_) => return Ok(()),
            }
        };
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request).map_err(|error| error.to_string())? {
                    return Ok(());
                }
                if !send(Message::Response(server.answer(request))) {
                    return Ok(());
                }
            }
            Message::Notification(notification) => {
                if let Some(message) = server.notified(notification) {
                    send(message);
                }
            }
            Message::Response(_) => {}
        }
    }
}

/// The capabilities of the server.
fn capabilities() -> ServerCapabilities {
    let words = |list: &[&str]| Some(list.iter().map(ToString::to_string).collect());
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(true.into()),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: words(&["."]),
            ..CompletionOptions::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: words(&["(", ","]),
            ..SignatureHelpOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, CodeActionKind::REFACTOR]),
            ..CodeActionOptions::default()
        })),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: Default::default(),
        })),
        inlay_hint_provider: Some(OneOf::Left(true)),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend: SemanticTokensLegend {
                    token_types: TOKEN_TYPES.to_vec(),
                    token_modifiers: TOKEN_MODIFIERS.to_vec(),
                },
                full: Some(SemanticTokensFullOptions::Bool(true)),
                ..SemanticTokensOptions::default()
            }
            .into(),
        ),
        ..ServerCapabilities::default()
    }
}

struct Server {
    session: Session,
    /// The addresses of open files, as the client writes them, by name.
    addresses: HashMap<String, Uri>,
    /// Whether the client shows one file, and can change no other.
    has_one_file: bool,
    /// Whether diagnostics are to be made.
    stale: bool,
}

impl Server {
    fn new() -> Server {
        let session = Session::new(Box::new(disk::Disk));
        Server { session, addresses: HashMap::new(), has_one_file: false, stale: false }
    }

    fn answer(&mut self, request: Request) -> Response {
        let id = request.id.clone();
        let answer = catch_unwind(AssertUnwindSafe(|| self.handle(request)));
        answer.unwrap_or_else(|_| {
            Response::new_err(id, ErrorCode::InternalError as i32, "a bug of rtc: the request panicked".into())
        })
    }

    /// Takes a notification, which may be answered by one.
    fn notified(&mut self, notification: Notification) -> Option<Message> {
        match notification.method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Ok(params) = serde_json::from_value::<DidOpenTextDocumentParams>(notification.params) {
                    let name = address::name_of(&params.text_document.uri);
                    self.addresses.insert(name.clone(), params.text_document.uri);
                    self.update(|session| session.open(&name, &params.text_document.text));
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Ok(params) = serde_json::from_value::<DidChangeTextDocumentParams>(notification.params) {
                    let name = address::name_of(&params.text_document.uri);
                    self.update(|session| session.change(&name, &params.content_changes));
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Ok(params) = serde_json::from_value::<DidCloseTextDocumentParams>(notification.params) {
                    let name = address::name_of(&params.text_document.uri);
                    self.update(|session| session.close(&name));
                    self.addresses.remove(&name);
                    // The diagnostics of a closed file disappear.
                    return Some(published(params.text_document.uri, Vec::new()));
                }
            }
            DidSaveTextDocument::METHOD | DidChangeWatchedFiles::METHOD => self.update(Session::refresh),
            _ => {}
        }
        None
    }

    fn update(&mut self, change: impl FnOnce(&mut Session)) {
        // A panic leaves the session as it was or without an analysis, which is made again.
        let _ = catch_unwind(AssertUnwindSafe(|| change(&mut self.session)));
        self.stale = true;
    }

    /// The diagnostics of all open files.
    fn publish(&mut self) -> Vec<Message> {
        self.stale = false;
        let mut messages = Vec::new();
        for name in self.session.open_files() {
            let Some(uri) = self.addresses.get(&name).cloned() else { continue };
            let addresses = &self.addresses;
            let session = &mut self.session;
            let found =
                catch_unwind(AssertUnwindSafe(|| session.diagnostics(&name, &|name| address::uri_of(addresses, name))));
            messages.extend(found.ok().map(|found| published(uri, found)));
        }
        messages
    }
}

fn published(uri: Uri, diagnostics: Vec<lsp_types::Diagnostic>) -> Message {
    let params = PublishDiagnosticsParams { uri, diagnostics, version: None };
    Message::Notification(Notification::new(PublishDiagnostics::METHOD.to_owned(), params))
}
