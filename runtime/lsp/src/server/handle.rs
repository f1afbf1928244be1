//! Requests.

use lsp_server::{ErrorCode, Request, Response};
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentSymbolRequest, GotoDefinition, HoverRequest, InlayHintRequest,
    PrepareRenameRequest, References, Rename, Request as _, SemanticTokensFullRequest, SignatureHelpRequest,
};
use lsp_types::{
    CodeActionOrCommand, CodeActionParams, CompletionParams, CompletionResponse, DocumentSymbolParams,
    DocumentSymbolResponse, GotoDefinitionParams, GotoDefinitionResponse, HoverParams, InlayHintParams, Location,
    ReferenceParams, RenameParams, SemanticTokens, SemanticTokensParams, SignatureHelpParams,
    TextDocumentPositionParams,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Server;
use super::address::{name_of, uri_of};
use crate::definition::Place;
use crate::diagnostics::edits_of;

impl Server {
    pub(super) fn handle(&mut self, request: Request) -> Response {
        match request.method.as_str() {
            HoverRequest::METHOD => reply(request, |params: HoverParams| {
                let at = params.text_document_position_params;
                Ok(self.session.hover(&name_of(&at.text_document.uri), at.position))
            }),
            GotoDefinition::METHOD => reply(request, |params: GotoDefinitionParams| {
                let at = params.text_document_position_params;
                let places = self.session.definition(&name_of(&at.text_document.uri), at.position);
                Ok(GotoDefinitionResponse::Array(self.locations(places)))
            }),
            References::METHOD => reply(request, |params: ReferenceParams| {
                let at = params.text_document_position;
                let places = self.session.references(&name_of(&at.text_document.uri), at.position);
                Ok(self.locations(places))
            }),
            Completion::METHOD => reply(request, |params: CompletionParams| {
                let at = params.text_document_position;
                let items = self.session.completion(&name_of(&at.text_document.uri), at.position);
                Ok(CompletionResponse::Array(items))
            }),
            SignatureHelpRequest::METHOD => reply(request, |params: SignatureHelpParams| {
                let at = params.text_document_position_params;
                Ok(self.session.signature_help(&name_of(&at.text_document.uri), at.position))
            }),
            DocumentSymbolRequest::METHOD => reply(request, |params: DocumentSymbolParams| {
                Ok(DocumentSymbolResponse::Nested(self.session.symbols(&name_of(&params.text_document.uri))))
            }),
            InlayHintRequest::METHOD => reply(request, |params: InlayHintParams| {
                Ok(self.session.inlay_hints(&name_of(&params.text_document.uri), params.range))
            }),
            SemanticTokensFullRequest::METHOD => reply(request, |params: SemanticTokensParams| {
                let data = self.session.semantic_tokens(&name_of(&params.text_document.uri));
                Ok(SemanticTokens { result_id: None, data })
            }),
            CodeActionRequest::METHOD => reply(request, |params: CodeActionParams| {
                let name = name_of(&params.text_document.uri);
                let addresses = &self.addresses;
                let actions = self.session.code_actions(&name, params.range, &|name| uri_of(addresses, name));
                Ok(actions.into_iter().map(CodeActionOrCommand::CodeAction).collect::<Vec<_>>())
            }),
            PrepareRenameRequest::METHOD => reply(request, |at: TextDocumentPositionParams| {
                Ok(self.session.prepare_rename(&name_of(&at.text_document.uri), at.position))
            }),
            Rename::METHOD => reply(request, |params: RenameParams| {
                let at = params.text_document_position;
                let name = name_of(&at.text_document.uri);
                let edits = self.session.rename(&name, at.position, &params.new_name)?;
                if let Some((other, _)) = edits.iter().find(|(file, _)| self.has_one_file && *file != name) {
                    return Err(format!(
                        "`{other}` has the name, too; rename it in an editor that can change both files"
                    ));
                }
                let files =
                    edits.into_iter().filter_map(|(name, edits)| Some((uri_of(&self.addresses, &name)?, edits)));
                Ok(edits_of(files))
            }),
            _ => {
                let message = format!("unknown request `{}`", request.method);
                Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message)
            }
        }
    }

    fn locations(&self, places: Vec<Place>) -> Vec<Location> {
        let location = |(name, range): Place| Some(Location { uri: uri_of(&self.addresses, &name)?, range });
        places.into_iter().filter_map(location).collect()
    }
}

/// Answers a request; an error of the handler is shown to the user.
fn reply<P: DeserializeOwned, R: Serialize>(request: Request, handle: impl FnOnce(P) -> Result<R, String>) -> Response {
    match serde_json::from_value(request.params) {
        Ok(params) => match handle(params) {
            Ok(result) => Response::new_ok(request.id, result),
            Err(message) => Response::new_err(request.id, ErrorCode::RequestFailed as i32, message),
        },
        Err(error) => Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string()),
    }
}
