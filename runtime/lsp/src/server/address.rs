//! Addresses of files: `file:///a%20b.py` is the file `/a b.py`. Other addresses are their own names, beside which there are
//! no files.

use std::collections::HashMap;

use lsp_types::Uri;

/// The name of a file in a session, of its address.
pub(super) fn name_of(uri: &Uri) -> String {
    let text = uri.as_str();
    match text.strip_prefix("file://") {
        Some(rest) => decoded(rest.strip_prefix("localhost").unwrap_or(rest)),
        None => text.to_owned(),
    }
}

/// The address of a file: that of the client for an open one.
pub(super) fn uri_of(open: &HashMap<String, Uri>, name: &str) -> Option<Uri> {
    match open.get(name) {
        Some(uri) => Some(uri.clone()),
        None if name.starts_with('/') => address_of(name).parse().ok(),
        None => name.parse().ok(),
    }
}

/// The address of a file, of its absolute path with `/` between folders.
///
/// ```
/// assert_eq!(rtc_lsp::address_of("/a b.py"), "file:///a%20b.py");
/// ```
pub fn address_of(path: &str) -> String {
    format!("file://{}", encoded(path))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = (*first == b'%').then(|| std::str::from_utf8(tail.get(..2)?).ok()).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    text.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_fit() {
        for name in ["/a b/ü%20🚀.py", "/plain.rt"] {
            let uri = uri_of(&HashMap::new(), name).expect("an address");
            assert_eq!(name_of(&uri), name);
        }
        let untitled: Uri = "untitled:Untitled-1".parse().expect("an address");
        assert_eq!(name_of(&untitled), "untitled:Untitled-1");
    }
}
