//! A server of one page for this machine only, which makes the page again when a file of it changes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tiny_http::{Header, Method, Request, Response, Server};

/// A server that listens.
pub struct Served {
    server: Server,
    address: SocketAddr,
}

/// Listens on a port of this machine's loopback interface; 0 takes any that is free.
///
/// # Errors
///
/// If the port is taken.
pub fn serve(port: u16) -> io::Result<Served> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let address = listener.local_addr()?;
    let server = Server::from_listener(listener, None).map_err(io::Error::other)?;
    Ok(Served { server, address })
}

impl Served {
    /// The address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Answers requests until the server is closed: `stamp` names the state of the files, `page` makes the page.
    ///
    /// # Errors
    ///
    /// If no more requests can be taken.
    pub fn run(&self, stamp: &dyn Fn() -> u64, page: &mut dyn FnMut() -> String) -> io::Result<()> {
        let mut made: Option<(u64, String)> = None;
        loop {
            let request = self.server.recv()?;
            let now = stamp();
            let answer = match self.path(&request) {
                Some("/stamp") => Response::from_string(now.to_string()).with_status_code(200),
                Some("/") => {
                    if made.as_ref().is_none_or(|(stamp, _)| *stamp != now) {
                        made = Some((now, page()));
                    }
                    let text = made.as_ref().map_or(String::new(), |(_, text)| text.clone());
                    Response::from_string(text).with_header(header("Content-Type", "text/html; charset=utf-8"))
                }
                Some(_) => Response::from_string("not found\n").with_status_code(404),
                None => Response::from_string("refused\n").with_status_code(403),
            };
            // A browser that is gone needs no answer.
            let _ = request.respond(answer.with_header(header("Cache-Control", "no-store")));
        }
    }

    /// The path of a request for this server by its own name. Another name is a page of another site that asks here.
    fn path<'r>(&self, request: &'r Request) -> Option<&'r str> {
        let host = request.headers().iter().find(|header| header.field.equiv("Host"))?.value.as_str();
        let own = [self.address.to_string(), format!("localhost:{}", self.address.port())];
        let is_own = own.iter().any(|name| name == host);
        (is_own && *request.method() == Method::Get).then(|| request.url().split('?').next().unwrap_or("/"))
    }
}

fn header(name: &str, value: &str) -> Header {
    // Names and values are those above.
    Header::from_bytes(name, value).unwrap_or_else(|()| unreachable!("{name} is a header"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn ask(address: SocketAddr, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("the server listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    #[test]
    fn a_page_is_made_again_after_a_change_and_for_this_machine_only() {
        let served = serve(0).expect("a free port");
        assert!(served.address.ip().is_loopback());
        let (address, own) = (served.address, served.address.to_string());
        std::thread::spawn(move || {
            let asked = Cell::new(0);
            let stamp = || {
                asked.set(asked.get() + 1);
                u64::from(asked.get() > 2)
            };
            let mut made = 0;
            let mut page = || {
                made += 1;
                format!("page {made}")
            };
            served.run(&stamp, &mut page)
        });
        assert!(ask(address, "/", &own).ends_with("page 1"));
        assert!(ask(address, "/", &own).ends_with("page 1"));
        assert!(ask(address, "/", &own).ends_with("page 2"), "the stamp has changed");
        assert!(ask(address, "/stamp", &own).ends_with('1'));
        assert!(ask(address, "/", "attacker.example").starts_with("HTTP/1.1 403"));
        assert!(ask(address, "/etc/passwd", &own).starts_with("HTTP/1.1 404"));
    }
}
