// A driver of CUDA without a GPU, which fails as RTC_STUB says: "old" is a driver of CUDA 11.4, "none" has no GPU, "memory" has
// none left, "registers:N" has 132 multiprocessors and takes N registers for kernels without .maxnreg, up to 152 for others, "init:CODE" does not start, "load:CODE" refuses every module, "lost:CODE" loses its context with the first launch. Says at the end how often it
// was called for what.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;
static char memory[1 << 16];
static const char *fault = "";
static int events, waits, modules, capturing, lost, launches, allocations, kept, maps;

__attribute__((constructor)) static void start(void) {
    const char *text = getenv("RTC_STUB");
    if (text) fault = text;
}

__attribute__((destructor)) static void end(void) {
    printf("driver: %d launches, %d allocations on streams of which %d are left, %d maps\n", launches, allocations, kept, maps);
    if (events) printf("driver: %d events recorded, %d waits for them\n", events, waits);
    fflush(stdout);
}

static int code_of(const char *kind) {
    size_t length = strlen(kind);
    return strncmp(fault, kind, length) == 0 ? atoi(fault + length) : 0;
}

#define OK(name, ...) int name(__VA_ARGS__) { return lost; }

int cuInit(unsigned flags) { return strcmp(fault, "none") == 0 ? 100 : code_of("init:"); }
int cuDriverGetVersion(int *version) { return *version = strcmp(fault, "old") == 0 ? 11040 : 12040, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int length, int device) { return strncpy(name, "stub", length), 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : attribute == 111 ? 1024 : 1 << 17;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = memory, 0; }
OK(cuDevicePrimaryCtxRelease_v2, int device)
int cuCtxSetCurrent(void *context) { return 0; }
OK(cuCtxSynchronize, void)
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, lost; }
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values) {
    int code = code_of("load:");
    if (code) strncpy(values[0], "ptxas application ptx input, line 1; fatal", (size_t)values[1]);
    // A module is the place of its registers.
    int *registers = (int *)memory + ++modules;
    *registers = code_of("registers:");
    const char *most = strstr(image, ".maxnreg ");
    if (*registers && most) *registers = atoi(most + 9) < 152 ? atoi(most + 9) : 152;
    return *module = registers, code ? code : lost;
}
int cuModuleLoadData(void **module, const void *image) { return *module = memory, lost; }
int cuModuleGetFunction(void **function, void *module, const char *name) { return *function = module, lost; }
OK(cuModuleUnload, void *module)
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    return *value = attribute == 0 ? 1024 : attribute == 4 ? *(int *)function : 0, lost;
}
OK(cuFuncSetAttribute, void *function, int attribute, int value)
int cuMemAlloc_v2(address *at, size_t bytes) {
    *at = (address)(size_t)memory;
    return strcmp(fault, "memory") == 0 ? 2 : lost;
}
OK(cuMemFree_v2, address at)
int cuMemAllocAsync(address *at, size_t bytes, void *stream) {
    static address next = 1 << 20;
    *at = next += bytes;
    allocations++, kept++;
    return lost;
}
int cuMemFreeAsync(address at, void *stream) { return kept--, lost; }
int cuMemGetInfo_v2(size_t *available, size_t *total) { return *available = 4096, *total = 1 << 20, lost; }
OK(cuMemcpyHtoD_v2, address to, const void *from, size_t bytes)
OK(cuMemcpyDtoH_v2, void *to, address from, size_t bytes)
OK(cuMemsetD8_v2, address to, unsigned char value, size_t bytes)
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { return *stream = memory, lost; }
int cuStreamCreate(void **stream, unsigned flags) { return *stream = memory, lost; }
OK(cuStreamDestroy_v2, void *stream)
OK(cuStreamSynchronize, void *stream)
int cuEventCreate(void **event, unsigned flags) { return *event = memory, lost; }
int cuEventRecord(void *event, void *stream) { return events++, lost; }
OK(cuEventDestroy_v2, void *event)
OK(cuEventSynchronize, void *event)
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { return waits++, lost; }
OK(cuMemcpyDtoDAsync_v2, address to, address from, size_t bytes, void *stream)
OK(cuMemcpyHtoDAsync_v2, address to, const void *from, size_t bytes, void *stream)
OK(cuMemcpyDtoHAsync_v2, void *to, address from, size_t bytes, void *stream)
OK(cuMemsetD8Async, address to, unsigned char value, size_t bytes, void *stream)
// No memory is page-locked.
int cuPointerGetAttribute(void *data, int attribute, address at) { return 1; }
int cuDeviceGetUuid_v2(char *uuid, int device) { return memset(uuid, 0xab, 16), 0; }
int cuDeviceGetUuid(char *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }
int cuStreamIsCapturing(void *stream, int *status) { return *status = capturing, lost; }
int cuStreamBeginCapture_v2(void *stream, int mode) { return capturing = 1, lost; }
int cuStreamEndCapture(void *stream, void **graph) { return capturing = 0, *graph = memory, lost; }
OK(cuGraphDestroy, void *graph)
int cuGraphInstantiateWithFlags(void **instance, void *graph, unsigned long long flags) { return *instance = memory, lost; }
OK(cuGraphExecDestroy, void *instance)
OK(cuGraphLaunch, void *instance, void *stream)
int cuTensorMapEncodeTiled(void *map) { return maps++, lost; }
int cuLaunchKernel(void *function) {
    int before = lost;
    launches++;
    if (code_of("registers:")) printf("says: a launch with %d registers\n", *(int *)function);
    if (!lost) lost = code_of("lost:");
    return before;
}
int cuLaunchKernelEx(const void *config) { return cuLaunchKernel(0); }

int cuGetErrorName(int error, const char **text) {
    *text = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == 100 ? "CUDA_ERROR_NO_DEVICE"
            : error == 209 ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
            : error == 218 ? "CUDA_ERROR_INVALID_PTX"
            : error == 221 ? "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"
            : error == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
            : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
                           : "CUDA_ERROR";
    return 0;
}
int cuGetErrorString(int error, const char **text) { return *text = "in the driver's words", 0; }
