
/* What a kernel fixes of a tensor map; the box stands innermost dimension first. */
struct rtc_map {
    CUtensorMapDataType type;
    unsigned int element_bytes;
    unsigned int rank;
    cuuint32_t box[5];
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    /* Whether the box has no more rows than the tensor. */
    bool shrinks;
};

/* Makes the map of a tensor; sizes and strides count elements and stand outermost first. */
static CUresult rtc_encode(CUtensorMap *map, const struct rtc_map *form, CUdeviceptr address, const int64_t *shape,
                           const int64_t *strides, bool nan) {
    static const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    cuuint64_t dims[5], bytes[5];
    cuuint32_t box[5];
    if (address % 16 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int axis = 0; axis < form->rank; axis++) {
        unsigned int to = form->rank - 1 - axis;
        /* A map has no empty dimension; the kernel keeps to the sizes that it is told. */
        int64_t size = shape[axis] < 1 ? 1 : shape[axis];
        if (size > (INT64_C(1) << 32))
            return CUDA_ERROR_INVALID_VALUE;
        dims[to] = (cuuint64_t)size;
        box[to] = form->shrinks && to == 1 && dims[to] < form->box[to] ? (cuuint32_t)dims[to] : form->box[to];
        bytes[to] = 16;
        if (to == 0) {
            if (strides[axis] != 1)
                return CUDA_ERROR_INVALID_VALUE;
        } else if (size > 1) {
            /* The index of a dimension with one element is 0, whatever its stride. */
            if (strides[axis] < 0 || strides[axis] >= (INT64_C(1) << 40) / form->element_bytes)
                return CUDA_ERROR_INVALID_VALUE;
            bytes[to] = (cuuint64_t)strides[axis] * form->element_bytes;
            if (bytes[to] % 16 != 0)
                return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return cuTensorMapEncodeTiled(map, form->type, form->rank, (void *)(uintptr_t)address, dims, bytes + 1, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, form->swizzle, form->promotion,
                                  nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                                      : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
