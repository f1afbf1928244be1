// The driver that does nothing, which also keeps what the last launch was given, and which stream waited last for which.
#define cuEventRecord quiet_cuEventRecord
#define cuEventQuery quiet_cuEventQuery
#define cuStreamWaitEvent quiet_cuStreamWaitEvent
#define cuLaunchKernel quiet_cuLaunchKernel
#define cuLaunchKernelEx quiet_cuLaunchKernelEx
#include "../../../../benches/stub_driver.c"
#undef cuLaunchKernel
#undef cuLaunchKernelEx
#undef cuEventRecord
#undef cuEventQuery
#undef cuStreamWaitEvent

unsigned char launched_params[256];
size_t launched_size;
unsigned launched_grid[3];
void *launched_stream;
unsigned long launches;
int launched_device;
void *recorded, *waited_for, *waiting;
// The status of all events: 600 is "not ready".
int event_status;

// Memory that streams have: how often it was asked for and given back.
unsigned long allocated, freed;
int cuMemAllocAsync(address *at, size_t bytes, void *stream) { return allocated++, *at = (address)(size_t)memory, 0; }
int cuMemFreeAsync(address at, void *stream) { return freed++, 0; }
int cuTensorMapEncodeTiled(void *map) { return memset(map, 0, 128), 0; }

int cuEventRecord(void *event, void *stream) { return recorded = stream, 0; }
int cuEventQuery(void *event) { return event_status; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    return waiting = stream, waited_for = recorded, 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
    launches++;
    launched_device = current - memory;
    launched_grid[0] = gx, launched_grid[1] = gy, launched_grid[2] = gz;
    launched_stream = stream;
    launched_size = extra ? *(size_t *)extra[3] : 0;
    if (launched_size > sizeof launched_params) return 1;
    if (extra) memcpy(launched_params, extra[1], launched_size);
    return 0;
}

struct config { unsigned gx, gy, gz, bx, by, bz, shared; void *stream, *attributes; unsigned count; };

// The same for launches with attributes.
int cuLaunchKernelEx(const struct config *c, void *function, void **params, void **extra) {
    return cuLaunchKernel(function, c->gx, c->gy, c->gz, c->bx, c->by, c->bz, c->shared, c->stream, params, extra);
}
