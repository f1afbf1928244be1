// Kernels that nvcc compiles to the PTX of this folder; see make.py.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// The sum of all elements: in tiles of a warp, then by atomics.
extern "C" __global__ void group_sum(const float *x, float *sum, int n) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    float own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
    own = cg::reduce(warp, own, cg::plus<float>());
    if (warp.thread_rank() == 0) atomicAdd(sum, own);
}

// c = a b in tiles of 16 x 16, each by a block of 256 threads.
extern "C" __global__ void tiled_matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float ta[16][16], tb[16][16];
    int row = threadIdx.x / 16, column = threadIdx.x % 16;
    int i = blockIdx.x / (n / 16) * 16 + row, j = blockIdx.x % (n / 16) * 16 + column;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        ta[row][column] = a[i * n + k + column];
        tb[row][column] = b[(k + row) * n + j];
        __syncthreads();
        for (int t = 0; t < 16; t++) sum += ta[row][t] * tb[t][column];
        __syncthreads();
    }
    c[i * n + j] = sum;
}

// Sums of all elements up to each, of 256 elements by one block.
extern "C" __global__ void block_scan(const int *x, int *y) {
    __shared__ int warps[8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, v = x[threadIdx.x];
    for (int by = 1; by < 32; by *= 2) {
        int other = __shfl_up_sync(0xffffffff, v, by);
        if (lane >= by) v += other;
    }
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    for (int w = 0; w < warp; w++) v += warps[w];
    y[threadIdx.x] = v;
}
