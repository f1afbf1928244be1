//! Configurations in decorators: each `tests/filetests/tuning/NAME.rt` of the workspace has a function `kernel`, and
//! its snapshot has the configurations, or the findings of the files `refused_NAME.rt`. The first line gives the
//! arguments of the launch: `# args: x=fp32[4096], n=1000, d=desc fp16`.

use rtc_abi::spec::ConstValue;
use rtc_abi::tuning::{HostValue, Tuning};
use rtc_abi::{DType, Target};
use rtc_sema::{ModuleAst, TargetInfo, tuning};
use rtc_source::{SourceMap, render};
use std::fs;
use std::path::{Path, PathBuf};

/// `x=fp32[4096, 128], n=1000, y=fp16`.
fn arguments(text: &str) -> Vec<(String, HostValue)> {
    let line = text.lines().next().and_then(|line| line.strip_prefix("# args:")).expect("the first line names them");
    let mut depth = 0;
    let separate = |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    };
    let entries: Vec<&str> = line.split(separate).collect();
    let value = |text: &str| match text.parse() {
        Ok(number) => HostValue::Value(ConstValue::Int(number)),
        Err(_) => {
            if let Some(dtype) = text.strip_prefix("desc ") {
                let dtype = DType::parse(dtype).expect("a dtype");
                return HostValue::Descriptor { dtype, shape: Some(vec![4096, 4096]), block_shape: vec![1, 1] };
            }
            let (dtype, sizes) = text.trim_end_matches(']').split_once('[').map_or((text, None), |(d, s)| (d, Some(s)));
            let shape = sizes.map(|s| s.split(',').map(|n| n.trim().parse().expect("a size")).collect());
            HostValue::Tensor { dtype: DType::parse(dtype).expect("a dtype"), shape }
        }
    };
    let named = entries.iter().map(|entry| entry.trim().split_once('=').expect("a name and a value"));
    named.map(|(name, text)| (name.to_owned(), value(text))).collect()
}

fn read(name: &str, text: &str, args: Option<&[(String, HostValue)]>) -> Result<Tuning, String> {
    let mut sources = SourceMap::new();
    let file = sources.add(name, text);
    let (ast, syntax) = rtc_syntax::parse(file, text);
    assert!(syntax.is_empty(), "{name}: {syntax:?}");
    let modules = [ModuleAst { name: "kernels", ast: &ast }];
    let target = TargetInfo { target: Target::of_capability(90).expect("it is known"), external_libdevice: false };
    tuning(&sources, &modules, "kernel", args, target)
        .map_err(|found| found.iter().map(|d| render(&sources, d, false)).collect::<Vec<_>>().join("\n"))
}

fn shown(tuning: &Tuning) -> String {
    let mut out = format!("{} of {} configurations\n", tuning.choices.len(), tuning.written);
    for choice in &tuning.choices {
        out += &choice.to_string();
        if !choice.zeroed.is_empty() {
            out += &format!(", zeroes {}", choice.zeroed.join(", "));
        }
        for (name, block) in &choice.blocks {
            out += &format!(", {name} by {block:?}");
        }
        out += &choice.expected.map_or(String::new(), |time| format!(", expected {time}"));
        out.push('\n');
    }
    let Tuning { key, reset_to_zero, restore_value, warmup, rep, .. } = tuning;
    out + &format!("key {key:?}, reset {reset_to_zero:?}, restore {restore_value:?}, warmup {warmup:?}, rep {rep:?}\n")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/tuning")
}

#[test]
fn every_file_gives_its_configurations() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder()).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|x| x == "rt"));
    paths.sort();
    assert!(paths.len() >= 12, "only {} files", paths.len());
    settings.bind(|| {
        for path in paths {
            let name = path.file_name().expect("files have names").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("the file is text");
            let result = read(&name, &text, Some(&arguments(&text)));
            assert_eq!(name.starts_with("refused_"), result.is_err(), "{name}: {result:?}");
            insta::assert_snapshot!(name, result.map_or_else(|findings| findings, |tuning| shown(&tuning)));
        }
    });
}

#[test]
fn without_a_launch_nothing_is_pruned_and_no_heuristic_computed() {
    let text = fs::read_to_string(folder().join("pruned.rt")).expect("the file is text");
    assert_eq!(read("pruned.rt", &text, None).expect("it can be read").choices.len(), 32);
    let text = fs::read_to_string(folder().join("heuristics.rt")).expect("the file is text");
    let tuning = read("heuristics.rt", &text, None).expect("it can be read");
    assert_eq!(tuning.choices[1].to_string(), "BLOCK=50 num_warps=8 num_stages=3 num_ctas=1");
}

#[test]
fn a_kernel_without_decorators_has_one_empty_configuration() {
    let tuning = read("k.rt", "@triton.jit\ndef kernel(x):\n    pass\n", Some(&[])).expect("it can be read");
    assert!(!tuning.is_tuned && tuning.choices.len() == 1 && tuning.choices[0].values.is_empty(), "{tuning:?}");
}
