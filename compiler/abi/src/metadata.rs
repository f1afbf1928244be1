//! Metadata of a compiled kernel: the `<symbol>.json` beside `<symbol>.ptx`.
//!
//! Written by the compiler, read by launchers. Fields are only ever added.
//!
//! ```
//! use rtc_abi::Metadata;
//! let error = Metadata::from_json(r#"{"kernel": "f", "symbol": 4}"#).unwrap_err();
//! assert!(error.to_string().contains("symbol"));
//! ```

use crate::target::MAX_THREADS;
use crate::{Access, Arch, DType, Expr, ParamType};
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
    /// Parameters in order, constexprs removed, hidden ones last.
    pub params: Vec<Param>,
    /// Why the kernel may access memory that belongs to no pointer argument; absent if that is excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// For a kernel that loops over programs itself: how many blocks are started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<Persistent>,
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
    /// Its type.
    #[serde(rename = "type")]
    pub ty: ParamType,
    /// Offset in the parameter buffer.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// The factor that the signature promises of the integer, or of the address in bytes; 1 if it promises nothing.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub divisible_by: u32,
    /// For descriptors: how to make the tensor map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_map: Option<TensorMap>,
    /// For hidden parameters: the value that the launcher passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Hidden>,
    /// For pointers: what the kernel does to the memory behind it; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// For pointers: how many elements from the pointer on the kernel touches at most, 0 and less standing for none. The names
    /// are integer arguments and `grid.0`, `grid.1`, `grid.2`, the numbers of programs. Absent where nothing is proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extent: Option<Expr>,
    /// The extent is valid in launches in which none of these is negative, and all can be computed in 64 bits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extent_needs: Vec<Expr>,
    /// Why there is no extent, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extent_unknown: Option<String>,
}

fn one() -> u32 {
    1
}

fn is_one(factor: &u32) -> bool {
    *factor == 1
}

impl Param {
    /// A parameter of that type, to be given a place by [`lay_out`].
    pub fn new(name: impl Into<String>, ty: impl Into<ParamType>) -> Param {
        let ty = ty.into();
        let size = ty.bytes();
        Param {
            name: name.into(),
            ty,
            offset: 0,
            size,
            divisible_by: 1,
            tensor_map: None,
            hidden: None,
            access: None,
            extent: None,
            extent_needs: Vec::new(),
            extent_unknown: None,
        }
    }
}

/// Gives every parameter its place, as the `.param` list of the kernel does: each at the next multiple of its alignment.
///
/// ```
/// use rtc_abi::{DType, Param, metadata::lay_out};
/// let params = lay_out(vec![Param::new("flag", DType::UInt1), Param::new("n", DType::Int64)]);
/// assert_eq!((params[0].offset, params[1].offset, params[1].size), (0, 8, 8));
/// ```
pub fn lay_out(mut params: Vec<Param>) -> Vec<Param> {
    let mut end = 0u32;
    for param in &mut params {
        param.offset = end.next_multiple_of(param.ty.align());
        end = param.offset + param.size;
    }
    params
}

/// The value that the launcher passes for a hidden parameter.
///
/// ```
/// use rtc_abi::{DType, Hidden, Param};
/// let mut programs = Param::new("programs", DType::Int32);
/// programs.hidden = Some(Hidden::Grid(0)); // the launch passes the number of programs along x
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hidden {
    /// The number of programs along an axis: 0, 1 or 2.
    Grid(u32),
    /// A tensor map that the host encodes.
    TensorMap(Box<HostTensorMap>),
}

/// A tensor map of the memory behind pointer arguments; dimensions are outermost first and count elements.
///
/// ```
/// use rtc_abi::{DType, HostTensorMap, Padding};
/// // Rows of `K` values behind `a_ptr`, `M` of them, copied in boxes of 128 by 64.
/// let map = HostTensorMap {
///     base: "a_ptr".into(),
///     start: 0.into(),
///     dtype: DType::Fp16,
///     shape: vec!["M".parse().unwrap(), "K".parse().unwrap()],
///     strides: vec!["K".parse().unwrap(), 1.into()],
///     box_shape: vec![128, 64],
///     swizzle: 128,
///     data_type: None,
///     padding: Padding::Zero,
///     shrinks: false,
/// };
/// assert_eq!(map.strides[1], 1.into());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTensorMap {
    /// The pointer argument that it lies behind.
    pub base: String,
    /// The first element, counted from the pointer.
    pub start: Expr,
    /// Element type.
    pub dtype: DType,
    /// Sizes; a size below 1 is encoded as 1.
    pub shape: Vec<Expr>,
    /// Strides; the innermost is 1.
    pub strides: Vec<Expr>,
    /// The box of one copy.
    #[serde(rename = "box")]
    pub box_shape: Vec<u32>,
    /// Swizzle in bytes: 0, 32, 64 or 128.
    pub swizzle: u32,
    /// The number of the `CUtensorMapDataType`, where it is not that of `dtype`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_type: Option<u32>,
    /// The value of elements outside.
    pub padding: Padding,
    /// Whether the box has no more rows, in the last dimension but one, than the tensor: the launch encodes the lesser
    /// number. A copy then brings fewer bytes and leaves the other rows of its buffer alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shrinks: bool,
}

/// The value of a tensor map's elements outside of the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Padding {
    /// Zero.
    Zero,
    /// A NaN; floats only.
    Nan,
}

/// How many blocks of a persistent kernel are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persistent {
    /// Blocks that run on one SM at once.
    pub blocks_per_multiprocessor: u32,
    /// Whether some programs may end without work, so that nothing is known of the number of passes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uneven: bool,
}

impl Persistent {
    /// Blocks to start for so many programs: the fewest that need the same number of passes as all that fit at once, or
    /// all that fit where programs are uneven.
    ///
    /// ```
    /// let persistent = rtc_abi::Persistent { blocks_per_multiprocessor: 1, uneven: false };
    /// assert_eq!(persistent.blocks(100, 132), 100);
    /// assert_eq!(persistent.blocks(265, 132), 89); // three rounds
    /// assert_eq!(rtc_abi::Persistent { uneven: true, ..persistent }.blocks(265, 132), 132);
    /// ```
    pub fn blocks(self, programs: u64, sms: u32) -> u64 {
        let at_once = (u64::from(self.blocks_per_multiprocessor) * u64::from(sms)).max(1);
        if self.uneven {
            return programs.min(at_once);
        }
        let rounds = programs.div_ceil(at_once).max(1);
        programs.div_ceil(rounds)
    }
}

/// How to encode a TMA descriptor for a parameter.
///
/// ```
/// use rtc_abi::{DType, TensorMap};
/// let map = TensorMap { dtype: DType::Fp16, block_shape: vec![128, 64], swizzle: 128, l2_promotion: 128, interleave: 0 };
/// assert_eq!(map.block_shape.iter().product::<u32>() * map.dtype.bytes(), 16384); // bytes of a copy
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMap {
    /// Element type.
    pub dtype: DType,
    /// The box of one TMA copy in elements, outermost dimension first.
    pub block_shape: Vec<u32>,
    /// Swizzle in bytes: 0, 32, 64 or 128.
    pub swizzle: u32,
    /// L2 promotion in bytes: 0, 64, 128 or 256; in JSON `"none"`, `"64B"`, `"128B"` or `"256B"`.
    #[serde(with = "promotion")]
    pub l2_promotion: u32,
    /// Interleave in bytes: 0, 16 or 32.
    pub interleave: u32,
}

/// How JSON has L2 promotion. Files of older compilers have the number of bytes.
mod promotion {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Bytes(u32),
        Name(String),
    }

    pub fn serialize<S: Serializer>(bytes: &u32, to: S) -> Result<S::Ok, S::Error> {
        if *bytes == 0 { "none".serialize(to) } else { format!("{bytes}B").serialize(to) }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        let bytes = match Written::deserialize(from)? {
            Written::Bytes(bytes) => Some(bytes),
            Written::Name(name) if name == "none" => Some(0),
            Written::Name(name) => name.strip_suffix('B').and_then(|bytes| bytes.parse().ok()),
        };
        let known = bytes.filter(|bytes| matches!(bytes, 0 | 64 | 128 | 256));
        known.ok_or_else(|| D::Error::custom("none, 64B, 128B or 256B is needed"))
    }
}

/// A metadata file that cannot be used; the text names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel metadata: field `{field}`: {message}")]
pub struct MetadataError {
    /// Path of the field, such as `params[2].offset`; empty for the file as a whole.
    pub field: String,
    /// The error.
    pub message: String,
}

impl Metadata {
    /// The metadata of a kernel of which only the following is known: its entry in the PTX, its target and PTX version
    /// (major * 10 + minor), the threads of a block, and its parameters, whose offsets are computed here. It has one
    /// block per program and no shared or scratch memory, and its launches are plain; other fields are set by hand.
    ///
    /// ```
    /// use rtc_abi::{DType, Metadata, Param, ParamType};
    /// let x: ParamType = "*fp32".parse()?;
    /// let metadata = Metadata {
    ///     shared_bytes: 1024,
    ///     ..Metadata::new("scale", "sm_90a", 83, 128, vec![Param::new("x", x), Param::new("n", DType::Int32)])
    /// };
    /// metadata.check()?;
    /// assert_eq!((metadata.num_warps, metadata.params[1].offset, metadata.params_size()), (4, 8, 12));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        symbol: impl Into<String>,
        arch: impl Into<String>,
        ptx_version: u32,
        threads_per_block: u32,
        params: Vec<Param>,
    ) -> Metadata {
        let symbol = symbol.into();
        Metadata {
            kernel: symbol.clone(),
            symbol,
            arch: arch.into(),
            ptx_version,
            num_warps: threads_per_block.div_ceil(32),
            num_ctas: 1,
            threads_per_block,
            shared_bytes: 0,
            global_scratch_bytes: 0,
            global_scratch_align: 1,
            cluster: [1, 1, 1],
            launch_pdl: false,
            launch_cooperative_grid: false,
            params: lay_out(params),
            elsewhere: None,
            persistent: None,
            constexprs: Map::new(),
            source_hash: String::new(),
            compiler_version: String::new(),
        }
    }

    /// Reads the JSON text.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] with the first field that is missing or has a wrong value.
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
            launch_pdl: optional(object, "", "launch_pdl")?,
            launch_cooperative_grid: optional(object, "", "launch_cooperative_grid")?,
            params: params(object)?,
            elsewhere: optional(object, "", "elsewhere")?,
            persistent: optional(object, "", "persistent")?,
            constexprs: field(object, "", "constexprs")?,
            source_hash: field(object, "", "source_hash")?,
            compiler_version: field(object, "", "compiler_version")?,
        };
        metadata.check()?;
        Ok(metadata)
    }

    /// The JSON text, pretty, with a final newline.
    ///
    /// ```
    /// use rtc_abi::Metadata;
    /// # let text = r#"{"kernel": "f", "symbol": "f", "arch": "sm_80", "ptx_version": 83, "num_warps": 4, "num_ctas": 1,
    /// #   "threads_per_block": 128, "shared_bytes": 0, "global_scratch_bytes": 0, "global_scratch_align": 1,
    /// #   "cluster": [1, 1, 1], "params": [{"name": "x", "type": "*fp32", "offset": 0, "size": 8},
    /// #   {"name": "n", "type": "i32", "offset": 8, "size": 4}],
    /// #   "constexprs": {}, "source_hash": "", "compiler_version": ""}"#;
    /// let metadata = Metadata::from_json(text)?; // of a kernel f(x, n)
    /// metadata.check()?;
    /// let names: Vec<&str> = metadata.visible_params().iter().map(|param| param.name.as_str()).collect();
    /// assert_eq!((names, metadata.params_size(), metadata.scratch_offset()), (vec!["x", "n"], 12, None));
    /// assert_eq!(Metadata::from_json(&metadata.to_json())?, metadata);
    /// # Ok::<(), rtc_abi::MetadataError>(())
    /// ```
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("only strings as keys, only finite numbers");
        text.push('\n');
        text
    }

    /// Size of the parameter buffer in bytes.
    pub fn params_size(&self) -> u32 {
        self.params.iter().map(|p| p.offset + p.size).max().unwrap_or(0)
    }

    /// Offset of the pointer to the global scratch memory, which follows the last parameter; `None` if there is none.
    pub fn scratch_offset(&self) -> Option<u32> {
        (self.global_scratch_bytes > 0).then(|| self.params_size().next_multiple_of(8))
    }

    /// The parameters for which the caller gives arguments; the hidden ones follow them.
    pub fn visible_params(&self) -> &[Param] {
        let count = self.params.iter().take_while(|p| p.hidden.is_none()).count();
        &self.params[..count]
    }

    /// Checks what one field alone cannot show.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] with the first field that contradicts others, or has a value that no kernel has.
    pub fn check(&self) -> Result<(), MetadataError> {
        if self.arch.parse::<Arch>().is_err() {
            return Err(error("arch", format!("`{}` is not a target", self.arch)));
        }
        if self.threads_per_block == 0 || self.threads_per_block > MAX_THREADS {
            return Err(error("threads_per_block", format!("{} is not in 1..={MAX_THREADS}", self.threads_per_block)));
        }
        if self.cluster.contains(&0) {
            return Err(error("cluster", "must not contain 0".to_string()));
        }
        if self.persistent.is_some_and(|p| p.blocks_per_multiprocessor == 0) {
            return Err(error("persistent.blocks_per_multiprocessor", "must not be 0".to_string()));
        }
        crate::Extents::new(self)?;
        let mut end = 0;
        for (i, param) in self.params.iter().enumerate() {
            let fail = |field: &str, message: String| Err(error(&format!("params[{i}].{field}"), message));
            if param.offset < end {
                return fail("offset", format!("`{}` overlaps the parameter before it", param.name));
            }
            if param.offset % param.ty.align() != 0 {
                return fail("offset", format!("{} is not a multiple of {}", param.offset, param.ty.align()));
            }
            if param.size != param.ty.bytes() {
                return fail("size", format!("{} bytes, but `{}` takes {}", param.size, param.ty, param.ty.bytes()));
            }
            if param.divisible_by == 0 {
                return fail("divisible_by", "must not be 0".to_string());
            }
            let after_hidden = i >= self.visible_params().len();
            match (&param.hidden, &param.ty) {
                (None, _) if after_hidden => return fail("hidden", "is missing after a hidden parameter".to_string()),
                (Some(Hidden::Grid(axis)), ParamType::Value(_)) => {
                    if *axis > 2 || param.ty != ParamType::from(DType::Int32) {
                        return fail("hidden", "a grid parameter is an i32 for axis 0, 1 or 2".to_string());
                    }
                }
                (None, ParamType::TensorMap)
                | (Some(Hidden::Grid(_)), _)
                | (Some(Hidden::TensorMap(_)), ParamType::Value(_)) => {
                    return fail("hidden", format!("does not fit the type {}", param.ty));
                }
                (Some(Hidden::TensorMap(map)), _) => {
                    if map.shape.len() != map.strides.len() || map.shape.len() != map.box_shape.len() {
                        return fail("hidden", "shape, strides and box differ in their length".to_string());
                    }
                }
                (None, _) => {}
            }
            if param.extent.is_some() && !param.ty.is_pointer() {
                return fail("extent", format!("does not fit the type {}", param.ty));
            }
            end = match param.offset.checked_add(param.size) {
                Some(end) => end,
                None => return fail("offset", "is too large".to_string()),
            };
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
                    l2_promotion: {
                        let value = field::<Value>(&map, &path, "l2_promotion")?;
                        promotion::deserialize(value)
                            .map_err(|e| error(&format!("{path}l2_promotion"), e.to_string()))?
                    },
                    interleave: field(&map, &path, "interleave")?,
                })
            }
        };
        Ok(Param {
            name: field(param, &path, "name")?,
            ty: field(param, &path, "type")?,
            offset: field(param, &path, "offset")?,
            size: field(param, &path, "size")?,
            divisible_by: if param.contains_key("divisible_by") { field(param, &path, "divisible_by")? } else { 1 },
            tensor_map,
            hidden: optional(param, &path, "hidden")?,
            access: optional(param, &path, "access")?,
            extent: optional(param, &path, "extent")?,
            extent_needs: optional(param, &path, "extent_needs")?,
            extent_unknown: optional(param, &path, "extent_unknown")?,
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
    path: &str,
    name: &str,
) -> Result<T, MetadataError> {
    if object.contains_key(name) { field(object, path, name) } else { Ok(T::default()) }
}

pub(crate) fn error(field: &str, message: String) -> MetadataError {
    MetadataError { field: field.to_string(), message }
}

#[cfg(test)]
mod tests;
