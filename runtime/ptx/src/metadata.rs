//! Metadata of a compiled kernel: the `<symbol>.json` beside `<symbol>.ptx`.
//!
//! Written by the compiler, read by whoever launches. Fields are only ever added.
//!
//! ```
//! use rtc_ptx::Metadata;
//! let error = Metadata::from_json(r#"{"kernel": "f", "symbol": 4}"#).unwrap_err();
//! assert!(error.to_string().contains("symbol"));
//! ```

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Everything needed to launch a compiled kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// Name of the function in the source.
    pub kernel: String,
    /// Name of the entry in the PTX.
    pub symbol: String,
    /// Target, such as `sm_90a`.
    pub arch: String,
    /// PTX version as major * 10 + minor.
    pub ptx_version: u32,
    /// Warps that compute.
    pub num_warps: u32,
    /// Blocks per program.
    pub num_ctas: u32,
    /// Threads to launch per block.
    pub threads_per_block: u32,
    /// Dynamic shared memory to pass at launch.
    pub shared_bytes: u32,
    /// Global scratch memory per block.
    pub global_scratch_bytes: u64,
    /// Alignment of the global scratch memory.
    pub global_scratch_align: u64,
    /// Blocks per cluster.
    pub cluster: [u32; 3],
    /// Whether the launch may begin before the kernel before it on the stream has ended; `gdc_wait` then waits for that.
    pub launch_pdl: bool,
    /// Whether all blocks must be on the device at once.
    pub launch_cooperative_grid: bool,
    /// Parameters in order, constexprs removed.
    pub params: Vec<Param>,
    /// Values of the constexprs, in order.
    pub constexprs: Map<String, Value>,
    /// Hash of the source text and what it was compiled with.
    pub source_hash: String,
    /// Version of the compiler.
    pub compiler_version: String,
}

/// One kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Name: `x_ptr`, `desc.shape.0`, `t.field`.
    pub name: String,
    /// Type as signature strings spell it: `*fp16`, `i32`.
    #[serde(rename = "type")]
    pub ty: String,
    /// Offset in the parameter buffer.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// For descriptors: how to make the tensor map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_map: Option<TensorMap>,
}

/// How to encode a TMA descriptor for a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMap {
    /// Element type, as `fp16`.
    pub dtype: String,
    /// The box of one TMA copy in elements, outermost dimension first.
    pub block_shape: Vec<u32>,
    /// Swizzle in bytes: 0, 32, 64 or 128.
    pub swizzle: u32,
    /// L2 promotion in bytes: 0, 64, 128 or 256.
    pub l2_promotion: u32,
    /// Interleave in bytes: 0, 16 or 32.
    pub interleave: u32,
}

/// A metadata file that cannot be used; the text names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel metadata: field `{field}`: {message}")]
pub struct MetadataError {
    /// Path of the field, such as `params[2].offset`; empty for the file as a whole.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl Metadata {
    /// Reads the JSON text; the error names the first field at fault.
    pub fn from_json(text: &str) -> Result<Metadata, MetadataError> {
        let value: Value = serde_json::from_str(text).map_err(|e| error("", format!("not JSON: {e}")))?;
        let object = value.as_object().ok_or_else(|| error("", "must be an object".to_string()))?;
        let metadata = Metadata {
            kernel: field(object, "", "kernel")?,
            symbol: field(object, "", "symbol")?,
            arch: field(object, "", "arch")?,
            ptx_version: field(object, "", "ptx_version")?,
            num_warps: field(object, "", "num_warps")?,
            num_ctas: field(object, "", "num_ctas")?,
            threads_per_block: field(object, "", "threads_per_block")?,
            shared_bytes: field(object, "", "shared_bytes")?,
            global_scratch_bytes: field(object, "", "global_scratch_bytes")?,
            global_scratch_align: field(object, "", "global_scratch_align")?,
            cluster: field(object, "", "cluster")?,
            // Files of older compilers lack these two.
            launch_pdl: optional(object, "launch_pdl")?,
            launch_cooperative_grid: optional(object, "launch_cooperative_grid")?,
            params: params(object)?,
            constexprs: field(object, "", "constexprs")?,
            source_hash: field(object, "", "source_hash")?,
            compiler_version: field(object, "", "compiler_version")?,
        };
        metadata.check()?;
        Ok(metadata)
    }

    /// The JSON text, pretty, with a final newline.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("only strings as keys, only finite numbers");
        text.push('\n');
        text
    }

    /// Size of the parameter buffer in bytes.
    pub fn params_size(&self) -> u32 {
        self.params.iter().map(|p| p.offset + p.size).max().unwrap_or(0)
    }

    /// Checks what one field alone cannot show.
    fn check(&self) -> Result<(), MetadataError> {
        if self.threads_per_block == 0 || self.threads_per_block > 1024 {
            return Err(error("threads_per_block", format!("{} is not in 1..=1024", self.threads_per_block)));
        }
        if self.cluster.contains(&0) {
            return Err(error("cluster", "must not contain 0".to_string()));
        }
        let mut end = 0;
        for (i, param) in self.params.iter().enumerate() {
            let name = format!("params[{i}].offset");
            if param.offset < end {
                return Err(error(&name, format!("`{}` overlaps the parameter before it", param.name)));
            }
            end = param.offset.checked_add(param.size).ok_or_else(|| error(&name, "is too large".to_string()))?;
        }
        Ok(())
    }
}

fn params(object: &Map<String, Value>) -> Result<Vec<Param>, MetadataError> {
    let list: Vec<Map<String, Value>> = field(object, "", "params")?;
    let read = |(i, param): (usize, &Map<String, Value>)| {
        let path = format!("params[{i}].");
        let tensor_map = match param.get("tensor_map") {
            None | Some(Value::Null) => None,
            Some(_) => {
                let map: Map<String, Value> = field(param, &path, "tensor_map")?;
                let path = format!("{path}tensor_map.");
                Some(TensorMap {
                    dtype: field(&map, &path, "dtype")?,
                    block_shape: field(&map, &path, "block_shape")?,
                    swizzle: field(&map, &path, "swizzle")?,
                    l2_promotion: field(&map, &path, "l2_promotion")?,
                    interleave: field(&map, &path, "interleave")?,
                })
            }
        };
        Ok(Param {
            name: field(param, &path, "name")?,
            ty: field(param, &path, "type")?,
            offset: field(param, &path, "offset")?,
            size: field(param, &path, "size")?,
            tensor_map,
        })
    };
    list.iter().enumerate().map(read).collect()
}

fn field<T: for<'de> Deserialize<'de>>(
    object: &Map<String, Value>,
    path: &str,
    name: &str,
) -> Result<T, MetadataError> {
    let full = format!("{path}{name}");
    let value = object.get(name).ok_or_else(|| error(&full, "is missing".to_string()))?;
    serde_json::from_value(value.clone()).map_err(|e| error(&full, e.to_string()))
}

fn optional<T: for<'de> Deserialize<'de> + Default>(
    object: &Map<String, Value>,
    name: &str,
) -> Result<T, MetadataError> {
    if object.contains_key(name) { field(object, "", name) } else { Ok(T::default()) }
}

fn error(field: &str, message: String) -> MetadataError {
    MetadataError { field: field.to_string(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Metadata {
        let map = TensorMap {
            dtype: "fp16".into(),
            block_shape: vec![128, 64],
            swizzle: 128,
            l2_promotion: 128,
            interleave: 0,
        };
        let param = |name: &str, ty: &str, offset, size, tensor_map| Param {
            name: name.into(),
            ty: ty.into(),
            offset,
            size,
            tensor_map,
        };
        Metadata {
            kernel: "add".into(),
            symbol: "add_0".into(),
            arch: "sm_90a".into(),
            ptx_version: 83,
            num_warps: 4,
            num_ctas: 1,
            threads_per_block: 128,
            shared_bytes: 512,
            global_scratch_bytes: 0,
            global_scratch_align: 1,
            cluster: [1, 1, 1],
            launch_pdl: true,
            launch_cooperative_grid: false,
            params: vec![param("x", "*fp16", 0, 8, None), param("d", "tensordesc<fp16[128,64]>", 64, 128, Some(map))],
            constexprs: Map::from_iter([("Z".to_string(), Value::from(2)), ("A".to_string(), Value::Null)]),
            source_hash: "00".into(),
            compiler_version: "0.1.0".into(),
        }
    }

    #[test]
    fn reads_what_it_writes_and_keeps_the_order_of_constexprs() {
        let metadata = sample();
        let back = Metadata::from_json(&metadata.to_json()).unwrap();
        assert_eq!(back, metadata);
        assert_eq!(back.constexprs.keys().collect::<Vec<_>>(), ["Z", "A"]);
        assert_eq!(back.params_size(), 192);
    }

    #[test]
    fn files_of_older_compilers_are_read() {
        let lines = |text: &str| text.lines().filter(|l| !l.contains("launch_")).collect::<Vec<_>>().join("\n");
        let old = Metadata::from_json(&lines(&sample().to_json())).unwrap();
        assert_eq!(old, Metadata { launch_pdl: false, ..sample() });
    }

    #[test]
    fn errors_name_the_field() {
        let text = sample().to_json();
        let cases = [
            ("\"num_warps\": 4", "\"num_warps\": -4", "num_warps"),
            ("\"offset\": 64", "\"offset\": 4", "params[1].offset"),
            ("\"swizzle\": 128", "\"swizzle\": \"128\"", "params[1].tensor_map.swizzle"),
            ("\"launch_pdl\": true", "\"launch_pdl\": 1", "launch_pdl"),
            ("\"symbol\"", "\"symbols\"", "symbol"),
            ("\"threads_per_block\": 128", "\"threads_per_block\": 2048", "threads_per_block"),
        ];
        for (from, to, name) in cases {
            assert!(text.contains(from));
            let error = Metadata::from_json(&text.replace(from, to)).unwrap_err();
            assert_eq!(error.field, name, "{error}");
        }
        assert!(Metadata::from_json("[1]").is_err());
    }
}
