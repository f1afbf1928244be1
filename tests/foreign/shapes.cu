// Kernels whose blocks have several dimensions, that nvcc compiles to the PTX of this folder; see make.py.

// y is x with rows and columns exchanged, in tiles of 16 x 16 by blocks of 16 x 8 threads.
extern "C" __global__ void transpose(const float *x, float *y, int rows, int columns) {
    __shared__ float tile[16][17];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    for (int i = 0; i < 16; i += blockDim.y)
        if (row + i < rows && column < columns) tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * columns + column];
    __syncthreads();
    column = blockIdx.y * 16 + threadIdx.x, row = blockIdx.x * 16 + threadIdx.y;
    for (int i = 0; i < 16; i += blockDim.y)
        if (row + i < columns && column < rows) y[(row + i) * rows + column] = tile[threadIdx.x][threadIdx.y + i];
}

// Each element of a cube with those before and after it along all three axes, by blocks of 8 x 4 x 2 threads.
extern "C" __global__ void neighbours(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i >= n || j >= n || k >= n) return;
    int at = (k * n + j) * n + i, sum = x[at];
    if (i > 0) sum += x[at - 1];
    if (i < n - 1) sum += x[at + 1];
    if (j > 0) sum += x[at - n];
    if (j < n - 1) sum += x[at + n];
    if (k > 0) sum += x[at - n * n];
    if (k < n - 1) sum += x[at + n * n];
    y[at] = sum;
}
