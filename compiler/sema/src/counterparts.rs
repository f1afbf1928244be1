//! Replacements in kernels for names of Python, NumPy, PyTorch and CUDA.

/// The replacement for a method or attribute of tensors that blocks do not have.
pub(crate) fn of_method(name: &str) -> Option<&'static str> {
    Some(match name {
        "float" => "cast with `.to(tl.float32)`",
        "half" => "cast with `.to(tl.float16)`",
        "bfloat16" => "cast with `.to(tl.bfloat16)`",
        "double" => "cast with `.to(tl.float64)`",
        "char" => "cast with `.to(tl.int8)`",
        "short" => "cast with `.to(tl.int16)`",
        "int" => "cast with `.to(tl.int32)`",
        "long" => "cast with `.to(tl.int64)`",
        "bool" => "compare with zero: `x != 0`",
        "type_as" => "cast with `.to(y.dtype)`",
        "astype" => "cast with `.to(dtype)`",
        "size" => "the sizes of a block are in `.shape`; pass those of a tensor in memory as arguments",
        "dim" | "ndim" => "write `len(x.shape)`",
        "stride" | "strides" => "pass the strides of a tensor in memory to the kernel as arguments",
        "data_ptr" | "data" => "leave it out: a tensor argument is its pointer in the kernel",
        "is_contiguous" | "device" => "a kernel sees pointers only; pass what it needs as an argument",
        "clone" | "copy" | "contiguous" | "detach" | "cuda" | "cpu" => "leave it out: values in a kernel do not change",
        "pow" => "write `x * x`, or `tl.exp2(tl.log2(x) * y)` for positive `x`",
        "square" => "write `x * x`",
        "relu" => "write `tl.maximum(x, 0)`",
        "clip" | "clamp" => "write `tl.clamp(x, low, high)`",
        "transpose" | "t" | "mT" => "write `tl.trans(x)`",
        "flatten" => "write `tl.ravel(x)`",
        "matmul" | "mm" => "write `tl.dot(a, b)`",
        "any" | "all" | "mean" | "prod" | "round" | "sign" | "isnan" => return of_language(name),
        "norm" => "write `tl.sqrt(tl.sum(x * x, axis))`",
        "fill_" | "zero_" | "add_" | "mul_" | "copy_" => {
            "assign the new value: `x = ...`; values do not change in place"
        }
        _ => return None,
    })
}

/// The replacement for names that users look for in `tl` but that do not exist.
pub(crate) fn of_language(name: &str) -> Option<&'static str> {
    Some(match name {
        "mean" => "write `tl.sum(x, axis) / n`",
        "var" => "write the sum of squared differences divided by `n`",
        "prod" => "write `tl.reduce(x, axis, multiply)` with a jit function that multiplies",
        "any" => "write `tl.reduce_or(x != 0, axis)`",
        "all" => "write `tl.min(x.to(tl.int32), axis)`",
        "ones" => "write `tl.full(shape, 1, dtype)`",
        "eye" => "compare two `tl.arange` with each other",
        "sign" => "write `tl.where(x > 0, 1, tl.where(x < 0, -1, 0))`",
        "round" => "write `libdevice.rint(x)` or `libdevice.round(x)`",
        "isnan" => "write `x != x`",
        "clock" => "write `tl.extra.cuda.globaltimer()`",
        "float" => "write `tl.float32`",
        "half" => "write `tl.float16`",
        "double" => "write `tl.float64`",
        "int" => "write `tl.int32`",
        "long" => "write `tl.int64`",
        "bool" => "write `tl.int1`",
        "concatenate" | "concat" | "hstack" | "stack" => "write `tl.join(a, b)`, or `tl.cat(a, b, can_reorder=True)`",
        "matmul" | "mm" => "write `tl.dot(a, b)`",
        "relu" | "pow" | "power" | "square" | "clip" | "transpose" | "norm" => {
            return of_method(if name == "power" { "pow" } else { name });
        }
        "linspace" => "compute it from `tl.arange`",
        "len" | "print" | "range" => "write it without `tl.`",
        "block_id" | "block_idx" | "blockIdx" | "pid" => "write `tl.program_id(axis)`",
        "grid_dim" | "gridDim" | "num_blocks" => "write `tl.num_programs(axis)`",
        "thread_id" | "thread_idx" | "threadIdx" | "lane_id" | "warp_id" | "block_dim" | "blockDim" => NO_THREADS,
        "barrier" | "syncthreads" | "sync" => NO_BARRIERS,
        "shared_memory" | "shared" | "alloc" | "allocate" => {
            "a block is a value, and the compiler decides what lies in shared memory: start with `tl.zeros(shape, dtype)`"
        }
        _ => return None,
    })
}

const NO_THREADS: &str = "a program has no threads of its own: it computes with blocks, such as `tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)`";
const NO_BARRIERS: &str =
    "leave it out: the compiler orders what a program does; `tl.debug_barrier()` is one where memory is shared";

/// The replacement for names of CUDA.
pub(crate) fn of_cuda(name: &str) -> Option<&'static str> {
    Some(match name {
        "blockIdx" => "write `tl.program_id(axis)`",
        "gridDim" => "write `tl.num_programs(axis)`",
        "threadIdx" | "blockDim" | "warpSize" => NO_THREADS,
        "__syncthreads" | "__syncwarp" => NO_BARRIERS,
        "__threadfence" => "atomic functions of `tl` have an argument `sem`, which orders memory",
        "__shfl_sync" | "__shfl_xor_sync" | "__shfl_down_sync" => {
            "reduce a block: `tl.sum(x, axis)`, `tl.reduce(x, axis, combine)`"
        }
        "atomicAdd" => "write `tl.atomic_add(pointer, value)`",
        "atomicMax" => "write `tl.atomic_max(pointer, value)`",
        "atomicMin" => "write `tl.atomic_min(pointer, value)`",
        "atomicExch" => "write `tl.atomic_xchg(pointer, value)`",
        "atomicCAS" => "write `tl.atomic_cas(pointer, compare, value)`",
        "printf" => "write `tl.device_print(\"text\", x)`",
        "fmaxf" | "fminf" => "write `tl.maximum(x, y)` or `tl.minimum(x, y)`",
        "expf" | "logf" | "sqrtf" | "sinf" | "cosf" | "fabsf" => "write the function of `tl`, such as `tl.exp(x)`",
        "grid" => "write `tl.num_programs(axis)` for its sizes, and `tl.program_id(axis)` for the place in it",
        "torch" | "np" | "numpy" | "jnp" => {
            "a kernel takes functions and types of `tl`, as in `tl.exp(x)` and `tl.float32`; constants of a library need its import"
        }
        _ => return None,
    })
}

/// The parameter that is meant by a keyword of PyTorch or NumPy.
pub(crate) fn of_keyword(name: &str) -> &'static [&'static str] {
    match name {
        "dim" | "dims" => &["axis", "dims"],
        "keepdim" | "keepdims" => &["keep_dims"],
        "other" | "b" => &["y", "other"],
        "size" => &["shape"],
        "type" => &["dtype"],
        "fill_value" => &["value"],
        "stages" => &["num_stages"],
        "unroll" | "unroll_factor" => &["loop_unroll_factor"],
        "ptr" | "address" => &["pointer"],
        "val" => &["value"],
        _ => &[],
    }
}

/// The replacement for arguments that a function does not accept in this form.
pub(crate) fn of_arguments(function: &str) -> Option<&'static str> {
    Some(match function {
        "arange" => {
            "it counts from `start` to `end` in int32: `tl.arange(0, BLOCK)`; multiply for a step, cast with `.to(dtype)` for another type"
        }
        "program_id" | "num_programs" => "the axis of the grid is 0, 1 or 2: `tl.program_id(0)`",
        "rand" | "randn" | "randint" => "it gives a number for each offset: `tl.rand(seed, offsets)`",
        "max" => "for the larger of two values write `tl.maximum(x, y)`",
        "min" => "for the smaller of two values write `tl.minimum(x, y)`",
        _ => return None,
    })
}

/// The replacement for a function or constant of NumPy, PyTorch or the like, by its full name. `in_language`: whether
/// `tl` has a function of that name.
pub(crate) fn of_library(path: &str, in_language: impl Fn(&str) -> bool) -> Option<String> {
    let (module, name) = path.rsplit_once('.')?;
    match module.split('.').next() {
        Some("random") => return Some("write `tl.rand(seed, offsets)`, `tl.randn` or `tl.randint`".to_owned()),
        Some("time") => return Some("write `tl.extra.cuda.globaltimer()`, or measure on the host".to_owned()),
        _ => {}
    }
    if !matches!(module.split('.').next(), Some("numpy" | "torch" | "jax" | "cupy" | "scipy" | "math")) {
        return None;
    }
    let name = match name {
        "arctan" | "arctan2" | "tan" | "sinh" | "cosh" | "asin" | "acos" | "atan" | "log10" | "log1p" | "expm1" => {
            return Some(format!("write `libdevice.{}(x)`", name.replacen("arc", "a", 1)));
        }
        "absolute" | "fabs" => "abs",
        "amax" => "max",
        "amin" => "min",
        name => name,
    };
    match name {
        "pi" | "e" | "inf" | "nan" | "tau" => Some(format!("write `math.{name}`, or define a global constant")),
        _ => match of_language(name) {
            Some(help) => Some(help.to_string()),
            None if in_language(name) => Some(format!("write `tl.{name}(...)`")),
            None => None,
        },
    }
}

/// The replacement for functions of Python that kernels do not have.
pub(crate) fn of_python(name: &str) -> Option<&'static str> {
    Some(match name {
        "sum" => "write `tl.sum(x, axis)` for a block; add up scalars in a loop",
        "round" => "write `libdevice.rint(x)`",
        "pow" => "write `x ** 2`, or `x * x`",
        "sorted" => "write `tl.sort(x)`",
        "reversed" => "write `tl.flip(x)` for a block",
        "any" | "all" => return of_language(name),
        "map" | "filter" => "write a loop, or `tl.map_elementwise`",
        "open" | "input" | "exec" | "eval" => "a kernel runs on the GPU and cannot call functions of the host",
        "set" | "list" | "dict" => "use a tuple",
        "bool" => "compare with zero: `x != 0`",
        "str" | "repr" | "format" => "print values with `tl.device_print(\"text\", x)`",
        "type" => "the type of a value is `x.dtype`",
        _ => return None,
    })
}
