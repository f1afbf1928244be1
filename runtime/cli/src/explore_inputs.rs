//! Inputs of a run of `rtc explore --serve --edit`: tensors as long as the kernel needs them, filled by a rule.

use rtc_abi::{DType, Elements, Extents, Metadata};
use rtc_floats::{BF16, E4M3, E5M2, F16, Round};
use rtc_testing::{Dtype, LaunchFile, Tensor, Tensors, dtype_of};
use serde_json::{Map, Value, json};

/// Elements of a tensor for which no length is proved.
const UNPROVED: u64 = 1 << 16;
/// Most bytes of all tensors.
const MAX_BYTES: u64 = 256 << 20;

/// A grid and values, as the page sends them.
#[derive(Debug)]
pub(crate) struct Inputs {
    grid: Vec<Value>,
    args: Vec<(String, Given)>,
}

#[derive(Debug)]
enum Given {
    Scalar(Value),
    /// Elements, or as many as needed; the rule.
    Tensor(Option<u64>, Fill),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fill {
    Random,
    Zeros,
    Ones,
    Counting,
    Nan,
}

impl Inputs {
    /// Reads `grid` and `values`.
    pub(crate) fn read(given: &Value) -> Result<Inputs, String> {
        let grid = given["grid"].as_str().unwrap_or("1");
        let size = |text: &str| text.parse::<u32>().map_or_else(|_| json!(text), |number| json!(number));
        let grid = split(grid).into_iter().map(size).collect();
        let mut args = Vec::new();
        for (name, value) in given["values"].as_object().unwrap_or(&Map::new()) {
            let text = |key: &str| value[key].as_str().unwrap_or_default().trim().to_owned();
            let given = if value["is_tensor"].as_bool() == Some(true) {
                let elements = match text("elements").as_str() {
                    "" => None,
                    count => Some(count.parse().map_err(|_| format!("`{name}`: `{count}` is no number of elements"))?),
                };
                Given::Tensor(elements, fill(&text("fill")).ok_or(format!("`{name}`: unknown content"))?)
            } else {
                Given::Scalar(scalar(&text("value")).ok_or(format!("`{name}`: `{}` is no number", text("value")))?)
            };
            args.push((name.clone(), given));
        }
        Ok(Inputs { grid, args })
    }

    /// The launch of a compiled kernel.
    pub(crate) fn launch(&self, metadata: &Metadata) -> Result<(LaunchFile, Tensors), String> {
        let mut args = Map::new();
        for (name, given) in &self.args {
            // A promise of the signature may have made a constant of the parameter.
            if !metadata.visible_params().iter().any(|param| param.name == *name) {
                continue;
            }
            let value = match given {
                Given::Scalar(value) => value.clone(),
                Given::Tensor(..) => json!({"tensor": name}),
            };
            args.insert(name.clone(), value);
        }
        let file = json!({"spec": {}, "grid": self.grid, "args": args, "tensors": "inputs"});
        let launch = LaunchFile::parse(&file.to_string()).map_err(|error| error.to_string())?;
        let grid = launch.grid(metadata).map_err(|error| error.to_string())?;
        let extents = Extents::new(metadata).map_err(|error| error.to_string())?;
        let params = metadata.visible_params();
        let number = |at: usize| args.get(&params.get(at)?.name)?.as_i64();
        let (mut tensors, mut bytes) = (Tensors::default(), 0);
        for (at, param) in params.iter().enumerate() {
            let given = self.args.iter().find(|(name, _)| *name == param.name);
            let (Some((name, Given::Tensor(elements, fill))), Some(dtype)) = (given, param.ty.pointee()) else {
                continue;
            };
            let needed = || match extents.elements(at, number, grid) {
                Elements::AtMost(count) => count.max(1),
                Elements::Unknown(_) => UNPROVED,
            };
            let count = elements.unwrap_or_else(needed);
            bytes += count.saturating_mul(dtype.bytes().into());
            if bytes > MAX_BYTES {
                return Err(format!(
                    "`{name}` has {count} elements; the tensors of a run have at most {} MiB in all",
                    MAX_BYTES >> 20
                ));
            }
            tensors.insert(name.clone(), filled(dtype, count, *fill)?);
        }
        Ok((launch, tensors))
    }
}

/// Parts between commas that are not in brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn scalar(text: &str) -> Option<Value> {
    match text {
        "True" | "true" => Some(true.into()),
        "False" | "false" => Some(false.into()),
        _ => match text.parse::<i64>() {
            Ok(number) => Some(number.into()),
            Err(_) => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
        },
    }
}

fn fill(name: &str) -> Option<Fill> {
    Some(match name {
        "random" | "" => Fill::Random,
        "zeros" => Fill::Zeros,
        "ones" => Fill::Ones,
        "counting" => Fill::Counting,
        "nan" => Fill::Nan,
        _ => return None,
    })
}

/// A tensor that is the same in every run.
fn filled(dtype: DType, count: u64, fill: Fill) -> Result<Tensor, String> {
    let is_float = !dtype.is_integer() && dtype != DType::UInt1;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut data = Vec::with_capacity((count * u64::from(dtype.bytes())) as usize);
    for at in 0..count {
        // The generator of Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let value = match fill {
            Fill::Random if is_float => (state >> 40) as f64 / f64::from(1 << 23) - 1.0,
            // Small, so that indices stay in range.
            Fill::Random => (state >> 61) as f64,
            Fill::Zeros => 0.0,
            Fill::Ones => 1.0,
            Fill::Counting => at as f64,
            Fill::Nan if is_float => f64::NAN,
            Fill::Nan => 0.0,
        };
        push(&mut data, dtype, value);
    }
    let shape = vec![usize::try_from(count).map_err(|_| "too many elements".to_owned())?];
    // Floats of 8 bits that the format does not have are bytes.
    Tensor::new(dtype_of(dtype).unwrap_or(Dtype::U8), shape, data).map_err(|error| error.to_string())
}

fn push(data: &mut Vec<u8>, dtype: DType, value: f64) {
    let narrow = |format: &rtc_floats::Format| format.narrow(value, Round::Nearest);
    match dtype {
        DType::UInt1 => data.push(u8::from(value as i64 % 2 != 0)),
        DType::Fp64 => data.extend(value.to_le_bytes()),
        DType::Fp32 => data.extend((value as f32).to_le_bytes()),
        DType::Fp16 => data.extend((narrow(&F16) as u16).to_le_bytes()),
        DType::Bf16 => data.extend((narrow(&BF16) as u16).to_le_bytes()),
        DType::Fp8E5 | DType::Fp8E5B16 => data.push(narrow(&E5M2) as u8),
        DType::Fp8E4Nv | DType::Fp8E4B15 | DType::Fp8E4B8 => data.push(narrow(&E4M3) as u8),
        _ => data.extend(&(value as i64).to_le_bytes()[..dtype.bytes() as usize]),
    }
}
