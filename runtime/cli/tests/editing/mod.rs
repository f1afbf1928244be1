//! A server of `rtc explore --serve --edit`, and requests to it.

#![allow(dead_code, reason = "each test uses its part")]

use super::scratch::Scratch;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// The server, which ends with the test.
pub struct Editing {
    child: Child,
    /// The address with the token.
    pub url: String,
    /// `127.0.0.1:PORT`.
    pub host: String,
    pub token: String,
}

impl Editing {
    pub fn start(scratch: &Scratch, args: &[&str]) -> Editing {
        let words = [&["explore", "--serve", "--edit"], args].concat();
        let mut child = scratch.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        let (host, token) = url.trim_start_matches("http://").split_once("/?token=").unwrap();
        Editing { child, host: host.to_owned(), token: token.to_owned(), url: url.clone() }
    }

    /// Status and body of the answer to a request with these lines as its head.
    pub fn raw(&self, head: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
        // A server that refuses need not read the body.
        let _ = stream.write_all(body.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        (status, if is_chunked { unchunked(body) } else { body.to_owned() })
    }

    /// The answer to a request of the page.
    pub fn post(&self, path: &str, body: &str) -> (u16, String) {
        let head = format!("POST /{path} HTTP/1.1\r\nHost: {}\r\nX-Rtc-Token: {}", self.host, self.token);
        self.raw(&head, body)
    }

    /// The same, in JSON; the request has to succeed.
    pub fn ask(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.post(path, &body.to_string());
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Editing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unchunked(body: &str) -> String {
    let (mut rest, mut text) = (body, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        text += after.get(..size).unwrap_or_default();
        rest = after.get(size + 2..).unwrap_or_default();
    }
    text
}
