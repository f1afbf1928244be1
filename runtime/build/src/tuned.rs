//! The results of `rtc tune -o tuned.json` as specializations: for each key that was tuned the fastest configuration.

use crate::{Error, error};
use rtc_abi::spec::{ArgKind, ArgSpec, ConstValue};
use rtc_abi::tuning::Choice;
use rtc_compiler::{DType, Signature, Spec, ValueType, const_from_json};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// The version of the format that is read.
const VERSION: u32 = 1;

/// What is read of a `tuned.json`; `rtc-tune` says what stands in it.
#[derive(Deserialize)]
struct File {
    version: u32,
    entries: Vec<Entry>,
}

/// The results for one kernel, device and key.
#[derive(Clone, Deserialize)]
pub(crate) struct Entry {
    kernel: String,
    device: String,
    pub(crate) arch: String,
    signature: String,
    key: Map<String, Value>,
    winner: Setting,
}

#[derive(Clone, Deserialize)]
struct Setting {
    values: Map<String, Value>,
    options: Map<String, Value>,
    #[serde(default)]
    blocks: Map<String, Value>,
}

/// A configuration and when it is taken.
pub(crate) struct Tuned {
    /// The target that it was timed on.
    pub(crate) arch: String,
    /// What must hold of the integer arguments.
    pub(crate) condition: String,
    /// The parameters that the winner sets.
    pub(crate) sets: Vec<String>,
    pub(crate) spec: Spec,
}

/// The entries of a file for a kernel.
pub(crate) fn read(file: &Path, kernel: &str) -> Result<Vec<Entry>, Error> {
    println!("cargo::rerun-if-changed={}", file.display());
    let of = |what: String| error(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|e| of(format!("cannot be read: {e}")))?;
    let read: File = serde_json::from_str(&text).map_err(|e| of(format!("is no file of `rtc tune`: {e}")))?;
    if read.version != VERSION {
        return Err(of(format!("version {} cannot be read; this one is {VERSION}", read.version)));
    }
    let entries: Vec<Entry> = read.entries.into_iter().filter(|entry| entry.kernel == kernel).collect();
    match entries.is_empty() {
        true => Err(of(format!("there are no results for the kernel `{kernel}` in it"))),
        false => Ok(entries),
    }
}

impl Entry {
    /// The configuration for a case of an instance; nothing if it was tuned for other types or constants. `general` may lack
    /// parameters that the configuration sets.
    pub(crate) fn for_case(&self, general: &Spec, params: &[&str]) -> Result<Option<Tuned>, Error> {
        let of = |what: String| error(format!("tuning results of `{}` on {}: {what}", self.kernel, self.device));
        let choice = self.choice().ok_or_else(|| of("the winner cannot be read".into()))?;
        let tuned = self.args(params).map_err(of)?;
        let mut spec = general.clone();
        for arg in &mut spec.args {
            let Some(other) = tuned.iter().find(|other| other.name == arg.name) else { continue };
            match sharpened(&arg.kind, &other.kind) {
                Some(kind) => arg.kind = kind,
                None => return Ok(None),
            }
        }
        choice.apply(&mut spec.args, &mut spec.options);
        let sets = choice.values.iter().map(|(name, _)| name.clone()).collect();
        let mut condition = Vec::new();
        for (name, value) in &self.key {
            let arg = spec.args.iter().find(|arg| arg.name == *name).map(|arg| &arg.kind);
            match (arg, value) {
                // The types of tensors, which were compared above where the signature says them.
                (Some(ArgKind::Value { ty: ValueType::Pointer { pointee, .. }, .. }), Value::String(dtype)) => {
                    if DType::parse(dtype) != Some(*pointee) {
                        return Ok(None);
                    }
                }
                (Some(ArgKind::Descriptor { element, .. }), Value::String(dtype)) => {
                    if DType::parse(dtype) != Some(*element) {
                        return Ok(None);
                    }
                }
                (Some(ArgKind::Constexpr(own)), value) => {
                    if const_from_json(value).ok().as_ref() != Some(own) {
                        return Ok(None);
                    }
                    // A promise of 1 is a condition of its own.
                    let is_argument =
                        general.args.iter().any(|arg| arg.name == *name && matches!(arg.kind, ArgKind::Value { .. }));
                    if let (true, Value::Number(number)) = (is_argument, value) {
                        condition.push(format!("{name} == {number}"));
                    }
                }
                (Some(ArgKind::Value { .. }), Value::Number(number)) if number.is_i64() => {
                    condition.push(format!("{name} == {number}"));
                }
                (Some(_), value) => {
                    return Err(of(format!("the key has {name} = {value}, which no launch can compare")));
                }
                // No argument of this instance.
                (None, _) => {}
            }
        }
        let condition = if condition.is_empty() { "0 == 0".to_owned() } else { condition.join(" && ") };
        Ok(Some(Tuned { arch: self.arch.clone(), condition, sets, spec }))
    }

    /// What the winner sets, for a signature that leaves it out.
    pub(crate) fn choice(&self) -> Option<Choice> {
        let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
        let values = self.winner.values.iter().map(|(name, value)| Some((name.clone(), const_from_json(value).ok()?)));
        let options = self.winner.options.iter().map(|(name, value)| Some((name.clone(), number(value)?)));
        let sizes = |value: &Value| value.as_array()?.iter().map(number).collect::<Option<Vec<u32>>>();
        let blocks = self.winner.blocks.iter().map(|(name, value)| Some((name.clone(), sizes(value)?)));
        Some(Choice {
            values: values.collect::<Option<_>>()?,
            options: options.collect::<Option<_>>()?,
            blocks: blocks.collect::<Option<_>>()?,
            ..Choice::default()
        })
    }

    /// The arguments that it was tuned for. After them stand the options, in braces.
    fn args(&self, params: &[&str]) -> Result<Vec<ArgSpec>, String> {
        let text = self.signature.rsplit_once(" {").map_or(self.signature.as_str(), |(args, _)| args);
        Signature::parse(text).and_then(|s| s.bind(params)).map_err(|e| format!("its signature `{text}`: {e}"))
    }
}

/// An argument with the promises that the tuned one had; nothing if it is another type or value.
fn sharpened(general: &ArgKind, tuned: &ArgKind) -> Option<ArgKind> {
    match (general, tuned) {
        (ArgKind::Value { ty, divisible_by }, ArgKind::Value { ty: other, divisible_by: more }) if ty == other => {
            Some(ArgKind::Value { ty: *ty, divisible_by: (*more).max(*divisible_by) })
        }
        (ArgKind::Value { ty: ValueType::Scalar(dtype), .. }, ArgKind::Constexpr(ConstValue::Int(1)))
            if dtype.is_integer() =>
        {
            Some(tuned.clone())
        }
        (ArgKind::Descriptor { element, .. }, ArgKind::Descriptor { element: other, .. }) if element == other => {
            Some(general.clone())
        }
        (general, tuned) => (general == tuned).then(|| general.clone()),
    }
}
