# Two commands matter: `make demo` and `make test`. Both make the virtual environment they need.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Numerical libraries must not start threads of their own under the test workers.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-all format bench clean

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1" --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev --editable .
	touch $@

demo: $(VENV)/.ready
	$(BIN)/sfumato demo

test: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 -m "not slow"

test-all: $(VENV)/.ready
	$(BIN)/pytest -n 2

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/solver.py
	$(BIN)/python benchmarks/tables.py

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
