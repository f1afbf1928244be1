/* Loads the best variant for the device of the current context; `exact` ones are for their capability alone. */
static CUresult rtc_load(const struct rtc_variant *variants, int count, bool exact, const char *symbol, CUmodule *module,
                         CUfunction *function, int *chosen) {
    CUdevice device;
    int major = 0, minor = 0, best = -1;
    CUresult result = cuCtxGetDevice(&device);
    if (result == CUDA_SUCCESS)
        result = cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (result == CUDA_SUCCESS)
        result = cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (result != CUDA_SUCCESS)
        return result;
    int capability = major * 10 + minor;
    for (int i = 0; i < count; i++) {
        bool only = exact || variants[i].only;
        bool runs = only ? variants[i].capability == capability : variants[i].capability <= capability;
        /* Among those of one capability the last one is for that alone. */
        if (runs && (best < 0 || variants[i].capability >= variants[best].capability))
            best = i;
    }
    if (best < 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    result = cuModuleLoadData(module, variants[best].ptx);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuModuleGetFunction(function, *module, symbol);
    if (result == CUDA_SUCCESS && variants[best].shared_bytes > 48 * 1024)
        result = cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    (int)variants[best].shared_bytes);
    if (result == CUDA_SUCCESS && variants[best].large_cluster)
        result = cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (result != CUDA_SUCCESS)
        cuModuleUnload(*module);
    else
        *chosen = best;
    return result;
}
