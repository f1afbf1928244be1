"""Matrix products and attention for sm_90a written by hand, as small generators of LLVM IR: what the compiler is measured against.

`build.py` makes PTX of them by LLVM's `opt` and `llc`; `variants.py` names those that `run.py` times.
"""
