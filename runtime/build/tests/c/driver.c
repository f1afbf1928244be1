/* A driver that notes what it is told: modules are numbered as they are loaded, and a function is its module. */
#include "cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int capability = 90;
static size_t modules = 0;
static void (*show)(void **params);
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 132
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? capability / 10 : capability % 10;
    return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    const char *target = strstr(image, ".target ");
    *module = (CUmodule)++modules;
    printf("load %zu %.14s\n", modules, target);
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) { printf("unload %zu\n", (size_t)module); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    *function = (CUfunction)module;
    printf("function %s\n", name);
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    (void)function;
    printf("attribute %d = %d\n", attribute, value);
    return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned int x, unsigned int y, unsigned int z, unsigned int block_x,
                        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **params, void **extra) {
    (void)stream; (void)extra;
    printf("launch %zu grid %u %u %u block %u %u %u shared %u", (size_t)function, x, y, z, block_x, block_y, block_z,
           shared_bytes);
    if (show)
        show(params);
    puts("");
    return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **params, void **extra) {
    for (unsigned int i = 0; i < c->numAttrs; i++)
        printf("attribute %d of the launch: %u\n", c->attrs[i].id, c->attrs[i].value.clusterDim.x);
    return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                          c->sharedMemBytes, c->hStream, params, extra);
}
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    (void)stream;
    *address = 0x7000;
    printf("allocate %zu\n", bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    (void)stream;
    printf("free %#llx\n", address);
    return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    printf("map of type %d at %p:", type, address);
    for (cuuint32_t i = 0; i < rank; i++)
        printf(" %llu by %llu box %u step %u;", (unsigned long long)dims[i],
               i == 0 ? 1ull : (unsigned long long)strides[i - 1], box[i], steps[i]);
    printf(" %d %d %d %d\n", interleave, swizzle, promotion, fill);
    map->opaque[0] = dims[0];
    return CUDA_SUCCESS;
}
