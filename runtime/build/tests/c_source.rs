//! C sources: the compiler takes them without a warning, and over a driver that only notes what it is told they load the right
//! variant and pass what they are given.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use rtc_build::{Ready, write_c};
use rtc_compiler::{Program, Signature, Silent, Source, Spec};
use std::path::Path;
use std::process::Command;

const KERNEL: &str = "\
# Adds a number where a flag is set. */
@triton.jit
def add_kernel(x_ptr, out_ptr, n, by, flag, long, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if flag:
        x += by
    tl.store(out_ptr + offsets, x + long, mask=mask)
";

/// As much of `cuda.h` as the sources need, with its names.
const CUDA_H: &str = "\
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_NO_BINARY_FOR_GPU = 209 } CUresult;
typedef enum {
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
} CUdevice_attribute;
typedef enum { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 } CUfunction_attribute;
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void **params, void **extra);
";

const DRIVER: &str = r#"
#include "add.h"
#include <stdio.h>
#include <string.h>
static int capability;
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? capability / 10 : capability % 10;
    return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    const char *target = strstr(image, ".target ");
    printf("load %.14s\n", target);
    *module = 0;
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) { (void)module; puts("unload"); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    (void)module;
    *function = 0;
    printf("function %s\n", name);
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    (void)function; (void)attribute; (void)value;
    return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned int x, unsigned int y, unsigned int z, unsigned int block_x,
                        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **params, void **extra) {
    (void)function; (void)stream; (void)extra;
    printf("grid %u %u %u block %u %u %u shared %u: %#llx %#llx %d %g %d %lld\n", x, y, z, block_x, block_y, block_z,
           shared_bytes, *(CUdeviceptr *)params[0], *(CUdeviceptr *)params[1], *(int32_t *)params[2],
           (double)*(float *)params[3], *(uint8_t *)params[4], (long long)*(int64_t *)params[5]);
    return CUDA_SUCCESS;
}
int main(void) {
    static const int capabilities[] = {75, 80, 86, 90, 100};
    add_kernel_t kernel;
    for (int i = 0; i < 5; i++) {
        capability = capabilities[i];
        printf("%d: %d\n", capability, add_kernel_load(&kernel));
    }
    printf("%d\n", add_kernel_launch(&kernel, 0, 3, 2, 1, 0x1000, 0x2000, 48, 1.5f, true, -5));
    printf("%d\n", add_kernel_launch(&kernel, 0, 3, 1, 1, 0x1008, 0x2000, 48, 1.5f, true, -5));
    printf("%d\n", add_kernel_launch(&kernel, 0, 3, 1, 1, 0x1000, 0x2000, 47, 1.5f, true, -5));
    printf("%d\n", add_kernel_launch(&kernel, 0, 0, 1, 1, 0x1000, 0x2000, 48, 1.5f, true, -5));
    return add_kernel_unload(&kernel);
}
"#;

fn ready(archs: &[&str]) -> Ready {
    let program = Program::parse(&[Source::new("add.rt", KERNEL)]);
    let info = program.kernel(None).unwrap().clone();
    let params: Vec<&str> = info.params.iter().map(|p| p.name.as_str()).collect();
    let signature = Signature::parse("*fp32:16, *fp32:16, i32:16, fp32, u1, i64, 128").unwrap();
    let args = signature.bind(&params).unwrap();
    let spec = Spec { kernel: Some(info.name.clone()), args, options: Default::default(), arch: None };
    let specialization = spec.specialize(&program).unwrap();
    let compile = |arch: &&str| {
        rtc_compiler::compile(&program, &specialization, arch, String::new(), &mut Silent).unwrap().artifact
    };
    let variants = archs.iter().map(compile).collect();
    Ready { name: info.name.clone(), info, specialization, variants }
}

fn cc(folder: &Path, args: &[&str]) {
    let output = Command::new("cc").current_dir(folder).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn sources_compile_and_launch() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-source-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [header, source] = write_c(&folder, "add", vec![ready(&["sm_90a", "sm_80"])]).unwrap();
    insta::assert_snapshot!("header", std::fs::read_to_string(header).unwrap());
    let source = std::fs::read_to_string(source).unwrap();
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with('"')).collect();
    insta::assert_snapshot!("source", code.join("\n"));

    std::fs::write(folder.join("cuda.h"), CUDA_H).unwrap();
    std::fs::write(folder.join("main.c"), DRIVER).unwrap();
    let strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-I."];
    cc(&folder, &[&strict[..], &["-fsyntax-only", "add.c"]].concat());
    // The header also serves C++.
    let both = [&strict[1..], &["-x", "c++", "-fsyntax-only", "add.h"]].concat();
    if Command::new("c++").arg("--version").output().is_ok_and(|o| o.status.success()) {
        let output =
            Command::new("c++").current_dir(&folder).args(both.iter().filter(|a| **a != "-Werror")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    cc(&folder, &[&strict[..], &["add.c", "main.c", "-o", "main"]].concat());
    let output = Command::new(folder.join("main")).output().unwrap();
    assert!(output.status.success());
    insta::assert_snapshot!("launched", String::from_utf8(output.stdout).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_c_cannot_launch_is_refused() {
    let mut cluster = ready(&["sm_90a"]);
    cluster.variants[0].metadata.cluster = [2, 1, 1];
    let folder = std::env::temp_dir().join(format!("rtc-c-refused-{}", std::process::id()));
    let error = write_c(&folder, "add", vec![cluster]).unwrap_err().to_string();
    assert_eq!(error, "kernel `add_kernel` needs clusters of blocks, which the C source does not do");
    let _ = std::fs::remove_dir_all(folder);
}
