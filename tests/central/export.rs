//! Writes kernels with their PTX, their inputs and the expected results to files, for `tests/central/on_gpu.py`.
//!
//! `RTC_CENTRAL_EXPORT=FOLDER` enables it: one file for each kernel in the kernel language. Inputs are written as rules
//! if a seed determines them; results are written as a digest.

use std::cell::RefCell;

use rtc_ir::Scalar;
use serde_json::{Value, json};

use crate::case::{Argument, Case};
use crate::data::elements;
use crate::{language, planted, written};

thread_local! {
    static FORMS: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static RESULTS: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

/// Whether kernels are exported.
pub fn is_asked() -> bool {
    std::env::var_os("RTC_CENTRAL_EXPORT").is_some()
}

/// Keeps a form of the kernel in hand.
pub fn form(form: Value) {
    FORMS.with_borrow_mut(|forms| forms.push(form));
}

/// Keeps what a set of inputs must give.
pub fn results(case: &Case, tensors: &[Vec<u8>]) {
    let scalars = case.args.iter().filter_map(|(_, arg)| match arg {
        Argument::Tensor { scalar, .. } => Some(*scalar),
        _ => None,
    });
    let digests: Vec<String> =
        scalars.zip(tensors).map(|(scalar, bytes)| format!("{:016x}", digest(scalar, bytes))).collect();
    RESULTS.with_borrow_mut(|results| results.push(json!(digests)));
}

/// Writes the recorded kernels, with the sources of each set of inputs.
pub fn write(seed: u64, cases: &[String]) {
    let (forms, results) = (FORMS.take(), RESULTS.take());
    let Some(folder) = std::env::var_os("RTC_CENTRAL_EXPORT") else { return };
    let path = std::path::Path::new(&folder).join(format!("{seed}.json"));
    let source =
        cases.first().map_or("", |case| case.split_once("@triton.jit\ndef kernel").map_or("", |(_, rest)| rest));
    let args = |case: &String| -> Vec<String> {
        case.lines().filter_map(|line| line.strip_prefix("# arg ")).map(str::to_string).collect()
    };
    let header: Vec<&str> = cases.first().map_or(Vec::new(), |case| {
        case.lines().filter_map(|line| line.strip_prefix("# ")).filter(|line| !line.starts_with("arg")).collect()
    });
    let sets: Vec<Value> = cases.iter().zip(results).map(|(case, tensors)| json!([args(case), tensors])).collect();
    // Contents with special numbers are written out, as they are for the first set.
    let mut special = serde_json::Map::new();
    let part = cases.first().and_then(|case| language::split(case).pop());
    for (name, arg) in part.and_then(|part| language::arguments(&part).ok()).unwrap_or_default() {
        let is_special = |line: &&str| line.starts_with(&format!("# arg {name} = ")) && line.contains(" special ");
        if let (Argument::Tensor { bytes, .. }, true) =
            (&arg, cases.iter().take(1).flat_map(|c| c.lines()).any(|l| is_special(&l)))
        {
            special.insert(name, json!(bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()));
        }
    }
    let all = json!({
        "seed": seed, "header": header, "prelude": written::PRELUDE, "special": special, "source": format!("@triton.jit\ndef kernel{source}"), "forms": forms, "sets": sets,
    });
    if let Err(e) = std::fs::write(&path, all.to_string()) {
        eprintln!("{}: {e}", path.display());
    }
}

/// Writes a planted mistake, with the reports that it must get.
pub fn write_planted(name: &str, part: &language::Part) {
    let (forms, _) = (FORMS.take(), RESULTS.take());
    let Some(folder) = std::env::var_os("RTC_CENTRAL_EXPORT") else { return };
    let codes =
        part.source.lines().filter_map(|line| line.split_once(planted::MARK)).map(|(_, codes)| codes.to_string());
    let tensors: Vec<Value> = language::arguments(part)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(name, arg)| match arg {
            Argument::Tensor { bytes, written, .. } => {
                let text: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                Some(json!([name, bytes.len(), if written { Value::from(text) } else { Value::Null }]))
            }
            _ => None,
        })
        .collect();
    let all = json!({ "name": name, "codes": codes.collect::<Vec<_>>(), "tensors": tensors, "forms": forms });
    let path = std::path::Path::new(&folder).join(format!("{name}.json"));
    if let Err(e) = std::fs::write(&path, all.to_string()) {
        eprintln!("{}: {e}", path.display());
    }
}

/// A number that depends on every element and its place; all NaN count as one.
pub fn digest(scalar: Scalar, bytes: &[u8]) -> u64 {
    let top = 1u64 << (scalar.bits() - 1);
    let infinity = match scalar {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F32 => 0x7f80_0000,
        Scalar::F64 => 0x7ff0 << 48,
        _ => u64::MAX,
    };
    let one = |bits: u64| if scalar.is_float() && bits & (top - 1) > infinity { top - 1 } else { bits };
    elements(scalar, bytes).zip(1u64..).fold(0, |sum: u64, (bits, place)| {
        let mut z = one(bits) ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        sum.wrapping_add(z ^ (z >> 31))
    })
}
