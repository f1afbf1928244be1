// A driver of CUDA without a GPU, which fails as RTC_STUB says: "old" is a driver of CUDA 11.4, "none" has no GPU, "memory" has
// none left, "registers:N" has 132 multiprocessors and takes N registers for kernels without .maxnreg, up to 152 for others, "init:CODE" does not start, "load:CODE" refuses every module, "lost:CODE" loses its context with the first launch, "order" prints the calls that
// streams and memory get, "no pools" does the same and has no memory pools, "loads:N" takes N registers like "registers:N" and prints how modules are loaded, "options" prints whether modules are loaded with lines of the source (13) and debugged (11). Prints at the end how often it was called for what.
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;
static char memory[1 << 16];
static const char *fault = "";
static address blocks;
static int marks[256];
static int streams, made, events, waits, modules, capturing, lost, launches, allocations, kept, maps;

__attribute__((constructor)) static void start(void) {
    const char *text = getenv("RTC_STUB");
    if (text) fault = text;
}

__attribute__((destructor)) static void end(void) {
    printf("driver: %d launches, %d allocations on streams of which %d are left, %d maps\n", launches, allocations, kept, maps);
    if (events) printf("driver: %d events recorded, %d waits for them\n", events, waits);
    fflush(stdout);
}

// A line of the calls that are printed.
static int order(const char *format, ...) {
    if (strcmp(fault, "order") && strcmp(fault, "no pools")) return lost;
    va_list values;
    va_start(values, format);
    printf("says: ");
    vprintf(format, values);
    printf("\n");
    va_end(values);
    fflush(stdout);
    return lost;
}

// Streams are numbered as they are made, the default one is 0.
static int number(void *stream) { return stream ? (int)((char *)stream - memory) : 0; }

// So is the memory, by name.
static int name_of(address at) { return 'A' + (int)(at >> 20) - 1; }

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
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : attribute == 111 ? 1024 : attribute == 115 ? strcmp(fault, "no pools") != 0 : 1 << 17;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = memory, 0; }
OK(cuDevicePrimaryCtxRelease_v2, int device)
int cuCtxSetCurrent(void *context) { return 0; }
int cuCtxGetCurrent(void **context) { return *context = memory, 0; }
int cuCtxSynchronize(void) { return order("wait for all work"); }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, lost; }
// A module is the place of its registers.
static void *module_of(const char *kind, const char *image) {
    int *registers = (int *)memory + ++modules;
    *registers = code_of("registers:") + code_of("loads:");
    const char *most = strstr(image, ".maxnreg ");
    if (*registers && most) *registers = atoi(most + 9) < 152 ? atoi(most + 9) : 152;
    if (code_of("loads:")) printf("says: %s of %d registers\n", kind, *registers), fflush(stdout);
    return registers;
}
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values) {
    int code = code_of("load:");
    for (unsigned i = 0; strcmp(fault, "options") == 0 && i < n; i++)
        if (options[i] == 11 || options[i] == 13) printf("says: option %d is %d\n", options[i], (int)(size_t)values[i]);
    if (code) strncpy(values[0], "ptxas application ptx input, line 1; fatal", (size_t)values[1]);
    return *module = module_of("PTX", image), code ? code : lost;
}
int cuModuleLoadData(void **module, const void *image) { return *module = module_of("machine code", image), lost; }
int cuModuleGetFunction(void **function, void *module, const char *name) { return *function = module, lost; }
OK(cuModuleUnload, void *module)
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    return *value = attribute == 0 ? 1024 : attribute == 4 ? *(int *)function : 0, lost;
}
OK(cuFuncSetAttribute, void *function, int attribute, int value)
int cuMemAlloc_v2(address *at, size_t bytes) {
    if (strcmp(fault, "memory") == 0) return 2;
    *at = ++blocks << 20;
    return order("allocate %c", name_of(*at));
}
int cuMemFree_v2(address at) { return order("free %c", name_of(at)); }
int cuMemAllocAsync(address *at, size_t bytes, void *stream) {
    if (strcmp(fault, "memory") == 0) return 2;
    *at = ++blocks << 20;
    allocations++, kept++;
    return order("allocate %c on stream %d", name_of(*at), number(stream));
}
int cuMemFreeAsync(address at, void *stream) { return kept--, order("free %c on stream %d", name_of(at), number(stream)); }
int cuDeviceGetMemPool(void **pool, int device) { return *pool = memory, lost; }
int cuMemPoolSetAttribute(void *pool, int attribute, unsigned long long *value) {
    return attribute == 4 ? order("the pool keeps %llu bytes", *value) : 1;
}
int cuMemGetInfo_v2(size_t *available, size_t *total) { return *available = 4096, *total = 1 << 20, lost; }
OK(cuMemcpyHtoD_v2, address to, const void *from, size_t bytes)
int cuMemcpyDtoH_v2(void *to, address from, size_t bytes) { return order("read %c", name_of(from)); }
OK(cuMemsetD8_v2, address to, unsigned char value, size_t bytes)
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { return *stream = memory + ++streams, lost; }
int cuStreamCreate(void **stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
int cuStreamDestroy_v2(void *stream) { return order("destroy stream %d", number(stream)); }
OK(cuStreamSynchronize, void *stream)
int cuEventCreate(void **event, unsigned flags) { return *event = marks + ++made % 256, lost; }
int cuEventRecord(void *event, void *stream) { return *(int *)event = number(stream), events++, lost; }
OK(cuEventDestroy_v2, void *event)
OK(cuEventSynchronize, void *event)
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    waits++;
    return order("stream %d waits for stream %d", number(stream), *(int *)event);
}
int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *stream) {
    return order("copy %c to %c on stream %d", name_of(from), name_of(to), number(stream));
}
OK(cuMemcpyHtoDAsync_v2, address to, const void *from, size_t bytes, void *stream)
OK(cuMemcpyDtoHAsync_v2, void *to, address from, size_t bytes, void *stream)
int cuMemsetD8Async(address to, unsigned char value, size_t bytes, void *stream) {
    return order("zero %c on stream %d", name_of(to), number(stream));
}
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
int cuGraphLaunch(void *instance, void *stream) { return order("launch a graph on stream %d", number(stream)); }
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
