//! `rtc mcp`: tools for agents that write kernels, over the Model Context Protocol on standard input and output.
//!
//! Each call runs a command of `rtc` in a process of its own, with limits of time and memory (`process.rs`): nothing of a
//! client's source runs in this process. `tools.rs` describes the tools, `session.rs` makes their command lines and answers,
//! `resources.rs` has the language reference.

mod process;
mod resources;
mod session;
mod tools;

pub use rtc_process::Limits;

use resources::PAGES;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use session::Session;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;
use tools::Tool;

/// How the server runs commands.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The words that start `rtc`.
    pub command: Vec<OsString>,
    /// The Python of `verify`, `precision` and `bench`, if it is not the one that `rtc` finds.
    pub python: Option<PathBuf>,
    /// A file with `reference_fn` and `get_inputs` that clients cannot replace.
    pub reference: Option<PathBuf>,
    /// Sizes that are the only ones in their place, as `--fixed` of `rtc verify`.
    pub fixed: Vec<u64>,
    /// Where kernels run.
    pub device: Option<String>,
    /// Limits of a command.
    pub limits: Limits,
}

/// Serves a client on standard input and output until it ends.
///
/// # Errors
///
/// Those of the streams, and a client that does not begin as the protocol says.
pub fn serve(setup: Setup) -> io::Result<()> {
    let server = Server { session: Arc::new(Mutex::new(Session::new(setup)?)) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let running = server.serve(rmcp::transport::stdio()).await.map_err(io::Error::other)?;
        running.waiting().await.map(drop).map_err(io::Error::other)
    })
}

/// Answers a client. One command runs at a time, as several would disturb what they measure.
struct Server {
    session: Arc<Mutex<Session>>,
}

const INSTRUCTIONS: &str = "Write a Python module with a @triton.jit kernel, `kernel_fn` (launches it), `reference_fn` (the same in numpy \
     or PyTorch) and `get_inputs` (a list of arguments). Call `verify`; with errors, `explain` has the meaning of their codes. \
     A kernel that is right can be measured by `counters`, `tune`, `explain_speed`, `precision` and `bench`. The resources are the language \
     reference.";

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("rtc", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.into());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let described = |tool: Tool| {
            rmcp::model::Tool::new(tool.name(), tool.description(), Arc::new(tool.input()))
                .with_raw_output_schema(Arc::new(Tool::output()))
        };
        Ok(ListToolsResult::with_all_items(Tool::ALL.into_iter().map(described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::of(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let answer = self.session.lock().await.call(tool, &request.arguments.unwrap_or_default()).await;
        // A wrong kernel is an answer; a call that gives none is an error.
        let result = match answer["error"].is_null() {
            true => CallToolResult::structured(answer),
            false => CallToolResult::structured_error(answer),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let described = |page| {
            Resource::new(resources::address(page), resources::title(page))
                .with_mime_type("text/markdown")
                .with_size(page.1.len() as u64)
        };
        Ok(ListResourcesResult::with_all_items(PAGES.iter().map(described).collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(page) = resources::find(&request.uri) else {
            return Err(ErrorData::resource_not_found(format!("there is no resource {}", request.uri), None));
        };
        let contents = ResourceContents::text(page.1, request.uri).with_mime_type("text/markdown");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
