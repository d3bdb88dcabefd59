# `make demo` and `make test` need nothing but Python 3.11+, git and make.
PYTHON ?= python3
BIN := .venv/bin
# Python compiles what it imports and keeps it; pip would compile all of it, which takes a minute or more.
# Containers often forbid to keep it: then each process, each of Ray's too, compiles torch and Ray again.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

.PHONY: demo test test-all test-faults test-gpu compiled lint docs wheel bench clean

demo: .venv/demo
	$(BIN)/rtrain fit configs/resnet.yaml

# Each process takes a file at a time: what the tests of a file share is made once. On two cores a third and a fourth one fill the
# time in which others wait for Ray and for processes of their own. Threads of OpenMP that wait for work leave the cores to them: the
# tests take a fifth less CPU time.
test: .venv/test
	$(MAKE) --no-print-directory --jobs 2 lint compiled
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder --durations 30 --durations-min 5

test-all: .venv/test lint
	$(BIN)/python -m pytest -m "slow or not slow"

# A hundred random faults of each kind, and generated files that are meant to harm: hours.
test-faults: .venv/test
	RTRAIN_TEST_FAULTS=100 $(BIN)/python -m pytest -m "slow or not slow" tests/faults \
		tests/trainers/sklearn/test_estimator_file.py tests/trainers/sklearn/test_mangled_estimators.py \
		tests/trainers/xgboost/test_mangled_xgboost.py tests/trainers/lightgbm/test_mangled_lightgbm.py

# On a machine with a GPU; without one each test is skipped. RTRAIN_TEST_GPU_DEVICE=cpu tries out the tests themselves.
test-gpu: .venv/test
	$(BIN)/python -m pytest -m gpu tests/gpu

# What the tests import, compiled by one process while mypy needs the other core: four that begin together would each compile it.
compiled: .venv/test
	$(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1 || true  # the tests themselves say what is wrong

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

wheel: .venv/test
	$(BIN)/python -m hatchling build -t wheel

docs: .venv/test
	$(BIN)/mkdocs build
	@echo "build/site/index.html"

bench: .venv/test
	$(BIN)/python tests/benchmarks/run.py $(NAMES)

# torch comes first: with it installed, nothing else asks the index for another build of it. With what builds the package installed, pip
# makes no environment of its own for that.
.venv/base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP_INSTALL) torch hatchling editables
	touch $@

.venv/demo: .venv/base
	$(PIP_INSTALL) --no-build-isolation --editable .
	touch $@

.venv/test: .venv/base
	$(PIP_INSTALL) --no-build-isolation --editable ".[test]"
	touch .venv/demo $@

clean:
	rm -rf .venv runs multirun build dist
