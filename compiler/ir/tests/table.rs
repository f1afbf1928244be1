//! Runs every operation whose row of the table defines its semantics: a kernel is built around each, with random
//! operands and attributes that its type rule accepts. The other operations have kernels in `tests/filetests/run/`, see
//! `filetests/run.rs`.

use rtc_abi::{DType, ParamType, ValueType};
use rtc_ir::interp::{ArgValue, HostMemory, LaunchConfig, RunOptions, run};
use rtc_ir::{
    AttrValue, Builder, Elem, Evaluate, Kernel, KernelOptions, OpKind, OpSpec, SPECS, Scalar, Type, print_errors,
    verify,
};

#[test]
fn every_element_wise_operation_is_run() {
    let each: Vec<&OpSpec> = SPECS.iter().filter(|spec| matches!(spec.eval, Evaluate::Each(_))).collect();
    assert!(each.len() > 60, "only {}", each.len());
    for spec in each {
        let kernel = kernel(spec).unwrap_or_else(|| panic!("`{}`: its type rule accepts nothing tried", spec.mnemonic));
        let verified = verify(&kernel).unwrap_or_else(|e| panic!("{}", print_errors(&kernel, &e)));
        let args = kernel.params.iter().map(|_| ArgValue::Bits(1)).collect();
        let launch = LaunchConfig { grid: [1; 3], args };
        let report = run(verified, &mut HostMemory::new(), &launch, &RunOptions::default());
        let report = report.unwrap_or_else(|fault| panic!("`{}`: {fault}", spec.mnemonic));
        assert_eq!(report.printed.lines().count(), 1, "`{}` has one result", spec.mnemonic);
    }
}

/// The scalar operands that are tried.
const ELEMS: [Elem; 7] = [
    Elem::Num(Scalar::I32),
    Elem::Num(Scalar::F32),
    Elem::Num(Scalar::I1),
    Elem::Num(Scalar::I64),
    Elem::Num(Scalar::F64),
    Elem::Num(Scalar::I16),
    Elem::Ptr(Scalar::I32),
];

/// A kernel that gives its parameters to the operation and prints the result: the first that its type rule accepts.
fn kernel(spec: &OpSpec) -> Option<Kernel> {
    let kinds = kinds(spec);
    assert!(!kinds.is_empty(), "`{}`: no attributes of {:?} fit", spec.mnemonic, spec.attr_types);
    kinds
        .iter()
        .find_map(|kind| ELEMS.iter().find_map(|first| ELEMS.iter().find_map(|rest| build(kind, spec, *first, *rest))))
}

fn build(kind: &OpKind, spec: &OpSpec, first: Elem, rest: Elem) -> Option<Kernel> {
    let mut kernel = Kernel::new("k", KernelOptions::default());
    let mut operands = Vec::new();
    for (i, name) in spec.operands.iter().enumerate() {
        let elem = if i == 0 { first } else { rest };
        operands.push(kernel.add_param(*name, Type::Scalar(elem), at_launch(elem), 1));
    }
    let body = kernel.body();
    let mut builder = Builder::at_end(&mut kernel, body);
    let op = builder.build(kind.clone(), &operands, &[], &[], &[], &[]).ok()?;
    let result = builder.kernel().result(op, 0);
    let print = OpKind::Print { prefix: "result".into(), hex: true, signed: vec![0] };
    builder.build(print, &[], &[], &[result], &[], &[]).expect("anything can be printed");
    builder.ret().expect("a body can end");
    Some(kernel)
}

/// The type of a parameter of one of [`ELEMS`] as the launcher sees it.
fn at_launch(elem: Elem) -> ParamType {
    match elem {
        Elem::Ptr(_) => ValueType::Pointer { pointee: DType::Int32, is_const: false }.into(),
        Elem::F32 => DType::Fp32.into(),
        Elem::F64 => DType::Fp64.into(),
        Elem::I1 => DType::UInt1.into(),
        Elem::I64 => DType::Int64.into(),
        Elem::Num(Scalar::I16) => DType::Int16.into(),
        _ => DType::Int32.into(),
    }
}

/// The operation with each choice of attributes that is tried.
fn kinds(spec: &OpSpec) -> Vec<OpKind> {
    let mut choices: Vec<Vec<(String, AttrValue)>> = vec![Vec::new()];
    for (name, ty) in spec.attrs.iter().zip(spec.attr_types) {
        let words: Vec<AttrValue> = match *ty {
            // Those have a default.
            "bool" | "Rounding" => continue,
            "Elem" => ELEMS.iter().map(|elem| AttrValue::Word(elem.to_string())).collect(),
            "Predicate" => vec![AttrValue::Word("lt".into())],
            "RoundingMode" => vec![AttrValue::Word("rz".into())],
            "HintKind" => vec![AttrValue::Word("multiple_of".into())],
            "Vec<u32>" => vec![AttrValue::List(vec![AttrValue::Int(1)])],
            other => panic!("`{}`: this test does not know what to give for {other}", spec.mnemonic),
        };
        choices = choices
            .iter()
            .flat_map(|chosen| {
                words.iter().map(|word| [&chosen[..], &[(name.to_string(), word.clone())]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    choices.iter().filter_map(|attrs| OpKind::from_attrs(spec.mnemonic, attrs).ok()).collect()
}
