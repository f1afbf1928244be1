//! Which specializations an instance stands for: the product of its types and values, each with what is declared beside it.

use crate::instance::{Choice, Instance, Special};
use crate::{Error, error, names, tuned};
use rtc_abi::spec::LaunchOptions;
use rtc_compiler::{ArgKind, ArgSpec, ConstValue, DType, Program, Signature, Spec, ValueType};

/// An instance may stand for so many compilations per target.
const MOST: usize = 256;

/// What chooses a case of an instance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// The name of the type, or of the constexpr.
    pub(crate) name: String,
    pub(crate) kind: AxisKind,
    /// What may be chosen, as Rust writes it.
    pub(crate) options: Vec<String>,
    /// The same as the signature has it.
    pub(crate) texts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AxisKind {
    Type,
    Int,
    Bool,
    Enum,
}

/// One choice along every axis, with its specializations; the general one is last.
pub(crate) struct Case {
    pub(crate) picks: Vec<usize>,
    pub(crate) specs: Vec<Wanted>,
}

/// One specialization.
pub(crate) struct Wanted {
    /// A condition on the integer arguments.
    pub(crate) condition: Option<String>,
    /// The target that it is for alone.
    pub(crate) arch: Option<String>,
    /// The parameters that a tuning has set.
    pub(crate) sets: Vec<String>,
    pub(crate) spec: Spec,
}

/// The axes of an instance, and its cases.
pub(crate) fn expand(program: &Program, instance: &Instance) -> Result<(Vec<Axis>, Vec<Case>), Error> {
    let of = |message: String| error(format!("kernel `{}`: {message}", instance.kernel));
    let info = program.kernel(Some(&instance.kernel)).map_err(|f| error(f.to_string()))?;
    let params: Vec<&str> = info.params.iter().map(|p| p.name.as_str()).collect();
    let types = instance.types.iter().map(|choice| type_axis(instance, choice));
    let values = instance.values.iter().map(|choice| value_axis(choice, &params));
    let axes: Vec<Axis> = types.chain(values).collect::<Result<_, _>>().map_err(of)?;
    let count: usize = axes.iter().map(|axis| axis.options.len()).product();
    if count * (instance.specializations.len() + 1) > MOST {
        return Err(of(format!("{count} cases with their specializations are more than {MOST}; declare fewer")));
    }
    let mut tuned = Vec::new();
    for file in &instance.tuned {
        tuned.extend(tuned::read(file, &instance.kernel)?);
    }
    let mut cases = Vec::new();
    for number in 0..count {
        let mut rest = number;
        let picks: Vec<usize> = axes
            .iter()
            .map(|axis| {
                let pick = rest % axis.options.len();
                rest /= axis.options.len();
                pick
            })
            .collect();
        cases.push(case(instance, &params, &axes, picks, &tuned)?);
    }
    Ok((axes, cases))
}

fn case(
    instance: &Instance,
    params: &[&str],
    axes: &[Axis],
    picks: Vec<usize>,
    tuned: &[tuned::Entry],
) -> Result<Case, Error> {
    let of = |message: String| error(format!("kernel `{}`: {message}", instance.kernel));
    let mut signature = instance.signature.clone();
    let mut values = Vec::new();
    for (axis, pick) in axes.iter().zip(&picks) {
        match axis.kind {
            AxisKind::Type => signature = signature.replace(&format!("{{{}}}", axis.name), &axis.texts[*pick]),
            _ => values.push(format!("{}={}", axis.name, axis.texts[*pick])),
        }
    }
    let mut args = bound(&signature, params).map_err(of)?;
    for value in values {
        args.extend(bound(&value, params).map_err(of)?);
    }
    if let Some(twice) = args.iter().enumerate().find(|(i, a)| args[..*i].iter().any(|b| b.name == a.name)) {
        return Err(of(format!("`{}` has a value in the signature and others in `values`", twice.1.name)));
    }
    let mut general =
        Spec { kernel: Some(instance.kernel.clone()), args, options: instance.options.clone(), arch: None };
    let mut specs = Vec::new();
    for special in &instance.specializations {
        specs.push(specialized(&general, special, params).map_err(of)?);
    }
    let mut found: Vec<Wanted> = Vec::new();
    for entry in tuned {
        let Some(tuned::Tuned { arch, condition, sets, spec }) = entry.for_case(&general, params)? else { continue };
        // Of several devices of one target the first in the file.
        let is_known = |w: &Wanted| w.arch.as_ref() == Some(&arch) && w.condition.as_ref() == Some(&condition);
        if !found.iter().any(is_known) {
            found.push(Wanted { condition: Some(condition), arch: Some(arch), sets, spec });
        }
    }
    let fitting = tuned.iter().find(|entry| matches!(entry.for_case(&general, params), Ok(Some(_))));
    if let Some(first) = fitting.or(tuned.first()) {
        let choice = first.choice().unwrap_or_default();
        let left_out = choice.values.iter().any(|(name, _)| !general.args.iter().any(|arg| arg.name == *name));
        if left_out {
            let own = general.args.clone();
            choice.apply(&mut general.args, &mut general.options);
            for arg in &mut general.args {
                if let Some(own) =
                    own.iter().find(|own| own.name == arg.name && matches!(own.kind, ArgKind::Constexpr(_)))
                {
                    arg.kind = own.kind.clone();
                }
            }
        }
    }
    specs.extend(found);
    specs.push(Wanted { condition: None, arch: None, sets: Vec::new(), spec: general });
    Ok(Case { picks, specs })
}

fn bound(signature: &str, params: &[&str]) -> Result<Vec<ArgSpec>, String> {
    Signature::parse(signature).and_then(|s| s.bind(params)).map_err(|e| e.to_string())
}

/// The general form with what a specialization says beside it.
fn specialized(general: &Spec, special: &Special, params: &[&str]) -> Result<Wanted, String> {
    let mut spec = general.clone();
    for item in special.what.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let fail = |message: &str| format!("specialization `{}`: `{item}` {message}", special.what);
        if let Some((name, value)) = item.split_once('=') {
            let (name, value) = (name.trim(), value.trim());
            if option(&mut spec.options, name, value).ok_or_else(|| fail("is no number above 0"))? {
                continue;
            }
            if special.condition.is_none() {
                return Err(fail("is a value, which only `configure` gives"));
            }
            let given = bound(item, params)?;
            spec.args.retain(|arg| arg.name != name);
            spec.args.extend(given);
            continue;
        }
        let (name, factor) = item.split_once(':').ok_or_else(|| fail("is neither `name:16` nor `NAME=value`"))?;
        let factor: u32 = factor.trim().parse().ok().filter(|f| *f > 0).ok_or_else(|| fail("has no factor above 0"))?;
        let arg = spec.args.iter_mut().find(|arg| arg.name == name.trim());
        let arg = arg.ok_or_else(|| fail("names no argument of the signature"))?;
        match &mut arg.kind {
            ArgKind::Value { ty: ValueType::Scalar(dtype), .. } if factor == 1 && dtype.is_integer() => {
                arg.kind = ArgKind::Constexpr(ConstValue::Int(1));
            }
            ArgKind::Value { ty, divisible_by } if is_divisible(ty) && factor > 1 => *divisible_by = Some(factor),
            _ => return Err(fail("promises what only integers and pointers can keep")),
        }
    }
    Ok(Wanted { condition: special.condition.clone(), arch: None, sets: Vec::new(), spec })
}

fn is_divisible(ty: &ValueType) -> bool {
    match ty {
        ValueType::Pointer { .. } => true,
        ValueType::Scalar(dtype) => dtype.is_integer() && *dtype != DType::UInt1,
    }
}

/// Sets a launch option; false if it is none, `None` if it is one with a bad value.
fn option(options: &mut LaunchOptions, name: &str, value: &str) -> Option<bool> {
    let number = || value.parse::<u32>().ok().filter(|n| *n > 0);
    match name {
        "num_warps" => options.num_warps = number()?,
        "num_stages" => options.num_stages = number()?,
        "num_ctas" => options.num_ctas = number()?,
        "maxnreg" => options.maxnreg = Some(number()?),
        _ => return Some(false),
    }
    Some(true)
}

fn type_axis(instance: &Instance, choice: &Choice) -> Result<Axis, String> {
    let Choice { name, options } = choice;
    if !instance.signature.contains(&format!("{{{name}}}")) {
        return Err(format!("`{{{name}}}` does not stand in the signature"));
    }
    if options.is_empty() {
        return Err(format!("`types` names none for `{name}`"));
    }
    let rust = |text: &String| {
        let dtype = DType::parse(text).ok_or_else(|| format!("`{text}` is no element type"))?;
        names::element(dtype).map(String::from).ok_or_else(|| format!("Rust has no element type for `{text}`"))
    };
    let rust = options.iter().map(rust).collect::<Result<_, _>>()?;
    Ok(Axis { name: name.clone(), kind: AxisKind::Type, options: rust, texts: options.clone() })
}

fn value_axis(choice: &Choice, params: &[&str]) -> Result<Axis, String> {
    let Choice { name, options } = choice;
    if options.is_empty() {
        return Err(format!("`values` names none for `{name}`"));
    }
    let mut constants = Vec::new();
    for text in options {
        match bound(&format!("{name}={text}"), params)?.pop().map(|arg| arg.kind) {
            Some(ArgKind::Constexpr(value)) if !constants.contains(&value) => constants.push(value),
            Some(ArgKind::Constexpr(_)) => return Err(format!("`{name}={text}` is declared twice")),
            _ => return Err(format!("`{name}={text}` is a type, not a value")),
        }
    }
    let small = |value: &ConstValue| match value {
        ConstValue::Int(number) => i64::try_from(*number).ok().map(|n| n.to_string()),
        _ => None,
    };
    let truth = |value: &ConstValue| match value {
        ConstValue::Bool(value) => Some(value.to_string()),
        _ => None,
    };
    let all = |of: &dyn Fn(&ConstValue) -> Option<String>| constants.iter().map(of).collect::<Option<Vec<_>>>();
    let (kind, rust) = if let Some(rust) = all(&small) {
        (AxisKind::Int, rust)
    } else if let Some(rust) = all(&truth) {
        (AxisKind::Bool, rust)
    } else {
        (AxisKind::Enum, options.iter().map(|text| names::variant_name(text)).collect())
    };
    Ok(Axis { name: name.clone(), kind, options: rust, texts: options.clone() })
}

/// The parameters whose type is one of an axis: pointers to it.
pub(crate) fn params_of_type(instance: &Instance, axis: &Axis, params: &[&str]) -> Result<Vec<String>, Error> {
    let with = |text: &str| {
        let mut signature = instance.signature.replace(&format!("{{{}}}", axis.name), text);
        for other in &instance.types {
            signature = signature.replace(&format!("{{{}}}", other.name), &other.options[0]);
        }
        bound(&signature, params).map_err(error)
    };
    let differ = with("i8")?.into_iter().zip(with("fp32")?).filter(|(l, r)| l != r);
    differ
        .map(|(arg, _)| match arg.kind {
            ArgKind::Value { ty: ValueType::Pointer { .. }, .. } => Ok(arg.name),
            _ => Err(error(format!("`{}`: `{{{}}}` stands for what a pointer points to alone", arg.name, axis.name))),
        })
        .collect()
}
