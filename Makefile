# make [TARGET] [PRESET=release|dev|asan|tsan|no-cuda] [CMAKE_ARGS=-DGALLOP_TORCH=DIR] [PREFIX=/usr/local]
PRESET ?= release
PREFIX ?= /usr/local
BUILD := build/$(PRESET)
# Two more than the number of cores, as scenarios wait for half of their time; each may need a gigabyte of memory.
TEST_JOBS ?= $(shell n=$$(nproc); echo $$(((n < 4 ? n : 4) + 2)))

.PHONY: build train test test-rerun test-long interop chaos conformance parity lint tidy format benchmark install clean help configure

build: configure ## build everything (the default)
	cmake --build --preset $(PRESET)

train: configure ## build the program and train on Fashion-MNIST
	cmake --build --preset $(PRESET) --target gallop
	$(BUILD)/gallop train fashion-mnist

test: build ## build and run every test except the long ones
	tools/run-tests --preset $(PRESET) --parallel $(TEST_JOBS) -LE long

test-rerun: build ## make test, then run each failed test once more, alone, and report flaky ones
	tools/run-tests --rerun --preset $(PRESET) --parallel $(TEST_JOBS) -LE long $(if $(SUMMARY),--summary $(SUMMARY))

test-long: build ## build and run the long variants of tests (about half an hour)
	tools/run-tests --preset $(PRESET) --parallel $(TEST_JOBS) -L long

interop: build ## test with TensorBoard, MLflow, Optuna, torchrun, Open MPI, Slurm, ..., installed first (15 minutes)
	tools/interop $(BUILD)

chaos: build ## inject the faults of docs/faults.md and compare weights (an hour)
	tests/chaos/tune.py $(BUILD)/tests/tune_program --storage sqlite --kills 50 --trials 400
	tests/chaos/tune.py $(BUILD)/tests/tune_program --storage postgresql --kills 50 --trials 300
	tests/chaos/tune.py $(BUILD)/tests/tune_program --storage sqlite --kills 0 --workers 64 --trials 10000 --milliseconds 0
	tests/chaos/tune.py $(BUILD)/tests/tune_program --storage postgresql --kills 0 --workers 64 --trials 10000 --milliseconds 0
	tests/chaos/log.py $(BUILD)/tests/log_program --kills 100
	tests/chaos/kill.py $(BUILD)/gallop --signal KILL --kills 20
	tests/chaos/kill.py $(BUILD)/gallop --signal TERM --kills 20
	tests/chaos/kill.py $(BUILD)/gallop --signal KILL --kills 20 --model mlp --seed 2
	tests/chaos/kill.py $(BUILD)/gallop --signal KILL --kills 20 --model exported --seed 3
	tests/chaos/kill_rank.py $(BUILD)/gallop --processes 2 --signal KILL --kills 100
	tests/chaos/kill_rank.py $(BUILD)/gallop --processes 4 --signal KILL --kills 100 --model mlp
	tests/chaos/kill_rank.py $(BUILD)/gallop --processes 2 --signal KILL --kills 50 --at-saves
	tests/chaos/kill_rank.py $(BUILD)/gallop --processes 2 --signal SEGV --kills 20 --model mlp
	tests/chaos/kill_rank.py $(BUILD)/gallop --processes 2 --signal STOP --kills 10 --model mlp --epochs 200
	tests/chaos/kill_rank.py $(BUILD)/gallop --processes 2 --signal STOP --pause 2.5 --kills 10
	tests/chaos/kill_rank.py $(BUILD)/gallop --processes 2 --mtbf 60 --epochs 1600 --checkpoint-every "2 s"
	tests/chaos/kill_rank.py $(BUILD)/gallop --layouts zero-3 --kills 100
	tests/chaos/kill_rank.py $(BUILD)/gallop --layouts pipeline --kills 100
	tests/chaos/kill_rank.py $(BUILD)/gallop --layouts tensor --kills 100
	tests/chaos/save_calls.py $(BUILD)/gallop --calls start,saves --faults kill,tear,5,28,full
	tests/chaos/save_calls.py $(BUILD)/gallop --processes 2 --calls start,last-save --faults kill,28
	tests/chaos/save_calls.py $(BUILD)/gallop --processes 2 --rank 1 --faults kill,28
	tests/chaos/stop.py $(BUILD)/gallop
	tests/chaos/disk.py $(BUILD)/gallop
	tests/chaos/damage.py $(BUILD)/gallop
	tests/chaos/processes.py $(BUILD)/gallop --counts 4,3,12,6,2,1
	tests/chaos/clock.py $(BUILD)/gallop
	tests/chaos/two_launchers.py $(BUILD)/gallop
	tests/chaos/orphans.py $(BUILD)/gallop --processes 4 --kills 100
	tests/chaos/memory.py $(BUILD)/gallop
	tests/hosts/hosts.py $(BUILD)/gallop --rounds 3 --within 10

conformance: build ## compare 10,000 random functions and 200 random loops with their references (GALLOP_TEST_SEED: others)
	GALLOP_TEST_COUNT=10000 $(BUILD)/tests/test_compile --gtest_filter='RandomGraphs.*'
	GALLOP_TEST_COUNT=200 $(BUILD)/tests/test_compile --gtest_filter='*RandomLoops.*'

parity: build ## write docs/parity.md: differences of optimizers and schedules from PyTorch
	tests/parity/write_parity.py $(BUILD)/tests docs/parity.md

benchmark: configure ## compare steps with PyTorch, time the first step and one training (about 15 minutes)
	cmake --preset $(PRESET) -DGALLOP_BENCHMARKS=ON
	cmake --build --preset $(PRESET)
	benchmarks/step/run --bench $(BUILD)/bench_step
	benchmarks/step/run --bench $(BUILD)/bench_step --overhead
	benchmarks/startup/run.py $(BUILD)/gallop fashion-mnist
	benchmarks/accuracy/run.py $(BUILD)/gallop --seeds 1 fashion-mnist

lint: ## check format, layers, vocabulary, links and, with clang-tidy, the changes since tools/tidy.base
	tools/setup --lint
	cmake --preset release $(CMAKE_ARGS)
	tools/format --check
	tools/check-layers
	tools/check-vocabulary
	tools/check-links
	cmake --build build/release --target plugin_abi
	tools/tidy -p build/release --changed

tidy: ## check all sources with clang-tidy (14 minutes on two cores); if clean, set tools/tidy.base to this commit
	tools/setup --lint
	cmake --preset release $(CMAKE_ARGS)
	cmake --build build/release --target plugin_abi
	tools/tidy -p build/release --set-base

format: ## format the C++ files
	tools/setup --lint
	tools/format

install: build ## install into PREFIX
	cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove every build folder
	rm -rf build

help: ## list the targets
	@head -n 1 $(MAKEFILE_LIST) | cut -c 3-
	@sed -n 's/^\([a-z-]*\):.*## /  \1: /p' $(MAKEFILE_LIST)

configure:
	tools/setup
	cmake --preset $(PRESET) $(CMAKE_ARGS)
