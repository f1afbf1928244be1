// A driver of CUDA that does nothing: what a call of it costs is nearly only what the caller does. Built as libcuda.so by
// scripts/bench; kernels are accepted and never run.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;
static char memory[1 << 20];

#define OK(name, ...) int name(__VA_ARGS__) { return 0; }

OK(cuInit, unsigned flags)
int cuDriverGetVersion(int *version) { return *version = 12080, 0; }
int cuDeviceGetCount(int *count) {
    const char *wanted = getenv("STUB_DEVICES");
    return *count = wanted ? atoi(wanted) : 1, 0;
}
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int length, int device) { return strncpy(name, "stub", length), 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    // Compute capability 9.0; otherwise large.
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1 << 17;
    return 0;
}
// The context of a device lies that many bytes into the memory.
static __thread char *current = memory;
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = memory + device, 0; }
OK(cuDevicePrimaryCtxRelease_v2, int device)
int cuCtxSetCurrent(void *context) { return current = context, 0; }
int cuCtxGetCurrent(void **context) { return *context = current, 0; }
// Memory of device N begins at N << 40.
int cuPointerGetAttribute(void *data, int attribute, address at) { return *(int *)data = at >> 40, 0; }
OK(cuCtxSynchronize, void)
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, 0; }
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, void *options, void **values) {
    return *module = memory, 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) { return *function = memory, 0; }
int cuModuleLoadData(void **module, const void *image) { return *module = memory, 0; }
OK(cuModuleUnload, void *module)
int cuFuncGetAttribute(int *value, int attribute, void *function) { return *value = attribute == 0 ? 1024 : 0, 0; }
OK(cuFuncSetAttribute, void *function, int attribute, int value)
int cuMemAlloc_v2(address *at, size_t bytes) { return *at = (address)(size_t)memory, 0; }
OK(cuMemFree_v2, address at)
OK(cuMemcpyHtoD_v2, address to, const void *from, size_t bytes)
OK(cuMemcpyDtoH_v2, void *to, address from, size_t bytes)
OK(cuMemsetD8_v2, address to, unsigned char value, size_t bytes)
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { return *stream = memory, 0; }
OK(cuStreamDestroy_v2, void *stream)
OK(cuStreamSynchronize, void *stream)
int cuStreamCreate(void **stream, unsigned flags) { return *stream = memory, 0; }
int cuStreamBeginCapture_v2(void *stream, int mode) { return 0; }
int cuStreamEndCapture(void *stream, void **graph) { return *graph = memory, 0; }
int cuGraphInstantiateWithFlags(void **instance, void *graph, address flags) { return *instance = memory, 0; }
OK(cuGraphDestroy, void *graph)
OK(cuGraphExecDestroy, void *instance)
OK(cuGraphLaunch, void *instance, void *stream)
int cuEventCreate(void **event, unsigned flags) { return *event = memory, 0; }
OK(cuEventRecord, void *event, void *stream)
OK(cuEventSynchronize, void *event)
OK(cuEventDestroy_v2, void *event)
int cuEventElapsedTime(float *milliseconds, void *start, void *end) { return *milliseconds = 0.01f, 0; }
int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end) { return *milliseconds = 0.01f, 0; }
OK(cuStreamWaitEvent, void *stream, void *event, unsigned flags)
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) { return 0; }
OK(cuLaunchKernelEx, const void *config, void *function, void **params, void **extra)
int cuGetErrorName(int error, const char **text) { return *text = "stub", 0; }
int cuGetErrorString(int error, const char **text) { return *text = "stub", 0; }
