"""Writes a, b and c of matmul.json: python make_tensors.py M N K"""

import json
import sys

import numpy as np
from matmul import inputs

M, N, K = (int(word) for word in sys.argv[1:])
a, b = inputs(M, N, K)
tensors = {"a": a, "b": b, "c": np.zeros((M, N), np.float16)}
header, end = {}, 0
for name, array in tensors.items():
    header[name] = {"dtype": "F16", "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
    end += array.nbytes
text = json.dumps(header).encode()
with open("matmul.safetensors", "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text)
    for array in tensors.values():
        file.write(array.tobytes())
