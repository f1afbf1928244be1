; Functions in the manner of NVIDIA's libdevice, for tests. `llvm-as library.ll` makes library.bc.
target triple = "nvptx64-nvidia-gpulibs"

@flag = private unnamed_addr addrspace(4) constant [11 x i8] c"__CUDA_FTZ\00"

declare i32 @__nvvm_reflect(ptr)

; 1 where denormals are flushed, else 2.
define float @__nv_flushedf(float %x) alwaysinline {
  %asked = call i32 @__nvvm_reflect(ptr addrspacecast (ptr addrspace(4) @flag to ptr))
  %yes = icmp ne i32 %asked, 0
  %result = select i1 %yes, float 1.0, float 2.0
  ret float %result
}

define internal float @product(float %x, float %y) noinline {
  %p = fmul float %x, %y
  ret float %p
}

; x * y + 3, not inlined.
define float @__nv_shiftedf(float %x, float %y) noinline {
  %p = fmul float %x, %y
  %s = fadd float %p, 3.0
  ret float %s
}

; x * x, through a function of the library's own.
define float @__nv_squaref(float %x) alwaysinline {
  %p = call float @product(float %x, float %x)
  ret float %p
}

define double @__nv_unused(double %x) {
  ret double %x
}
