//! Facts about expressions, for editors: several values of one place, partial results of wrong kernels, unknown arguments.

use rtc_abi::Target;
use rtc_abi::spec::{ArgSpec, ConstValue, LaunchOptions, Specialization, ValueType};
use rtc_sema::{FactValue, Inspection, ModuleAst, Refers, TargetInfo, inspect_kernel};
use rtc_source::SourceMap;

const TEXT: &str = "\
@triton.jit
def double(v):
    return v + v

@triton.jit
def kernel(x, n, B: tl.constexpr):
    at = tl.arange(0, B)
    for i in tl.static_range(9):
        value = tl.load(x + at + i)
    whole = double(value)
    half = double(tl.sum(value, axis=0))
    wrong = value.nothing
    after = whole * 2
";

fn inspect(args: Vec<ArgSpec>) -> Inspection {
    let mut sources = SourceMap::new();
    let file = sources.add("k.rt", TEXT);
    let (ast, syntax) = rtc_syntax::parse(file, TEXT);
    assert!(syntax.is_empty(), "{syntax:?}");
    let spec = Specialization { kernel: "kernel".into(), args, options: LaunchOptions::default() };
    let target = TargetInfo { target: Target::of_capability(90).expect("it is known"), external_libdevice: false };
    inspect_kernel(&sources, &[ModuleAst { name: "k", ast: &ast }], &spec, target)
}

/// The values of the first place with that text, and whether there are more.
fn values(found: &Inspection, text: &str) -> (Vec<String>, bool) {
    let place = |start: u32, end: u32| &TEXT[start as usize..end as usize];
    let fact = found.facts.iter().find(|fact| place(fact.span.start, fact.span.end) == text);
    let Some(fact) = fact else { return (Vec::new(), false) };
    let shown = fact.values.iter().map(|value| match value {
        FactValue::Tensor { dtype, shape, ty } => format!("{dtype}{shape:?} {ty}"),
        FactValue::Constant(text) | FactValue::Other(text) => text.clone(),
    });
    (shown.collect(), fact.more)
}

fn pointer() -> ArgSpec {
    ArgSpec::value("x", ValueType::parse("*fp16").expect("a type"), None)
}

#[test]
fn places_have_values_also_behind_an_error() {
    let found = inspect(vec![
        pointer(),
        ArgSpec::value("n", ValueType::parse("i32").expect("a type"), None),
        ArgSpec::constexpr("B", ConstValue::Int(64)),
    ]);
    assert_eq!(found.diagnostics.len(), 1, "{:?}", found.diagnostics);
    assert!(found.kernel.is_none());
    assert_eq!(values(&found, "value"), (vec!["fp16[64] tile<64xf16>".into()], false));
    assert_eq!(values(&found, "after"), (vec!["fp16[64] tile<64xf16>".into()], false), "behind the error");
    assert_eq!(values(&found, "v"), (vec!["fp16[64] tile<64xf16>".into(), "fp16[] f16".into()], false), "two calls");
    assert_eq!(values(&found, "i"), (vec!["0".into(), "1".into(), "2".into(), "3".into()], true), "an unrolled loop");
    let refers = |text: &str| {
        let fact = found.facts.iter().find(|f| &TEXT[f.span.start as usize..f.span.end as usize] == text);
        fact.and_then(|fact| fact.refers.clone())
    };
    assert_eq!(refers("tl.arange"), Some(Refers::Entry("tl", "arange".into())));
    let Some(Refers::Definition(span)) = refers("double") else { panic!("{:?}", refers("double")) };
    assert_eq!((span.start, span.end), (16, 22));
}

#[test]
fn what_depends_on_an_unknown_argument_is_passed_over() {
    let found = inspect(vec![pointer()]);
    assert_eq!(found.diagnostics, Vec::new());
    assert!(found.kernel.is_none(), "a part of it is missing");
    assert_eq!(values(&found, "x"), (vec!["pointer<fp16>[] ptr<f16>".into()], false));
    assert_eq!(values(&found, "value"), (Vec::new(), false));
}
