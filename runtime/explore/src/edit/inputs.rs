//! Inputs for a kernel of which only the specialization is known: sizes that fit its blocks, and strides of dense tensors.

use rtc_abi::ValueType;
use rtc_abi::spec::{ArgKind, ConstValue};
use rtc_lsp::{Chosen, Origin, Session};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The size of a dimension: small, so that a run answers at once, and one block of most kernels.
const SIZES: std::ops::RangeInclusive<i128> = 16..=128;

/// The inputs that are proposed for a kernel.
#[derive(Debug, Serialize)]
pub(crate) struct Inputs {
    /// The specializations of the file.
    choices: Vec<String>,
    /// The one that the values are for.
    specialization: String,
    grid: String,
    values: Vec<InputValue>,
    /// What is wrong with the specialization.
    error: Option<String>,
}

/// A run-time argument.
#[derive(Debug, Serialize)]
struct InputValue {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    is_tensor: bool,
    /// The number of a scalar.
    value: String,
    /// Elements of a tensor; empty for as many as the kernel touches.
    elements: String,
    /// Content of a tensor.
    fill: &'static str,
}

/// The inputs for a specialization as a comment has it, or for the first one of the file.
pub(crate) fn inputs(session: &mut Session, file: &str, wanted: Option<&str>) -> Inputs {
    let all = session.chosen(file);
    let choices: Vec<String> = all.iter().map(|choice| choice.text.clone()).collect();
    let found = match wanted {
        Some(text) => session.choose(file, text).map(|found| (text.to_owned(), found)),
        None => match all.into_iter().next() {
            Some(first) => Ok((first.text.clone(), first)),
            None => Err("the file has no kernel".to_owned()),
        },
    };
    match found {
        Ok((specialization, chosen)) => {
            let launch = launch_file(&chosen.origin);
            let grid = launch.as_ref().and_then(grid).unwrap_or_else(|| "1".into());
            let mut values = values(&chosen);
            for value in values.iter_mut().filter(|value| !value.is_tensor) {
                if let Some(Value::Number(given)) = launch.as_ref().map(|launch| &launch["args"][&value.name]) {
                    value.value = given.to_string();
                }
            }
            Inputs { choices, specialization, grid, values, error: None }
        }
        Err(error) => Inputs {
            choices,
            specialization: wanted.unwrap_or_default().to_owned(),
            grid: "1".into(),
            values: Vec::new(),
            error: Some(error),
        },
    }
}

/// The launch file beside the source that the specialization is from.
fn launch_file(origin: &Origin) -> Option<Value> {
    let Origin::File(name) = origin else { return None };
    let path = Path::new(name);
    let found = std::fs::metadata(path).ok().filter(|data| data.is_file() && data.len() < 1 << 20)?;
    let text = found.is_file().then(|| std::fs::read_to_string(path).ok()).flatten()?;
    serde_json::from_str(&text).ok()
}

/// The grid of a launch file, as it is written in the page.
fn grid(launch: &Value) -> Option<String> {
    let sizes = launch["grid"].as_array()?.iter().map(|size| match size {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    Some(sizes.collect::<Vec<String>>().join(", "))
}

fn values(chosen: &Chosen) -> Vec<InputValue> {
    let args = &chosen.spec.args;
    let constants = args.iter().filter_map(|arg| match &arg.kind {
        ArgKind::Constexpr(ConstValue::Int(value)) if *value > 8 => Some(*value),
        _ => None,
    });
    let size = constants.max().unwrap_or(64).clamp(*SIZES.start(), *SIZES.end());
    let names: Vec<&str> = args.iter().map(|arg| arg.name.as_str()).collect();
    let mut values = Vec::new();
    for arg in args {
        let ArgKind::Value { ty, .. } = &arg.kind else { continue };
        let is_tensor = matches!(ty, ValueType::Pointer { .. });
        let value = match ty {
            ValueType::Pointer { .. } => String::new(),
            ValueType::Scalar(dtype) if !dtype.is_integer() => float(&arg.name).into(),
            ValueType::Scalar(_) => integer(&arg.name, &names, size).to_string(),
        };
        let ty = arg.kind.to_string();
        values.push(InputValue {
            name: arg.name.clone(),
            ty,
            is_tensor,
            value,
            elements: String::new(),
            fill: "random",
        });
    }
    values
}

fn float(name: &str) -> &'static str {
    let name = name.to_lowercase();
    if name.contains("eps") {
        "1e-5"
    } else if ["scale", "prob", "alpha", "lr"].iter().any(|word| name.contains(word)) || name == "p" {
        "0.5"
    } else {
        "1.0"
    }
}

/// An integer: a size, or a stride. Strides whose names differ in the last letter alone belong to one tensor, the last one
/// being that of its rows' elements.
fn integer(name: &str, names: &[&str], size: i128) -> i128 {
    let lower = name.to_lowercase();
    if !lower.contains("stride") {
        return if lower.contains("seed") { 1 } else { size };
    }
    let group = |name: &str| name.char_indices().next_back().map_or(String::new(), |(at, _)| name[..at].to_owned());
    let own = group(name);
    let members: BTreeSet<usize> = (0..names.len())
        .filter(|at| names[*at].to_lowercase().contains("stride") && group(names[*at]) == own)
        .collect();
    let after = members.iter().filter(|at| names[**at] != name).count();
    let place = members.iter().position(|at| names[*at] == name).unwrap_or(0);
    match after {
        // The only stride of a tensor is that of its rows.
        0 => size,
        _ => size.pow(u32::try_from(members.len() - 1 - place).unwrap_or(0).min(2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, wanted: Option<&str>) -> Inputs {
        let mut session = Session::new(Box::new(()));
        session.open("/k.py", text);
        inputs(&mut session, "/k.py", wanted)
    }

    const MATMUL: &str = "import triton\nimport triton.language as tl\n@triton.jit\n\
        def k(a, b, eps, M, stride_am, stride_ak, stride_row, BLOCK: tl.constexpr):\n    tl.store(b, tl.load(a))\n";

    #[test]
    fn sizes_fit_blocks_and_strides_are_dense() {
        let found = of(MATMUL, Some("k(*fp16, *fp16, fp32, i32, i32, i32, i32, 64)"));
        let values: Vec<(&str, &str)> = found.values.iter().map(|v| (v.name.as_str(), v.value.as_str())).collect();
        let expected = [
            ("a", ""),
            ("b", ""),
            ("eps", "1e-5"),
            ("M", "64"),
            ("stride_am", "64"),
            ("stride_ak", "1"),
            ("stride_row", "64"),
        ];
        assert_eq!(values, expected);
        assert!(found.error.is_none() && found.values[0].is_tensor && found.values[0].ty == "*fp16");
    }

    #[test]
    fn a_wrong_specialization_is_an_error() {
        for wrong in ["", "k", "k(", "other(i32)", "k(*fp17)", "k(*fp16) num_warps=x\n# rtc: k(*fp16)"] {
            assert!(of(MATMUL, Some(wrong)).error.is_some(), "{wrong}");
        }
        assert!(of("x = 1\n", None).error.is_some());
        assert!(of(MATMUL, None).specialization.starts_with("k("));
    }
}
