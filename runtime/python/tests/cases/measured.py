"""`benches/gpu/programs.py`: programs written for Triton are run by `python -m rtc`, and their figures are read; and how
`benches/gpu/ptxas_defect.py` goes on after a fault of the GPU."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "../../../../benches/gpu/programs.py")
sys.path.insert(0, os.path.dirname(SCRIPT))

import programs

PROGRAM = '''
import numpy as np, triton, triton.language as tl

@triton.jit
def fill(x, VALUE: tl.constexpr):
    tl.store(x, VALUE)

@triton.testing.perf_report([triton.testing.Benchmark(
    x_names=["N", "K"], x_vals=[(128, 2), (256, 2)], line_arg="value", line_vals=[1.5, 2.25], line_names=["Triton [FP16]", "cuBLAS"],
    plot_name="fill", ylabel="TFLOPS", args={})])
def bench(N, K, value):
    x = np.zeros(1, np.float32)
    fill[(1,)](x, value)
    return N + float(x[0])

bench.run(save_path=".", print_data=True)
'''

#: As pandas and the profiler of Triton print.
OF_TRITON = """M=32, N=32, K=32, verification naive vs: \n  Torch: ...\r  Torch: ok
matmul-performance-fp16:
        M       N       K      cuBLAS      Triton
0   256.0   256.0   256.0    4.096000    3.640889
1  4096.0  4096.0  4096.0  620.250000         NaN
other:
   N_CTX  Triton [FP16] (TFLOPS)
0  1024.0             236.125000
\x1b[31m5.250\x1b[0m ROOT
├─ \x1b[31m610.125\x1b[0m 1.802 cublas [M=8192, N=8192, K=512]
│  └─ 610.125 1.802 sm90_xmma_gemm
└─ 598.500 matmul_kernel [M=8192, N=8192, K=512]
"""


class Programs(unittest.TestCase):
    def test_figures(self):
        found = programs.figures(OF_TRITON)
        square = lambda n: f"M={n}, N={n}, K={n}"
        self.assertEqual(found[:3], [(("matmul-performance-fp16", square(256), "cuBLAS"), 4.096),
                                     (("matmul-performance-fp16", square(256), "Triton"), 3.640889),
                                     (("matmul-performance-fp16", square(4096), "cuBLAS"), 620.25)])
        self.assertEqual(found[4:], [(("other", "N_CTX=1024", "Triton [FP16]"), 236.125),
                                     (("profile", "", "cublas [M=8192, N=8192, K=512]"), 610.125),
                                     (("profile", "", "matmul_kernel [M=8192, N=8192, K=512]"), 598.5)])

    def test_the_tutorials_of_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("01-vector-add.py", "03-matrix.py", "06-attention.py", "09-persistent.py", "03-notes.txt"):
                open(os.path.join(folder, name), "w").close()
            found = [os.path.basename(path) for path in programs.programs([folder])]
        self.assertEqual(found, ["03-matrix.py", "06-attention.py", "09-persistent.py"])

    def run_on(self, text):
        with tempfile.TemporaryDirectory() as folder:
            program, report = os.path.join(folder, "program.py"), os.path.join(folder, "report.json")
            with open(program, "w") as file:
                file.write(text)
            done = subprocess.run([sys.executable, SCRIPT, program, "--json", report], capture_output=True, text=True)
            with open(report) as file:
                return done, json.load(file)

    def test_a_program_through_the_wheel(self):
        done, report = self.run_on(PROGRAM)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([(row["case"], row["column"], row["rtc"]) for row in report],
                         [("N=128, K=2", "Triton [FP16]", 129.5), ("N=128, K=2", "cuBLAS", 130.25),
                          ("N=256, K=2", "Triton [FP16]", 257.5), ("N=256, K=2", "cuBLAS", 258.25)])
        self.assertIn("fill N=128, K=2 cuBLAS", done.stdout)

    def test_a_program_that_fails(self):
        done, report = self.run_on("import triton\nraise ValueError('no such size')\n")
        self.assertEqual((done.returncode, report), (1, []))
        self.assertIn("rtc: exit status 1: ValueError: no such size", done.stdout)


#: Stands for a process of `ptxas_defect.py`, which dies in the second case, and in the fourth without a word.
ASSEMBLER = """import json, os, sys
name, first = sys.argv[2], int(sys.argv[4])
assert sys.argv[1::2][:2] == ["--only", "--first"] and sys.argv[5:] == ["--quick"] and name == "ptxas"
print("what a compiler prints")
for number in range(first, 6):
    print(json.dumps(dict(begun=number)), flush=True)
    if number == 1:
        sys.exit("CUDA error: an illegal memory access was encountered")
    if number == 3:
        os.kill(os.getpid(), 9)
    print(json.dumps(dict(done=number, result=dict(right=True))), flush=True)
"""


class Assemblers(unittest.TestCase):
    def test_a_fault_ends_one_case_alone(self):
        from rtc import _as_triton
        _as_triton.install()
        import ptxas_defect
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file, mock.patch.object(ptxas_defect, "cases", lambda quick: iter(range(6))):
            file.write(ASSEMBLER)
            file.flush()
            found = ptxas_defect.results_of("ptxas", True, [sys.executable, file.name])
        self.assertEqual([found[number]["right"] for number in range(6)], [True, False, True, False, True, True])
        self.assertEqual(found[1]["fault"], "CUDA error: an illegal memory access was encountered")
        self.assertEqual(found[3]["fault"], "exit status -9")


if __name__ == "__main__":
    unittest.main()
