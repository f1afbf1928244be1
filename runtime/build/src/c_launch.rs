//! The launch of one form of a kernel for one target in C: what the launch fills in by itself, and the call.

use crate::c_source::{argument, is_bool, taken};
use crate::{Error, error};
use rtc_abi::metadata::{Hidden, HostTensorMap, Padding};
use rtc_abi::{DType, Expr, Metadata, Param, ParamType};
use std::fmt::{Result as Written, Write};

/// A tensor as an argument.
pub(crate) const TENSOR: &str = "
#ifndef RTC_TENSOR
#define RTC_TENSOR
/* A tensor: sizes and strides count elements, outermost dimension first; the innermost stride is 1. */
typedef struct rtc_tensor {
    CUdeviceptr base;
    int64_t shape[5], strides[5];
    bool nan; /* what is copied from beside it is NaN, not zero */
} rtc_tensor_t;
#endif
";

const PERSISTENT: &str = include_str!("c/persistent.c");
const ARITHMETIC: &str = include_str!("c/arithmetic.c");
const TENSOR_MAP: &str = include_str!("c/tensor_map.c");

/// What launches need of the functions that stand before all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) descriptors: bool,
    maps: bool,
    hidden_maps: bool,
    persistent: bool,
}

impl Needs {
    pub(crate) fn of(metadata: &Metadata) -> Needs {
        let descriptors = metadata.visible_params().iter().any(|param| !matches!(param.ty, ParamType::Value(_)));
        let hidden_maps = metadata.params.iter().any(|param| matches!(param.hidden, Some(Hidden::TensorMap(_))));
        let persistent = metadata.persistent.is_some();
        Needs { descriptors, maps: descriptors || hidden_maps, hidden_maps, persistent }
    }

    pub(crate) fn and(self, other: Needs) -> Needs {
        Needs {
            descriptors: self.descriptors || other.descriptors,
            maps: self.maps || other.maps,
            hidden_maps: self.hidden_maps || other.hidden_maps,
            persistent: self.persistent || other.persistent,
        }
    }
}

/// The functions that stand before all.
pub(crate) fn preamble(out: &mut String, needs: Needs) {
    for (is_needed, text) in [(needs.persistent, PERSISTENT), (needs.hidden_maps, ARITHMETIC), (needs.maps, TENSOR_MAP)]
    {
        out.push_str(if is_needed { text } else { "" });
    }
}

/// Writes the function `name`, which launches the form `number` of the kernel `fun` for arguments as the general form takes
/// them.
pub(crate) fn launch(
    out: &mut String,
    fun: &str,
    name: &str,
    number: usize,
    metadata: &Metadata,
    general: &Metadata,
) -> Result<(), Error> {
    let maps = maps(metadata).map_err(|what| error(format!("kernel `{}`: {what}", metadata.kernel)))?;
    let mut body = String::new();
    // Writing to a string does not fail.
    let _ = write_body(&mut body, number, metadata, general, &maps);
    let args = general.visible_params().iter().map(taken).collect::<Vec<_>>();
    let args = [vec![format!("const {fun}_t *kernel"), "CUstream stream".into()], grid(), args].concat();
    out.push_str(&format!("\nstatic CUresult {name}({}) {{\n{body}}}\n", args.join(", ")));
    Ok(())
}

fn grid() -> Vec<String> {
    ["x", "y", "z"].map(|axis| format!("unsigned int grid_{axis}")).into()
}

/// A map that a launch makes for a parameter.
struct Map<'m> {
    param: &'m Param,
    form: String,
    /// Nothing where the caller passes a tensor.
    source: Option<&'m HostTensorMap>,
}

fn maps(metadata: &Metadata) -> Result<Vec<Map<'_>>, String> {
    let mut maps = Vec::new();
    for param in &metadata.params {
        let map = match (&param.hidden, &param.tensor_map) {
            (Some(Hidden::TensorMap(map)), _) => {
                let form = form(map.dtype, map.data_type, &map.box_shape, map.swizzle, 128, map.shrinks);
                Map { param, form: form?, source: Some(map) }
            }
            (None, Some(map)) => {
                let form = form(map.dtype, None, &map.block_shape, map.swizzle, map.l2_promotion, false);
                Map { param, form: form?, source: None }
            }
            (None, None) if !matches!(param.ty, ParamType::Value(_)) => {
                return Err(format!("nothing says how the tensor map of `{}` is made", param.name));
            }
            _ => continue,
        };
        maps.push(map);
    }
    Ok(maps)
}

/// What the kernel fixes of a map, as `struct rtc_map` has it.
fn form(
    dtype: DType,
    number: Option<u32>,
    shape: &[u32],
    swizzle: u32,
    promotion: u32,
    shrinks: bool,
) -> Result<String, String> {
    let ty = match dtype {
        DType::Int8 | DType::UInt8 | DType::Fp8E5 | DType::Fp8E4Nv | DType::Fp8E4B15 => "UINT8",
        DType::Int16 | DType::UInt16 => "UINT16",
        DType::UInt32 => "UINT32",
        DType::Int32 => "INT32",
        DType::UInt64 => "UINT64",
        DType::Int64 => "INT64",
        DType::Fp16 => "FLOAT16",
        DType::Fp32 => "FLOAT32",
        DType::Fp64 => "FLOAT64",
        DType::Bf16 => "BFLOAT16",
        other => return Err(format!("there are no tensor maps of `{other}`")),
    };
    let ty = number.map_or(format!("CU_TENSOR_MAP_DATA_TYPE_{ty}"), |number| format!("(CUtensorMapDataType){number}"));
    let inner_first: Vec<String> = shape.iter().rev().map(u32::to_string).collect();
    let swizzle = if swizzle == 0 { "NONE".into() } else { format!("{swizzle}B") };
    let promotion = if promotion == 0 { "NONE".into() } else { format!("L2_{promotion}B") };
    Ok(format!(
        "{ty}, {}, {}, {{{}}}, CU_TENSOR_MAP_SWIZZLE_{swizzle}, CU_TENSOR_MAP_L2_PROMOTION_{promotion}, {shrinks}",
        dtype.bytes(),
        shape.len(),
        inner_first.join(", ")
    ))
}

fn write_body(out: &mut String, number: usize, metadata: &Metadata, general: &Metadata, maps: &[Map<'_>]) -> Written {
    for param in general.visible_params().iter().filter(|p| !metadata.params.iter().any(|own| own.name == p.name)) {
        writeln!(out, "    (void){};", argument(&param.name))?;
    }
    let mut places = Vec::new();
    for param in &metadata.params {
        let own = argument(&param.name);
        match &param.hidden {
            Some(Hidden::Grid(axis)) => {
                writeln!(out, "    int32_t {own} = (int32_t)grid_{};", ['x', 'y', 'z'][(*axis).min(2) as usize])?;
            }
            _ if maps.iter().any(|map| map.param.name == param.name) => {
                places.push(format!("&{own}_map"));
                continue;
            }
            _ if is_bool(&param.ty) => {
                writeln!(out, "    uint8_t {own}_byte = {own};")?;
                places.push(format!("&{own}_byte"));
                continue;
            }
            _ => {}
        }
        places.push(format!("&{own}"));
    }
    if !maps.is_empty() {
        writeln!(out, "    CUresult encoded = CUDA_SUCCESS;")?;
        maps.iter().try_for_each(|map| write_map(out, map))?;
    }
    if metadata.persistent.is_some() || metadata.cluster[0] > 1 {
        write_blocks(out, metadata)?;
    }
    let has_scratch = metadata.global_scratch_bytes > 0;
    if has_scratch {
        writeln!(out, "    CUdeviceptr scratch = 0;")?;
        writeln!(
            out,
            "    size_t scratch_bytes = (size_t){} * grid_x * grid_y * grid_z;",
            metadata.global_scratch_bytes
        )?;
        writeln!(out, "    CUresult allocated = cuMemAllocAsync(&scratch, scratch_bytes, stream);")?;
        writeln!(out, "    if (allocated != CUDA_SUCCESS)\n        return allocated;")?;
        places.push("&scratch".into());
    }
    let places = if places.is_empty() { "NULL".into() } else { places.join(", ") };
    writeln!(out, "    void *params[] = {{{places}}};")?;
    let result = if has_scratch { "CUresult launched =" } else { "return" };
    let shared = metadata.shared_bytes;
    let function = format!("kernel->forms[{number}].function");
    let threads = metadata.threads_per_block;
    let attributes = attributes(metadata);
    if attributes.is_empty() {
        writeln!(
            out,
            "    {result} cuLaunchKernel({function}, grid_x, grid_y, grid_z, {threads}, 1, 1, {shared}, stream,"
        )?;
        writeln!(out, "                          params, NULL);")?;
    } else {
        writeln!(
            out,
            "    CUlaunchAttribute attributes[{}] = {{{{0}}}};\n    unsigned int count = 0;",
            attributes.len()
        )?;
        attributes.iter().try_for_each(|text| writeln!(out, "{text}"))?;
        writeln!(
            out,
            "    CUlaunchConfig config = {{grid_x, grid_y, grid_z, {threads}, 1, 1, {shared}, stream, attributes, count}};"
        )?;
        writeln!(out, "    {result} cuLaunchKernelEx(&config, {function}, params, NULL);")?;
    }
    if has_scratch {
        writeln!(out, "    CUresult freed = cuMemFreeAsync(scratch, stream);")?;
        writeln!(out, "    return launched != CUDA_SUCCESS ? launched : freed;")?;
    }
    Ok(())
}

/// Numbers of programs become numbers of blocks.
fn write_blocks(out: &mut String, metadata: &Metadata) -> Written {
    if let Some(persistent) = metadata.persistent {
        let at_once = format!("{}u * (unsigned int)kernel->sm_count", persistent.blocks_per_multiprocessor.max(1));
        writeln!(
            out,
            "    grid_x = rtc_blocks(grid_x, grid_y, grid_z, {at_once}, {});\n    grid_y = grid_z = 1;",
            persistent.uneven
        )?;
    }
    if metadata.cluster[0] > 1 {
        let cluster = metadata.cluster[0];
        writeln!(out, "    if (grid_x > UINT32_MAX / {cluster})\n        return CUDA_ERROR_INVALID_VALUE;")?;
        writeln!(out, "    grid_x *= {cluster};")?;
    }
    Ok(())
}

/// The text that adds each attribute of the launch.
fn attributes(metadata: &Metadata) -> Vec<String> {
    let mut out = Vec::new();
    let mut add = |id: &str, value: String| {
        out.push(format!("    attributes[count].id = CU_LAUNCH_ATTRIBUTE_{id};\n    {value}\n    count++;"));
    };
    if metadata.cluster != [1, 1, 1] {
        let set = ["x", "y", "z"].iter().zip(metadata.cluster);
        let set = set.map(|(axis, size)| format!("attributes[count].value.clusterDim.{axis} = {size};"));
        add("CLUSTER_DIMENSION", set.collect::<Vec<_>>().join("\n    "));
    }
    if metadata.launch_cooperative_grid {
        add("COOPERATIVE", "attributes[count].value.cooperative = 1;".into());
    }
    if metadata.launch_pdl {
        let allowed = "attributes[count].value.programmaticStreamSerializationAllowed = 1;";
        add("PROGRAMMATIC_STREAM_SERIALIZATION", allowed.into());
        // Devices before 9.0 cannot.
        out.iter_mut()
            .rev()
            .take(1)
            .for_each(|last| *last = format!("    if (kernel->capability >= 90) {{\n{last}\n    }}"));
    }
    out
}

fn write_map(out: &mut String, map: &Map<'_>) -> Written {
    let (own, form) = (argument(&map.param.name), &map.form);
    writeln!(out, "    static const struct rtc_map {own}_form = {{{form}}};")?;
    writeln!(out, "    CUtensorMap {own}_map;")?;
    match map.source {
        None => writeln!(
            out,
            "    encoded = rtc_encode(&{own}_map, &{own}_form, {own}->base, {own}->shape, {own}->strides, {own}->nan);"
        )?,
        Some(source) => {
            let list = |exprs: &[Expr]| exprs.iter().map(number).collect::<Vec<_>>().join(", ");
            let base = argument(&source.base);
            writeln!(out, "    bool {own}_bad = false;")?;
            let bind = |text: String| text.replace("&bad", &format!("&{own}_bad"));
            writeln!(out, "    int64_t {own}_shape[] = {{{}}};", bind(list(&source.shape)))?;
            writeln!(out, "    int64_t {own}_strides[] = {{{}}};", bind(list(&source.strides)))?;
            let bytes = source.dtype.bytes();
            writeln!(
                out,
                "    CUdeviceptr {own}_base = {base} + (CUdeviceptr)({}) * {bytes};",
                bind(number(&source.start))
            )?;
            writeln!(out, "    if ({own}_bad)\n        return CUDA_ERROR_INVALID_VALUE;")?;
            let nan = source.padding == Padding::Nan;
            writeln!(
                out,
                "    encoded = rtc_encode(&{own}_map, &{own}_form, {own}_base, {own}_shape, {own}_strides, {nan});"
            )?;
        }
    }
    writeln!(out, "    if (encoded != CUDA_SUCCESS)\n        return encoded;")
}

/// A size in C; `&bad` stands for where it is noted that it has no value.
fn number(expr: &Expr) -> String {
    let constant = |value: i64| if value == i64::MIN { "INT64_MIN".into() } else { format!("INT64_C({value})") };
    expr.written(
        constant,
        |name| format!("(int64_t){}", argument(name)),
        |op, a, b| {
            let function = match op {
                "+" => "add",
                "-" => "sub",
                "*" => "mul",
                "//" => "floordiv",
                "%" => "mod",
                other => other,
            };
            format!("rtc_{function}({a}, {b}, &bad)")
        },
    )
}
