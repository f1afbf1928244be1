# Two commands matter: `make run` and `make test`. Both install what is missing first.

# What `make run` launches: arguments of `rtc run`.
EXAMPLE ?= examples/softmax/softmax.rt --launch examples/softmax/launch.json \
	--check examples/softmax/expected.safetensors --tolerance 1e-6 --keep out/softmax

# Tests assemble PTX with NVIDIA's assembler where setup could fetch it; looked up anew for each recipe.
ifeq ($(origin RTC_PTXAS),undefined)
export RTC_PTXAS = $(shell [ -x .tools/bin/ptxas ] && echo $(CURDIR)/.tools/bin/ptxas || echo ptxas)
endif

.PHONY: help setup run test fuzz examples release dist wheel book check bench bench-gpu clean

help:
	@echo "make run      set up, build, run the softmax example (GPU if there is one, else the emulator)"
	@echo "make test     set up and run all tests; what was skipped for want of a tool is listed at the end"
	@echo "make fuzz     kernels written at random, for SECONDS=600 on JOBS=1 cores from SEED on, in every stage and the emulator"
	@echo "make examples test the examples, each a crate of its own, and one outside of the repository"
	@echo "make setup    install what is missing, nothing else"
	@echo "make release  build the rtc binary into target/release/rtc (scripts/release makes the files of a release)"
	@echo "make dist     build rtc for carrying to another machine: out/rtc.xz"
	@echo "make wheel    build the Python package: out/rtc_triton-*.whl"
	@echo "make book     build the book of docs/ into out/book (its tool is built once; no network after that)"
	@echo "make check    formatting, lints of Rust and Python, dependencies, documentation, sets of features, the interface"
	@echo "make bench-gpu times kernels beside Triton, PyTorch, other libraries that are installed and kernels by hand, on a machine"
	@echo "              with a GPU, PyTorch and the wheel (page: out/bench-gpu.html; make bench-gpu SUITE=--plan lists it), and"
	@echo "              Triton's tutorials through the wheel and through Triton (make bench-gpu TUTORIALS=FOLDER)"
	@echo "make bench    benchmarks, beside this machine's baseline (make bench SAVE=1 makes the present state that baseline)"

setup:
	@scripts/setup

run: setup
	cargo run --release -p rtc-cli -- run $(EXAMPLE)

test: setup
	@scripts/test

fuzz: setup
	@scripts/fuzz kernels $(or $(SECONDS),600) $(or $(JOBS),1)

examples: setup
	@scripts/examples

release: setup
	cargo build --release -p rtc-cli

dist: setup
	@scripts/dist

wheel: setup
	@scripts/wheel

book:
	@scripts/book

check:
	@scripts/setup --check
	@scripts/check

# What the page of `make bench-gpu` is made with, such as `--only attention --html out/attention.html`.
SUITE ?= --html out/bench-gpu.html --json out/bench-suite.json
# What the comparison with kernels by hand is given, such as `--only matmul --svg out/roofline.svg`.
ARGUMENTS ?= --svg out/roofline.svg --json out/bench-gpu.json
# The folder with Triton's tutorials (python/tutorials of its repository), or single programs, which bench-gpu runs as they are.
TUTORIALS ?=

bench-gpu:
	mkdir -p out
	python3 benches/gpu/suite.py $(SUITE)
	if [ -x $${LLVM:=/usr/lib/llvm-22/bin}/llc ]; then cd benches/gpu && LLVM=$$LLVM python3 -m hopper.build ../../out/hopper; fi
	python3 benches/gpu/run.py $(ARGUMENTS)
	python3 benches/gpu/programs.py --json out/bench-programs.json $(TUTORIALS)

bench: setup
	@scripts/bench $(if $(SAVE),--save)

clean:
	cargo clean
	rm -rf out
