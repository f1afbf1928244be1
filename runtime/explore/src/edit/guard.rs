//! Which requests are answered: those of the page itself.
//!
//! Another page in the same browser can send requests to this address, too, directly or by a name of its own that resolves to it
//! (DNS rebinding); other users of the machine can connect as well. Each request therefore needs the name of this server as its
//! host, a token that only the address of the page has, and no origin but this one.

use std::io::Read as _;
use std::net::SocketAddr;
use tiny_http::{Method, Request};

/// Largest body of a request in bytes.
const BODY: u64 = 8 << 20;

/// What a request needs.
pub(crate) struct Guard {
    hosts: [String; 2],
    token: String,
}

/// Why a request is refused: an HTTP status, and one line.
pub(crate) type Refusal = (u16, &'static str);

impl Guard {
    /// For the server at an address, with a token of its own.
    pub(crate) fn new(address: SocketAddr) -> std::io::Result<Guard> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Guard { hosts: [address.to_string(), format!("localhost:{}", address.port())], token })
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The path of a request that is answered, without its query.
    pub(crate) fn path<'r>(&self, request: &'r Request) -> Result<&'r str, Refusal> {
        let header = |name: &'static str| {
            request.headers().iter().find(|header| header.field.equiv(name)).map(|header| header.value.as_str())
        };
        let is_own = |host: &str| self.hosts.iter().any(|own| own == host);
        if !header("Host").is_some_and(is_own) {
            return Err((403, "this name is not that of the server\n"));
        }
        // Browsers send the origin of the page that asks with each POST.
        let is_foreign = |origin: &str| !origin.strip_prefix("http://").is_some_and(is_own);
        if header("Origin").is_some_and(is_foreign) {
            return Err((403, "another page asks\n"));
        }
        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        let given = match request.method() {
            // The script is the same for all, and has nothing of a file.
            Method::Get if matches!(path, "/editor.js" | "/licences") => return Ok(path),
            Method::Get => query.split('&').find_map(|pair| pair.strip_prefix("token=")),
            Method::Post => header("X-Rtc-Token"),
            _ => return Err((405, "GET or POST\n")),
        };
        match given {
            Some(token) if token == self.token => Ok(path),
            _ => Err((403, "the token is missing; use the address that rtc printed\n")),
        }
    }
}

/// The body of a request as text.
pub(crate) fn body(request: &mut Request) -> Result<String, Refusal> {
    let mut text = Vec::new();
    let read = request.as_reader().take(BODY + 1).read_to_end(&mut text);
    match read {
        Ok(bytes) if bytes as u64 <= BODY => String::from_utf8(text).map_err(|_| (400, "the request is not UTF-8\n")),
        Ok(_) => Err((413, "the request is too large\n")),
        Err(_) => Err((400, "the request ends early\n")),
    }
}
