//! `rtc run FILE.ptx`: PTX of any compiler. In place of our metadata, the text and LAUNCH.json provide the types of
//! parameters, and `.reqntid` or `spec.block` the size of a block.

use crate::arguments::RunArguments;
use crate::output;
use crate::problem::Problem;
use crate::report::Reporter;
use crate::results::Results;
use crate::run::{check, launch_problem, tensors_file, tensors_of};
use crate::{input, sanitize, trusted};
use rtc_abi::{Metadata, Param, ParamType, TensorMap, ValueType};
use rtc_ptx::module::{Function, Module};
use rtc_runtime::sanitize::Check;
use rtc_source::json_fields::{self, Field};
use rtc_source::{Code, SourceMap};
use rtc_testing::{Dtype, Error, LaunchFile, Tensors};
use serde_json::{Value, json};
use std::path::Path;

/// Whether a file is one of PTX, by its name.
pub(crate) fn is_ptx(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "ptx")
}

/// Launches an entry of a file; the outcome goes to `results`.
pub(crate) fn run(
    arguments: &RunArguments,
    launch_text: &str,
    reporter: &Reporter,
    results: &mut Results,
) -> Result<(), Problem> {
    if arguments.instrument.is_some() {
        return Err(Problem::Usage(
            "--instrument needs a source or a .tir file: records are added when a kernel is compiled".into(),
        ));
    }
    let in_launch = |message: String| Problem::file(Code::LAUNCH_FILE, &arguments.launch, message);
    let launch = LaunchFile::parse(launch_text).map_err(|e| in_launch(e.to_string()))?;
    let tensors = tensors_of(&arguments.launch, &launch)?;
    let golden = match &arguments.check {
        Some(path) => Some((path, tensors_file(path)?)),
        None => None,
    };
    let text = input::read_text(&arguments.file)?;
    let module = rtc_ptx::parse(&text).map_err(|e| Problem::file(Code::PTX, &arguments.file, e.to_string()))?;
    let (metadata, block) = metadata(&module, launch_text, &tensors).map_err(in_launch)?;

    if arguments.sanitize.is_some_and(|checks| checks.has(Check::Open)) {
        return Err(Problem::Usage("--sanitize open looks at the source of a kernel, which PTX does not have".into()));
    }
    let device = sanitize::device(arguments)?;
    if device.is_interpreter() {
        return Err(Problem::Usage("the interpreter runs tile IR; leave out --device, or take the emulator".into()));
    }
    let kernel = trusted::load_ptx(&device, &text, &metadata, block).map_err(|error| match error {
        // It was made of what the file says.
        rtc_runtime::Error::Metadata(error) => in_launch(error.to_string()),
        other => other.into(),
    })?;
    let outcome = launch.run(&trusted::in_bounds(&kernel), &tensors);
    for finding in kernel.take_findings() {
        reporter.warning(Code::FINDING, &finding.to_string());
    }
    let outcome = match outcome {
        Err(Error::Runtime(rtc_runtime::Error::Sanitizer(found))) => {
            return Err(sanitize::report(&found, &SourceMap::new(), reporter));
        }
        outcome => outcome.map_err(|error| launch_problem(&arguments.launch, error))?,
    };

    if let Some(path) = &arguments.output {
        output::write(path, &outcome.outputs.to_bytes()?)?;
    }
    let [x, y, z] = launch.grid(&metadata).map_err(|e| in_launch(e.to_string()))?;
    let (name, file) = (&metadata.symbol, arguments.file.display().to_string());
    results.add("kernel", &format!("{name} ({file})"), json!({"kernel": name, "file": file}))?;
    results.add("device", &device.to_string(), json!({"device": device.to_string()}))?;
    let text = format!("grid {x} x {y} x {z}, {} threads per block", by(block));
    results.add("launch", &text, json!({"grid": [x, y, z], "block": block}))?;
    if arguments.sanitize.is_some() {
        results.add("sanitizer", "nothing found", json!({"sanitizer": {"findings": 0}}))?;
    }
    if let Some(counters) = kernel.take_counters() {
        results.counters(&counters)?;
    }
    let first = outcome.elapsed.as_secs_f64() * 1e3;
    results.add("time", &format!("{first:.3} ms (first launch)"), json!({"first_milliseconds": first}))?;
    match golden {
        Some((path, golden)) => check(path, &golden, &outcome.outputs, arguments.tolerance, results),
        None => Ok(()),
    }
}

/// The information that a launch needs about an entry, with the threads of a block along each axis.
fn metadata(module: &Module, launch: &str, tensors: &Tensors) -> Result<(Metadata, [u32; 3]), String> {
    let json = json_fields::parse(launch).map_err(|e| e.to_string())?;
    let root = Field::root(&json);
    let spec = root.required("spec").map_err(|e| e.to_string())?;
    spec.only(&["kernel", "block", "shared"]).map_err(|e| e.to_string())?;
    let number = |name: &str| -> Result<Option<u32>, String> {
        let field = spec.optional(name).map_err(|e| e.to_string())?;
        field.map(|field| field.u32().map_err(|e| e.to_string())).transpose()
    };
    let wanted = match spec.optional("kernel").map_err(|e| e.to_string())? {
        Some(field) => Some(field.string().map_err(|e| e.to_string())?.to_owned()),
        None => None,
    };
    let entry = entry(module, wanted.as_deref())?;
    let sizes = |name: &str| entry.directive(name).map(|sizes| axes(sizes.iter().copied()));
    let given = spec.optional("block").map_err(|e| e.to_string())?.map(|field| block(&field)).transpose()?;
    let block = match (given, sizes("reqntid")) {
        (Some(block), Some(own)) if block != own => {
            return Err(format!("`spec.block`: `{}` asks for blocks of {} threads", entry.name, by(own)));
        }
        (Some(block), _) => block,
        (None, Some(own)) => own,
        (None, None) => return Err("`spec.block`: say how many threads a block has; the PTX does not".into()),
    };
    let cluster = sizes("reqnctapercluster").unwrap_or([1; 3]);
    if cluster[1..] != [1, 1] {
        return Err(format!(
            "`{}` has clusters of {} blocks; along x alone they are launched",
            entry.name,
            by(cluster)
        ));
    }
    let threads = block.into_iter().fold(1, u32::saturating_mul);
    let args = root.required("args").and_then(|field| field.members()).map_err(|e| e.to_string())?;
    if args.len() != entry.params.len() {
        let (given, taken) = (args.len(), entry.params.len());
        return Err(format!("`args`: `{}` takes {taken} arguments in its order, not {given}", entry.name));
    }
    let mut params = Vec::new();
    for ((name, field), variable) in args.iter().zip(&entry.params) {
        let ty = variable.ty.text();
        let refused = |what: &str| format!("`args.{name}`: the parameter is `.{ty}`, {what}");
        if !variable.dimensions.is_empty() {
            let is_map =
                ty == "b8" && variable.dimensions[..] == [Some(128)] && field.value().get("descriptor").is_some();
            if !is_map {
                return Err(refused("an array of it; of arrays 128 bytes are passed, as {\"descriptor\": ..}"));
            }
            params.push(
                tensor_map(name, &field.value()["descriptor"], tensors).map_err(|e| format!("`args.{name}`: {e}"))?,
            );
            continue;
        }
        params.push(Param::new(*name, ParamType::Value(type_of(ty, field.value(), tensors).map_err(|e| refused(&e))?)));
    }
    let target = module.target.first().cloned().unwrap_or_default();
    let metadata = Metadata {
        shared_bytes: number("shared")?.unwrap_or(0),
        cluster,
        compiler_version: env!("CARGO_PKG_VERSION").into(),
        ..Metadata::new(&entry.name, target, module.version.0 * 10 + module.version.1, threads, params)
    };
    Ok((metadata, block))
}

/// Sizes along x, y and z; those that are not said are 1.
fn axes(sizes: impl IntoIterator<Item = u32>) -> [u32; 3] {
    let mut axes = [1; 3];
    axes.iter_mut().zip(sizes).for_each(|(axis, size)| *axis = size);
    axes
}

/// Sizes in words: `128`, `16 x 8`.
fn by(sizes: [u32; 3]) -> String {
    let last = sizes.iter().rposition(|size| *size != 1).unwrap_or(0);
    sizes[..=last].iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
}

/// The threads of a block: a number, or up to three.
fn block(field: &Field<'_>) -> Result<[u32; 3], String> {
    let sizes = match field.value() {
        Value::Array(_) => field.items().and_then(|items| items.iter().map(Field::u32).collect::<Result<Vec<_>, _>>()),
        _ => field.u32().map(|threads| vec![threads]),
    };
    match sizes.map_err(|e| e.to_string())? {
        sizes if sizes.is_empty() || sizes.len() > 3 => Err("`spec.block`: expected 1 to 3 sizes".into()),
        sizes => Ok(axes(sizes)),
    }
}

/// A tensor map that LAUNCH.json describes completely.
fn tensor_map(name: &str, descriptor: &Value, tensors: &Tensors) -> Result<Param, String> {
    // The reader of LAUNCH.json has looked at all fields.
    let named = descriptor["tensor"].as_str().and_then(|name| tensors.get(name));
    let known = named.and_then(|tensor| ValueType::parse(pointer_to(tensor.dtype)?));
    let Some(ValueType::Pointer { pointee, .. }) = known else {
        return Err("there is no tensor of that name and a type that is known".into());
    };
    let sizes = descriptor["block_shape"].as_array().into_iter().flatten();
    let sizes = sizes.map(|size| size.as_u64().and_then(|size| u32::try_from(size).ok()));
    let block_shape = sizes.collect::<Option<Vec<u32>>>().ok_or("sizes in `block_shape` have at most 32 bits")?;
    let swizzle = descriptor["swizzle"].as_u64().unwrap_or(0) as u32;
    let map = TensorMap { dtype: pointee, block_shape: block_shape.clone(), swizzle, l2_promotion: 128, interleave: 0 };
    let param = Param::new(name, ParamType::Descriptor { element: pointee, block_shape });
    Ok(Param { tensor_map: Some(map), ..param })
}

/// The entry of that name, or the only one.
fn entry<'m>(module: &'m Module, name: Option<&str>) -> Result<&'m Function, String> {
    let entries: Vec<&Function> = module.functions.iter().filter(|f| f.entry && f.body.is_some()).collect();
    let names = || entries.iter().map(|f| format!("`{}`", f.name)).collect::<Vec<_>>().join(", ");
    match (name, &entries[..]) {
        (None, [only]) => Ok(only),
        (None, []) => Err("the file has no entry".into()),
        (None, _) => Err(format!("`spec.kernel`: say which of the entries: {}", names())),
        (Some(name), all) => all
            .iter()
            .find(|f| f.name == name)
            .copied()
            .ok_or_else(|| format!("`spec.kernel`: there is no entry `{name}`, but {}", names())),
    }
}

/// The type of a parameter, from its PTX type and the argument.
fn type_of(ptx: &str, value: &Value, tensors: &Tensors) -> Result<ValueType, String> {
    let is_float = value.as_f64().is_some() && !value.is_i64() && !value.is_u64();
    let name = match (ptx, value) {
        ("u64" | "b64" | "s64", Value::Object(_)) => {
            let tensor = value["tensor"].as_str().and_then(|name| tensors.get(name));
            tensor
                .and_then(|tensor| pointer_to(tensor.dtype))
                .ok_or("and there is no tensor of that name and a type that is known")?
        }
        ("u64" | "b64" | "s64", Value::Number(n)) if !is_float => {
            if n.is_i64() {
                "i64"
            } else {
                "u64"
            }
        }
        ("u32" | "b32" | "s32", Value::Number(n)) if !is_float => {
            if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) { "i32" } else { "u32" }
        }
        ("f32" | "b32", Value::Number(_)) => "fp32",
        ("f64" | "b64", Value::Number(_)) => "fp64",
        ("u16" | "s16" | "b16", Value::Number(n)) if !is_float => {
            if n.is_i64() {
                "i16"
            } else {
                "u16"
            }
        }
        ("b16" | "f16", Value::Number(_)) => "fp16",
        ("u8" | "s8" | "b8", Value::Number(n)) if !is_float => {
            if n.is_i64() {
                "i8"
            } else {
                "u8"
            }
        }
        ("u8" | "s8" | "b8", Value::Bool(_)) => "i1",
        _ => return Err("which does not take what is passed".into()),
    };
    ValueType::parse(name).ok_or_else(|| "whose type is not known".into())
}

/// The type of a pointer to a tensor's elements.
fn pointer_to(dtype: Dtype) -> Option<&'static str> {
    Some(match dtype {
        Dtype::BOOL => "*i1",
        Dtype::I8 => "*i8",
        Dtype::I16 => "*i16",
        Dtype::I32 => "*i32",
        Dtype::I64 => "*i64",
        Dtype::U8 => "*u8",
        Dtype::U16 => "*u16",
        Dtype::U32 => "*u32",
        Dtype::U64 => "*u64",
        Dtype::F8_E5M2 => "*fp8e5",
        Dtype::F8_E4M3 => "*fp8e4nv",
        Dtype::F16 => "*fp16",
        Dtype::BF16 => "*bf16",
        Dtype::F32 => "*fp32",
        Dtype::F64 => "*fp64",
        _ => return None,
    })
}
