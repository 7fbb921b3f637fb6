# Two commands matter: `make demo` and `make test`. Both make the virtual environment they need.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PEERS  ?= .venv-peers
# Numerical libraries must not start threads of their own under the test workers.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-all format bench soak clean

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

# The peers ask for other versions than we do: they live in an environment of their own.
$(PEERS)/.ready: benchmarks/peers-constraints.txt constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade "pip>=25.1" --constraint constraints.txt
	$(PEERS)/bin/python -m pip install --quiet --constraint benchmarks/peers-constraints.txt \
		pure-ldp multi-freq-ldpy diffprivlib opendp statsmodels cryptography
	touch $@

bench: $(VENV)/.ready $(PEERS)/.ready
	$(BIN)/python benchmarks/solver.py
	$(PEERS)/bin/python benchmarks/peers.py > $(PEERS)/peers.json
	$(BIN)/python benchmarks/streams.py $(PEERS)/peers.json
	$(BIN)/python benchmarks/tables.py

soak: $(VENV)/.ready
	$(BIN)/python benchmarks/soak.py

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(PEERS) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
