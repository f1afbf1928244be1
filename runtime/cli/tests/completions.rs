//! `rtc completions` and `rtc man`: shells accept the scripts, and there is a page for each command.
#![allow(clippy::unwrap_used)]

mod scratch;

use scratch::Scratch;
use std::io::Write;
use std::process::{Command, Stdio};

/// The commands that `rtc --help` lists, but for `help`.
fn commands(scratch: &Scratch) -> Vec<String> {
    let help = String::from_utf8(scratch.rtc(&["--help"]).stdout).unwrap();
    let list = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).filter(|name| name != "help").collect()
}

#[test]
fn completions_have_every_command_and_option() {
    let scratch = Scratch::new("completions");
    let commands = commands(&scratch);
    assert!(commands.len() >= 15, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = scratch.rtc(&["completions", shell]);
        let text = String::from_utf8_lossy(&output.stdout);
        for command in &commands {
            assert!(text.contains(command.as_str()), "{shell}: {command}");
        }
        for option in ["print-after-all", "message-format", "num-warps"] {
            assert!(text.contains(option), "{shell}: {option}");
        }
        // A shell that is installed reads the script without complaint.
        let checked = Command::new(shell).arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        if let Ok(mut checked) = checked
            && shell != "elvish"
        {
            checked.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let ended = checked.wait_with_output().unwrap();
            assert!(ended.status.success(), "{shell}: {}", String::from_utf8_lossy(&ended.stderr));
        }
    }
    assert!(scratch.fails(2, &["completions", "tcsh"]).contains("possible values: bash"));
}

#[test]
fn bash_completes_commands_and_options() {
    let scratch = Scratch::new("bash-completes");
    let script = r#"source <(rtc completions bash); complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rtc rtc "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[@]}"; }
                    complete_words rtc tu; complete_words rtc run k.rt --counte; complete_words rtc cache ver"#;
    let rtc = std::path::Path::new(env!("CARGO_BIN_EXE_rtc")).parent().unwrap();
    let path = format!("{}:{}", rtc.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash").args(["-c", script]).env("PATH", path).current_dir(&scratch.0).output();
    let output = output.expect("bash");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().collect::<Vec<_>>(), ["tune", "--counters", "verify"], "{output:?}");
}

#[test]
fn a_manual_page_for_each_command() {
    let scratch = Scratch::new("man");
    let output = scratch.rtc(&["man", "-o", "pages/man1"]);
    assert!(output.status.success(), "{output:?}");
    let paths = String::from_utf8(output.stdout).unwrap();
    let mut expected: Vec<String> = commands(&scratch).iter().map(|name| format!("pages/man1/rtc-{name}.1")).collect();
    expected.extend(["list", "verify", "clear"].map(|name| format!("pages/man1/rtc-cache-{name}.1")));
    expected.push("pages/man1/rtc.1".into());
    let mut written: Vec<&str> = paths.lines().collect();
    expected.sort();
    written.sort_unstable();
    assert_eq!(written, expected);
    for path in written {
        let page = std::fs::read_to_string(scratch.0.join(path)).unwrap();
        assert!(page.contains(".TH rtc") && page.contains(".SH SYNOPSIS"), "{path}: {page}");
    }
    let page = String::from_utf8(scratch.rtc(&["man", "cache", "list"]).stdout).unwrap();
    assert_eq!(page, std::fs::read_to_string(scratch.0.join("pages/man1/rtc-cache-list.1")).unwrap());
    let page = String::from_utf8(scratch.rtc(&["man"]).stdout).unwrap();
    assert!(page.contains("rtc\\-tune(1)") && !page.contains("embed"), "{page}");
    assert!(scratch.fails(2, &["man", "tnue"]).contains("`rtc` has no command `tnue`; it has build, "));
    assert!(scratch.fails(2, &["man", "tune", "x"]).contains("`rtc-tune` has no command `x`"));
}
