//! `rtc doctor` on this machine, and with a cache that cannot be used.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::Scratch;

#[test]
fn the_report_as_text_and_as_json() {
    let scratch = Scratch::new("doctor");
    let text = scratch.rtc(&["doctor"]);
    let text = String::from_utf8(text.stdout).expect("UTF-8");
    assert!(text.lines().any(|line| line.starts_with("ok       emulator ")), "{text}");
    assert!(text.ends_with("kernels can run on this machine\n"), "{text}");
    let output = scratch.rtc(&["doctor", "--json"]);
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["works"], true);
    let checks = json["checks"].as_array().expect("a list");
    for topic in ["compiler", "driver", "emulator", "interpreter", "assembler", "cache", "python"] {
        assert!(checks.iter().any(|check| check["topic"] == topic), "{topic}: {json:#}");
    }
    for check in checks {
        assert_eq!(check["status"] == "ok", check["remedy"].is_null(), "{check}");
    }
}
