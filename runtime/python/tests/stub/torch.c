// The C interface of PyTorch that launches use, over the tensors of `cases/stub_torch.py`.
#include <stdint.h>

struct tensor { uint64_t address; int32_t dtype, device; };
int32_t current_device;
uint64_t current_stream;

// A tensor is the address of an object of Python, a text of bytes, whose content begins at 32.
static struct tensor *of(void *tensor) { return (struct tensor *)(*(char **)tensor + 32); }
int aoti_torch_get_data_ptr(void *t, uint64_t *out) { return *out = of(t)->address, 0; }
int aoti_torch_get_dtype(void *t, int32_t *out) { return *out = of(t)->dtype, 0; }
int aoti_torch_get_device_type(void *t, int32_t *out) { return *out = of(t)->device, 0; }
int aoti_torch_get_current_device_index(int32_t *out) { return *out = current_device, 0; }
int aoti_torch_get_current_cuda_stream(int32_t device, uint64_t *out) { return *out = current_stream + device, 0; }
int aoti_torch_device_type_cuda(void) { return 1; }
int aoti_torch_dtype_float16(void) { return 5; }
int aoti_torch_dtype_float32(void) { return 6; }
