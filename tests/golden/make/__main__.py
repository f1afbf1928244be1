"""Makes the data of the golden tests: inputs with fixed seeds, expected outputs by PyTorch.

    python3 tests/golden/make [CASE ...]

Writes CASE/NAME.launch.json and CASE/NAME.safetensors for every launch of the files beside this one; ../README.md says
what is in them. Needs torch and safetensors, no GPU; expected values are computed in fp64 (or exactly, for integers)
and rounded once. Every output starts as a poison value and is longer than what the kernel may write; the rest must stay
as it is.
"""
import sys
import core
import elementwise, maths, rows, matrices, reductions, losses, embeddings, quantization, sequences, attention, products, seeds  # noqa: E401, F401

core.wanted[:] = sys.argv[1:]
for folder in core.wanted or core.folders():
    for old in [*(core.HERE / folder).glob("*.launch.json"), *(core.HERE / folder).glob("*.safetensors")]: old.unlink()
for maker in core.makers: maker()
print(f"{core.written} launches written")
