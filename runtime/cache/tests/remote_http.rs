//! Caches of several machines over a store accessed by HTTP: WebDAV (`wsgidav`) and S3 (`moto_server`), servers that
//! the test starts if they are installed (`pip install wsgidav cheroot 'moto[server,s3]'`).
#![cfg(feature = "remote-http")]
#![allow(clippy::unwrap_used)]

use rtc_cache::{Cache, CacheConfig, Key, KeyBuilder};
use rtc_test_needs::{Need, missing};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(30);

/// A server that is killed when the test ends.
struct Server(Child, u16);

impl Server {
    /// Nothing where there is no such program; `args` gives its arguments for a port.
    fn start(program: &str, args: impl FnOnce(&str) -> Vec<String>) -> Option<Server> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args(args(&port.to_string())).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            missing(Need::HttpStores);
            return None;
        };
        let server = Server(child, port);
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < WAIT, "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn key(name: &str) -> Key {
    KeyBuilder::new("test/1").text("name", name).finish()
}

/// Two machines write, read, replace and remove; then the server dies.
fn shares(uri: &str, server: Server) {
    let machine = || {
        let directory = tempfile::tempdir().unwrap();
        let config = CacheConfig::new(directory.path()).with_remote(uri).with_remote_timeout(Duration::from_secs(10));
        (directory, Cache::open(config).unwrap())
    };
    let ((_a, first), (_b, second)) = (machine(), machine());
    assert_eq!(first.get("kernel", &key("k")).unwrap(), None);
    let large: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
    for (name, bytes) in [("k", &b"small"[..]), ("empty", &[]), ("large", &large)] {
        first.put("kernel", &key(name), bytes).unwrap();
        assert_eq!(second.get("kernel", &key(name)).unwrap().as_deref(), Some(bytes), "{name}");
    }
    first.put("kernel", &key("k"), b"replaced").unwrap();
    let (_c, third) = machine();
    assert_eq!(third.get("kernel", &key("k")).unwrap().as_deref(), Some(&b"replaced"[..]));
    assert!(first.remove("kernel", &key("k")).unwrap());
    let (_d, fourth) = machine();
    assert_eq!(fourth.get("kernel", &key("k")).unwrap(), None);
    drop(server);
    let (_e, fifth) = machine();
    let text = fifth.get("kernel", &key("large")).unwrap_err().to_string();
    assert!(text.contains("is not used for now"), "{text}");
    assert_eq!(fifth.get("kernel", &key("large")).unwrap(), None);
}

#[test]
fn webdav() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display().to_string();
    let server = Server::start("wsgidav", |port| {
        ["--host=127.0.0.1", &format!("--port={port}"), &format!("--root={root}"), "--auth=anonymous"]
            .map(Into::into)
            .into()
    });
    let Some(server) = server else { return };
    // `webdav://host/rtc` uses HTTPS.
    shares(&format!("webdav:///rtc?endpoint=http://127.0.0.1:{}", server.1), server);
    assert!(folder.path().join("rtc").is_dir());
}

#[test]
fn s3() {
    let server = Server::start("moto_server", |port| ["-H", "127.0.0.1", "-p", port].map(Into::into).into());
    let Some(server) = server else { return };
    let mut bucket = TcpStream::connect(("127.0.0.1", server.1)).unwrap();
    write!(bucket, "PUT /kernels HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = [0; 12];
    bucket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let keys = "access_key_id=test&secret_access_key=test";
    let endpoint = format!("http://127.0.0.1:{}", server.1);
    shares(&format!("s3://kernels/rtc?region=us-east-1&endpoint={endpoint}&{keys}"), server);
}
