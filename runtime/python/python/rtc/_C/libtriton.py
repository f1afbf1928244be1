"""What programs use of Triton's compiled part: matrix products by cuBLAS, which PyTorch has, too."""

import types


class CublasLt:
    """Matrix products by cuBLAS, for comparison. The workspace is PyTorch's own."""

    def __init__(self, workspace=None):
        pass

    def matmul(self, a, b, c):
        """Writes `a @ b.T` into `c`."""
        self.gemm(a, b, c, c, 1.0, 0.0)

    def gemm(self, a, b, c, d, alpha, beta):
        """Writes `alpha * a @ b.T + beta * c` into `d`."""
        import torch
        if a.dtype.itemsize == 1:
            one = torch.ones((), device=a.device)
            product = torch._scaled_mm(a, b.T, scale_a=one, scale_b=one, out_dtype=d.dtype)
            d.copy_(product if (alpha, beta) == (1.0, 0.0) else alpha * product + beta * c)
        elif beta == 0.0 and alpha == 1.0:
            torch.matmul(a, b.T, out=d)
        else:
            torch.addmm(c, a, b.T, beta=beta, alpha=alpha, out=d)


nvidia = types.SimpleNamespace(cublas=types.SimpleNamespace(CublasLt=CublasLt))


def __getattr__(name):
    raise AttributeError(f"rtc has no `triton._C.libtriton.{name}`")
