//! The outlines of schedules: kernels in `tests/filetests/plans`, each with its snapshot beside it. The source is on top of it,
//! then the outline for each target.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use rtc_compiler::source::json_fields::{self, Field};
use rtc_compiler::{Program, Signature, Silent, Source, Spec, Stage, emit, set_option};

/// The most lines of an outline: a schedule that takes more is not understood at a glance.
const MOST_LINES: usize = 40;

#[test]
fn outlines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/filetests/plans");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "rt"));
    files.sort();
    assert!(files.len() >= 9, "only {} kernels", files.len());
    for path in files {
        let source = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut text = source.clone();
        for target in ["sm_80", "sm_90a"] {
            let outline = outline(&source, target);
            let lines = outline.lines().count();
            assert!(lines <= MOST_LINES, "{name}, {target}: {lines} lines\n{outline}");
            text.push_str(&format!("\n# {target}\n{outline}"));
        }
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&folder);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name.as_str(), text));
    }
}

fn outline(source: &str, target: &str) -> String {
    let value = |key: &str| source.lines().find_map(|line| line.strip_prefix(&format!("# {key}: ")));
    let program = Program::parse(&[Source::new("k.rt", source)]);
    let names: Vec<&str> = program.kernels()[0].params.iter().map(|param| param.name.as_str()).collect();
    let args = Signature::parse(value("signature").unwrap()).unwrap().bind(&names).unwrap();
    let mut spec = Spec { args, ..Spec::default() };
    for option in value("options").unwrap_or_default().split_whitespace() {
        let (name, value) = option.split_once('=').unwrap();
        set_option(&mut spec.options, name, &Field::root(&json_fields::parse(value).unwrap())).unwrap();
    }
    let specialization = spec.specialize(&program).unwrap();
    emit(&program, &specialization, target, Stage::Plan, &mut Silent).unwrap_or_else(|error| panic!("{error:?}"))
}
