//! A client of the protocol: it starts the server as an editor does, and exchanges messages over its standard streams.

use std::io::{BufReader, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lsp_server::{Message, Notification, Request, RequestId};
use serde_json::{Value, json};

pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: i32,
    /// Notifications that came between answers.
    heard: Vec<Notification>,
}

impl Client {
    /// Starts a server and shakes hands.
    pub fn start() -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rtc-lsp"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut client = Client { child, input, output, last: 0, heard: Vec::new() };
        let answer = client.request("initialize", json!({"capabilities": {}}));
        assert!(answer["capabilities"]["hoverProvider"].as_bool().unwrap_or_default(), "{answer}");
        client.notify("initialized", json!({}));
        client
    }

    fn send(&mut self, message: Message) {
        message.write(self.input.as_mut().expect("open")).expect("the server reads");
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(Message::Notification(Notification::new(method.into(), params)));
    }

    /// The result of a request.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.try_request(method, params).unwrap_or_else(|message| panic!("{method}: {message}"))
    }

    /// The result of a request, or the message of its error.
    pub fn try_request(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.last += 1;
        let id = RequestId::from(self.last);
        self.send(Message::Request(Request::new(id.clone(), method.into(), params)));
        loop {
            match Message::read(&mut self.output).expect("the protocol").expect("an answer") {
                Message::Response(response) if response.id == id => {
                    let json = serde_json::to_value(response).expect("JSON");
                    return match json.get("error") {
                        Some(error) => Err(error["message"].as_str().unwrap_or_default().to_owned()),
                        None => Ok(json["result"].clone()),
                    };
                }
                Message::Notification(notification) => self.heard.push(notification),
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "python", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Waits for the diagnostics of a file.
    pub fn diagnostics(&mut self, uri: &str) -> Vec<Value> {
        loop {
            let at = self.heard.iter().position(|n| n.params["uri"] == uri);
            if let Some(at) = at {
                return self.heard.remove(at).params["diagnostics"].as_array().cloned().unwrap_or_default();
            }
            match Message::read(&mut self.output).expect("the protocol").expect("diagnostics") {
                Message::Notification(notification) => self.heard.push(notification),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Ends the server; it exits with success and has written nothing to its standard error.
    pub fn end(mut self) {
        assert_eq!(self.request("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        self.input = None;
        let mut said = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        let status = self.child.wait().expect("it ends");
        assert!(status.success() && said.is_empty(), "{status}: {said}");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // After a failure of the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
