//! Every reason why warps are not specialized, or atomics are no TMA reductions, has a kernel in `tests/filetests/refusals`
//! that it is given for, and one in which the change that its help names has been made.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use rtc_compiler::source::Diagnostic;
use rtc_compiler::source::json_fields::{self, Field};
use rtc_compiler::{Program, Signature, Silent, Source, Spec, Specialization, compile, decisions, set_option};
use rtc_passes::Refusal;

/// Reasons for which no kernel in the language is known, each with the cause.
const OUT_OF_REACH: &[(Refusal, &str)] = &[(
    Refusal::AtomicSign,
    "only maps that the kernel makes can differ so, and for those outside of partitions the base pointer is the reason",
)];

/// A kernel of a file, and how it is compiled.
struct Case {
    /// After `# ====`: `refused` or `changed`.
    name: String,
    signature: String,
    options: Vec<(String, String)>,
    source: String,
}

/// What is reported of a kernel.
struct Found {
    /// The codes of refusals.
    codes: BTreeSet<String>,
    /// All of it.
    text: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/filetests/refusals")
}

fn cases(text: &str) -> Vec<Case> {
    text.split("# ==== ").skip(1).map(case).collect()
}

fn case(text: &str) -> Case {
    let (name, rest) = text.split_once('\n').unwrap();
    let value = |key: &str| {
        let line = rest.lines().find_map(|line| line.strip_prefix(&format!("# {key}: ")));
        line.map(|line| line.trim().to_owned())
    };
    let options = value("options").unwrap_or_default();
    let options = options.split_whitespace().map(|option| option.split_once('=').unwrap());
    Case {
        name: name.trim().to_owned(),
        signature: value("signature").unwrap_or_else(|| panic!("`{name}` has no signature")),
        options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        source: rest.to_owned(),
    }
}

fn specialization(program: &Program, case: &Case) -> Specialization {
    let names: Vec<&str> = program.kernels()[0].params.iter().map(|param| param.name.as_str()).collect();
    let args = Signature::parse(&case.signature).unwrap().bind(&names).unwrap();
    let mut spec = Spec { args, ..Spec::default() };
    for (name, value) in &case.options {
        set_option(&mut spec.options, name, &Field::root(&json_fields::parse(value).unwrap())).unwrap();
    }
    spec.specialize(program).unwrap_or_else(|error| panic!("{}: {error:?}", case.source))
}

/// The remarks about the loops of a kernel and, if it has atomic operations, about those.
fn found(case: &Case) -> Found {
    let program = Program::parse(&[Source::new("k.rt", &case.source)]);
    let specialization = specialization(&program, case);
    let failed = |error: &dyn fmt::Debug| -> ! { panic!("{}: {error:?}", case.source) };
    let mut all: Vec<Diagnostic> =
        decisions(&program, &specialization, "sm_90a").unwrap_or_else(|error| failed(&error)).loops;
    if case.source.contains("atomic") {
        let compiled = compile(&program, &specialization, "sm_90a", String::new(), &mut Silent);
        all.extend(compiled.unwrap_or_else(|error| failed(&error)).warnings);
    }
    let lines = all.into_iter().flat_map(|remark| {
        let help = remark.help.iter().map(|help| format!("help: {help}")).collect();
        [vec![remark.message.clone()], remark.notes.clone(), help].concat()
    });
    let lines: Vec<String> = lines.collect();
    let code = |line: &String| {
        let (_, code) = line.strip_suffix(']')?.rsplit_once('[')?;
        Some(code.to_owned())
    };
    Found { codes: lines.iter().filter_map(code).collect(), text: lines.join("\n    ") }
}

/// The mistake in a file, if there is one.
fn mistake(code: &str, text: &str) -> Option<String> {
    let cases = cases(text);
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let is_known = names.first() == Some(&"refused") && names.iter().all(|name| ["refused", "changed"].contains(name));
    assert!(is_known, "{code}: {names:?}");
    for case in &cases {
        let found = found(case);
        let is_right = if case.name == "refused" {
            found.codes.iter().eq([code])
        } else {
            let is_done = found.text.contains("are specialized") || found.text.contains("a TMA reduction combines");
            found.codes.is_empty() && is_done
        };
        if !is_right {
            return Some(format!("{code}, {}:\n    {found}", case.name));
        }
    }
    None
}

#[test]
fn every_refusal_is_given_for_a_kernel_and_gone_with_the_change() {
    let mut without: BTreeSet<&str> = Refusal::ALL.iter().map(|refusal| refusal.code()).collect();
    let mut mistakes = Vec::new();
    let mut changed = 0;
    let mut files: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for path in files {
        let code = path.file_stem().unwrap().to_str().unwrap();
        assert!(without.remove(code), "`{code}` is no code of a refusal");
        let text = fs::read_to_string(&path).unwrap();
        changed += usize::from(text.contains("# ==== changed"));
        mistakes.extend(mistake(code, &text));
    }
    for (refusal, cause) in OUT_OF_REACH {
        assert!(without.remove(refusal.code()) && !cause.is_empty(), "`{}` has a kernel", refusal.code());
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(without.is_empty(), "no kernel for {without:?}");
    assert!(changed >= 40, "{changed}");
}
