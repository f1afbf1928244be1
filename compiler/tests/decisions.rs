//! The remarks of `-v` about loops: a decision for each loop of the source, with the promise or option that would change it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rtc_compiler::source::Diagnostic;
use rtc_compiler::source::json_fields::{self, Field};
use rtc_compiler::{Program, Signature, Silent, Source, Spec, Stage, TileKernel, analyse, decisions, emit, set_option};
use rtc_ir::regions;

/// A product of matrices whose strides are all arguments.
const PRODUCT: &str = "
@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, am, ak, bk, bn, cm, STEP):
    m = tl.program_id(0) * 64 + tl.arange(0, 64)
    n = tl.arange(0, 64)
    s = tl.zeros((64, 64), tl.float32)
    for i in range(0, K, STEP):
        k = i + tl.arange(0, 64)
        a = tl.load(a_ptr + m[:, None] * am + k[None, :] * ak, mask=k[None, :] < K, other=0.0)
        b = tl.load(b_ptr + k[:, None] * bk + n[None, :] * bn, mask=k[:, None] < K, other=0.0)
        s = tl.dot(a, b, s)
    tl.store(c_ptr + m[:, None] * cm + n[None, :], s.to(tl.float16))
";

/// Loops without products: rows, reductions, scalars, a `while`, loops in loops, what is written out.
const ROWS: &str = "
@triton.jit
def rows(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * stride
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    s = tl.sum(total, axis=0)
    i = 0
    while i * i < n:
        i += 1
    power = 1.0
    for _ in range(n):
        power = power * s + 1.0
    for _ in range(3):
        for j in range(n):
            power += tl.load(y_ptr + j)
    for unused in range(n):
        s += 1.0
    tl.store(y_ptr + tl.program_id(0), power + i)
";

/// A loop that writes what it reads, one with an address that follows from its product, one with other numbers beside the mask.
const ODD: &str = "
@triton.jit
def odd(p, q, n):
    r = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    s = tl.zeros((64, 64), tl.float32)
    for i in range(n):
        s = tl.dot(tl.load(p + r), tl.load(p + r + 4096), s)
        tl.store(p + r, s.to(tl.float16))
    t = 0
    for i in range(n):
        u = tl.dot(tl.load(q + r + t), tl.load(q + r))
        t = tl.max(u.to(tl.int32)) * 8
        s += u
    for i in tl.range(n, num_stages=1):
        s = tl.dot(tl.load(q + r + i * 8), tl.load(q + r), s)
    for i in range(n):
        s = tl.dot(tl.load(q + r + i * 8, mask=r < n, other=1.0), tl.load(q + r), s)
    tl.store(p + r, s.to(tl.float16))
";

/// Loops without products that ask for stages.
const ASKED: &str = "
@triton.jit
def asked(p, b, z, n, step):
    r = tl.arange(0, 128)
    s = tl.zeros([128], tl.float32)
    for i in tl.range(n, num_stages=4):
        s += tl.load(p + i * 128 + r) + tl.load(b + i * 128 + r)
    for i in tl.range(n, num_stages=4):
        s += tl.load(b + i * 128 + r)
    for i in tl.range(0, n, step, num_stages=4):
        s += tl.load(p + i * 128 + r)
    for i in tl.range(n, num_stages=4):
        tl.store(p + i * 128 + r, tl.load(p + i * 128 + r) + s)
    for i in tl.range(n, num_stages=2):
        s += tl.sum(tl.load(b + (i + r)[:, None] * 128 + r[None, :]).to(tl.float32), 1)
    tl.store(z + r, s)
";

/// Products of blocks that are too large for more than one slot, or for any.
const LARGE: &str = "
@triton.jit
def large(p, z, n, K):
    m = tl.arange(0, 128)
    k = tl.arange(0, K)
    s = tl.zeros((128, 128), tl.float32)
    for i in range(n):
        a = tl.load(p + m[:, None] * K + k[None, :] + i * 128 * K)
        b = tl.load(p + k[:, None] * 128 + m[None, :] + i * 128 * K)
        s = tl.dot(a, b, s)
    tl.store(z + m[:, None] * 128 + m[None, :], s)
";

/// Loops without products that ask for loads ahead: one whose loads can be, one with too much to load, one that writes what it
/// reads, one with a load in a branch, and one that asks for nothing.
const STAGED: &str = "
@triton.jit
def asked(p, q, n, STAGES: tl.constexpr):
    r = tl.arange(0, 1024)
    s = tl.zeros((1024,), tl.float32)
    for i in tl.range(n, num_stages=STAGES):
        s += tl.load(p + i * 1024 + r)
    large = tl.arange(0, 16384)
    for i in tl.range(n, num_stages=STAGES):
        s += tl.sum(tl.load(p + i * 16384 + large).reshape(16, 1024), axis=0)
    for i in tl.range(n, num_stages=STAGES):
        tl.store(q + r, tl.load(q + r + i) + s)
    for i in tl.range(n, num_stages=STAGES):
        if i % 3 == 1:
            s += tl.load(p + i * 1024 + r)
    for i in range(n):
        s += tl.load(p + i * 1024 + r)
    tl.store(q + r, s)
";

fn program(source: &str) -> Program {
    Program::parse(&[Source::new("k.rt", source)])
}

fn spec(program: &Program, signature: &str, options: &[(&str, &str)]) -> Spec {
    let names: Vec<String> = program.kernels()[0].params.iter().map(|param| param.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let args = Signature::parse(signature).unwrap().bind(&names).unwrap();
    let mut spec = Spec { args, ..Spec::default() };
    for (name, value) in options {
        with_option(&mut spec, name, value);
    }
    spec
}

fn with_option(spec: &mut Spec, name: &str, value: &str) {
    let json = json_fields::parse(value).or_else(|_| json_fields::parse(&format!("\"{value}\""))).unwrap();
    set_option(&mut spec.options, name, &Field::root(&json)).unwrap();
}

fn decided(program: &Program, spec: &Spec, arch: &str) -> Vec<Diagnostic> {
    decisions(program, &spec.specialize(program).unwrap(), arch).unwrap().loops
}

fn text(program: &Program, found: &[Diagnostic]) -> String {
    let mut text = String::new();
    for remark in found {
        let line = program.sources().position(remark.span()).line;
        writeln!(text, "line {line}: {}", remark.message).unwrap();
        remark.notes.iter().for_each(|note| writeln!(text, "    note: {note}").unwrap());
        remark.help.iter().for_each(|help| writeln!(text, "    help: {help}").unwrap());
    }
    text
}

/// A source, a signature, and options.
type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Those whose loops come out in all the ways that there are.
const CASES: &[Case] = &[
    (PRODUCT, "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 64", &[]),
    (PRODUCT, "*fp16, *fp16:16, *fp16:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 64", &[]),
    (PRODUCT, "*fp16:16, *fp16:16, *fp16:16, i32, i32, 1, i32, 1, i32, 64", &[]),
    (PRODUCT, "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32, i32, 64", &[]),
    (PRODUCT, "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 64", &[("num_stages", "1")]),
    (PRODUCT, "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 64", &[("structure", "plain")]),
    (PRODUCT, "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 64", &[("num_warps", "2")]),
    (PRODUCT, "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, 1, i32:16, 1, i32:16, i32", &[]),
    (PRODUCT, "*fp32:16, *fp32:16, *fp16:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 64", &[]),
    (ROWS, "*fp32, *fp32, i32, i32, 1024", &[]),
    (ROWS, "*fp32:16, *fp32, i32:16, i32:16, 1024", &[]),
    (ODD, "*fp16:16, *fp16:16, i32", &[]),
    (ASKED, "*fp32:16, *i8:16, *fp32:16, i32, i32", &[("num_warps", "1")]),
    (LARGE, "*fp16:16, *fp32:16, i32, 128", &[]),
    (LARGE, "*fp16:16, *fp32:16, i32, 256", &[]),
    (LARGE, "*fp16:16, *fp32:16, i32, 512", &[]),
    // A product in flight and a second barrier; all copies before the loop; one iteration.
    (LARGE, "*fp16:16, *fp32:16, i32, 64", &[("structure", "pipelined")]),
    (LARGE, "*fp16:16, *fp32:16, 2, 64", &[("structure", "pipelined")]),
    (LARGE, "*fp16:16, *fp32:16, 1, 64", &[("structure", "pipelined")]),
    (STAGED, "*fp32:16, *fp32:16, i32, 3", &[]),
    (STAGED, "*fp32:16, *fp32:16, i32, 1", &[]),
    (STAGED, "*fp32:16, *fp32:16, i32, 3", &[("structure", "plain")]),
];

#[test]
fn every_kind_of_loop_is_told_of() {
    let mut out = String::new();
    for (source, signature, options) in CASES {
        let program = program(source);
        for arch in ["sm_80", "sm_90a"] {
            let found = decided(&program, &spec(&program, signature, options), arch);
            writeln!(out, "== {signature} {options:?} {arch}\n{}", text(&program, &found)).unwrap();
        }
    }
    insta::assert_snapshot!(out);
}

/// The suggestion of a help, applied: each of its alternatives as changes of arguments and options.
fn followed(spec: &Spec, help: &str) -> Vec<Spec> {
    let follow = |sentence: &str| {
        let (with, _) = sentence.split_once(" instead, ").unwrap();
        let (_, with) = with.rsplit_once("with ").unwrap();
        let quoted: Vec<&str> = with.split('`').skip(1).step_by(2).collect();
        let mut spec = spec.clone();
        let (mut changes, mut written) = (0, None);
        for word in quoted {
            if let Some((name, value)) = word.split_once('=') {
                with_option(&mut spec, name, value);
                changes += 1;
            } else if word == "1" || word.ends_with(":16") {
                written = Some(word);
            } else if let (Some(written), Some(arg)) = (written, spec.args.iter_mut().find(|arg| arg.name == word)) {
                arg.kind = Signature::parse(written).unwrap().bind(&[word]).unwrap().remove(0).kind;
                changes += 1;
            }
        }
        assert!(changes > 0, "{sentence}");
        spec
    };
    help.split("; or ").map(follow).collect()
}

/// A kernel that is given as tile IR is told of, too, in whatever phase it is.
#[test]
fn loops_of_tile_ir_are_told_of() {
    let program = program(PRODUCT);
    let spec = spec(&program, "*fp16, *fp16, *fp16:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 64", &[]);
    let specialization = spec.specialize(&program).unwrap();
    let said = |stage: Stage| {
        let text = emit(&program, &specialization, "sm_90a", stage, &mut Silent).unwrap();
        let kernel = TileKernel::parse("k.tir", &text).unwrap();
        let loops = kernel.decisions(&spec.options, "sm_90a").unwrap().loops;
        loops.into_iter().map(|remark| (remark.message, remark.help)).collect::<Vec<_>>()
    };
    let of_source = decided(&program, &spec, "sm_90a").remove(0);
    assert_eq!(said(Stage::Tile), [(of_source.message, of_source.help)]);
    let form = "its dots are MMAs already and stay unchanged";
    let past = "the kernel was given in a phase after the scheduling passes, so it is unchanged";
    for (stage, reason) in [(Stage::Laid, form), (Stage::Scheduled, past)] {
        let found = said(stage);
        assert!(
            found.len() == 1 && found[0].0.starts_with(&format!("the loop is not pipelined: {reason}")),
            "{found:?}"
        );
    }
}

/// Does what the help of a decision says, and compares what comes of it; how many alternatives there were.
fn follow(program: &Program, spec: &Spec, arch: &str, remark: &Diagnostic) -> usize {
    // Values in the source itself are changed there, and so is what keeps warps from being specialized.
    let is_tried = |help: &&String| !help.contains("of the loop") && !help.starts_with("to specialize them");
    let Some(help) = remark.help.as_ref().filter(is_tried) else { return 0 };
    let (all, sentences) = (followed(spec, help), help.split("; or "));
    for (changed, sentence) in all.iter().zip(sentences) {
        let after = decided(program, changed, arch);
        let same = after.iter().find(|other| other.span() == remark.span()).unwrap();
        assert_ne!(same.message, remark.message, "{arch}: {help}");
        let (_, change) = sentence.split_once(" instead, ").unwrap();
        let sign = match change.split(' ').next().unwrap() {
            "a" => "(TMA) are issued by a producer warp",
            "copies" => "pipelined: copies from ",
            "loads" => "pipelined: loads from ",
            // It reads as before, but more at a time.
            _ => change.rsplit_once('(').and_then(|(_, width)| width.split_once(')')).unwrap().0,
        };
        assert!(same.message.contains(sign), "{arch}: {help}\n{}", same.message);
    }
    all.len()
}

/// A promise that is named changes the decision if it is given.
#[test]
fn what_a_help_names_changes_the_decision() {
    let mut followed = 0;
    for (source, signature, options) in CASES {
        let program = program(source);
        let spec = spec(&program, signature, options);
        for arch in ["sm_80", "sm_90a"] {
            let found = decided(&program, &spec, arch);
            followed += found.iter().map(|remark| follow(&program, &spec, arch, remark)).sum::<usize>();
        }
    }
    assert!(followed > 10, "{followed}");
}

/// Of the loops that the source of each golden kernel has, each is told of once, and what would change the decision does.
#[test]
fn every_loop_of_the_golden_kernels_has_one_decision() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let entries = |path: &Path| -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    };
    let (mut seen, mut loops, mut helps) = (BTreeSet::new(), 0, 0);
    let source = |folder: &Path| {
        ["kernel.rt", "kernel.py"].map(|name| folder.join(name)).into_iter().find(|path| path.is_file())
    };
    for (folder, source) in entries(&root).into_iter().filter_map(|path| Some((path.clone(), source(&path)?))) {
        let text = std::fs::read_to_string(&source).unwrap();
        let program = Program::parse(&[Source::new(source.file_name().unwrap().to_string_lossy(), &text)]);
        for launch in entries(&folder).into_iter().filter(|path| path.to_string_lossy().ends_with(".launch.json")) {
            let json = json_fields::parse(&std::fs::read_to_string(&launch).unwrap()).unwrap();
            let spec = Spec::from_field(&Field::root(&json).required("spec").unwrap()).unwrap();
            let specialization = spec.specialize(&program).unwrap();
            for arch in ["sm_80", "sm_90a"] {
                if !seen.insert(format!("{folder:?} {arch} {specialization:?}")) {
                    continue;
                }
                let kernel = match analyse(&program, &specialization, arch, String::new(), &mut Silent) {
                    Ok(analysed) => analysed.kernel,
                    // Only the other target has the feature.
                    Err(_) => continue,
                };
                let is_loop = |op: &rtc_ir::Op| regions::is_loop(kernel.kind(*op));
                let places =
                    rtc_ir::walk(&kernel).into_iter().filter(is_loop).map(|op| kernel.loc(kernel.op(op).loc).span);
                let places: BTreeSet<_> = places.map(|span| span.map(|span| (span.start, span.end))).collect();
                let told = match decisions(&program, &specialization, arch) {
                    Ok(decided) => decided.loops,
                    Err(failure) => panic!("{launch:?} {arch}: {failure}"),
                };
                let of: Vec<_> = told.iter().map(|remark| Some((remark.span().start, remark.span().end))).collect();
                assert_eq!(of.len(), places.len(), "{launch:?} {arch}: {told:?}");
                assert!(of.iter().all(|place| places.contains(place)), "{launch:?}");
                assert!(told.iter().all(|remark| remark.message.starts_with("the loop is ")), "{told:?}");
                loops += of.len();
                helps += told.iter().map(|remark| follow(&program, &spec, arch, remark)).sum::<usize>();
            }
        }
    }
    assert!(loops > 50 && helps > 10, "{loops}, {helps}");
}
