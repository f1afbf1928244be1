//! `parse(print(m)) == m` over every PTX text that the emulator's tests execute, and errors of bad text.
#![allow(clippy::unwrap_used)]

use std::path::Path;

#[test]
fn printing_and_parsing_gives_the_same_module() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../emulator/tests");
    let mut seen = 0;
    for sub in ["llvm", "hand"] {
        for entry in std::fs::read_dir(folder.join(sub)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "ptx") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            if text.starts_with("//! error:") {
                continue;
            }
            let module = rtc_ptx::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let printed = rtc_ptx::print(&module);
            let again = rtc_ptx::parse(&printed).unwrap_or_else(|e| panic!("{}: {e}\n{printed}", path.display()));
            assert_eq!(again, module, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "no PTX files in {}", folder.display());
}

#[test]
fn what_the_table_does_not_list_is_an_error_with_its_line() {
    let cases = [
        ("frob.b32 %r1, %r2;", "unknown instruction `frob.b32`"),
        ("add.rn.f77 %r1, %r2, %r3;", "unknown modifier `.f77`"),
        ("add.ftz.rn.f32 %r1, %r2, %r3;", "not a known form"),
        ("add.f32 %r1, %r2;", "operands do not fit"),
        ("ld.global.b32 %r1, %r2;", "operands do not fit"),
        ("mov.b32 %r1, 0f12;", "expected a number"),
        ("mov.b32 %r1, ?;", "unexpected character"),
        (".frob 1;", "unknown directive"),
        ("@ .f32 %r1;", "expected a name"),
    ];
    for (line, message) in cases {
        let text = format!(".version 8.3\n.target sm_80\n.entry f()\n{{\n{line}\n}}\n");
        let error = rtc_ptx::parse(&text).unwrap_err();
        assert!(error.message.contains(message), "{line}: {error}");
        assert_eq!(error.line, 5, "{error}");
    }
    assert!(rtc_ptx::parse(".version 8.3\n.entry f() {").is_err());
    assert!(rtc_ptx::parse("/* open").is_err());
}
