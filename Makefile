# Two commands matter: `make demo` and `make test`. Both make the virtual environment they need.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PEERS  ?= .venv-peers
RESULTS := benchmarks/results
# Numerical libraries must not start threads of their own under the test workers.
export OPENBLAS_NUM_THREADS ?= 1
# Hundreds of processes begin here: each would compile the sources, and each worker the tests.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-engines test-all docs wheel sbom hashes format bench bench-compare soak clean clean-loops

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
	$(BIN)/python -m tests.servers --install postgresql chromium chromium-driver mosquitto
	$(BIN)/python -m tests.warm
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not engines"

# Real engines, one after another: each takes all cores itself.
test-engines: $(VENV)/.ready
	$(BIN)/python -m tests.servers --install openjdk-17-jre-headless
	$(BIN)/pytest -m "engines and not slow" tests/engines

test-all: $(VENV)/.docs-ready
	$(BIN)/python -m tests.servers --install postgresql chromium chromium-driver mosquitto
	$(BIN)/pytest -n 2 --dist worksteal -m "not engines"
	$(BIN)/pytest -m engines tests/engines
	$(MAKE) docs
	$(BIN)/python tests/mutants.py --jobs 2

# The documentation as a site that needs no network: build/site/index.html. A warning is an error.
$(VENV)/.docs-ready: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	touch $@

docs: $(VENV)/.docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# A wheel that brings its loops along, for this version of python and this kind of processor.
wheel: $(VENV)/.ready
	HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(BIN)/python -m hatchling build --target wheel --directory dist

# What an installation with all extras for servers consists of: dist/sfumato.cdx.json (CycloneDX).
SHIPPED := .[client,mqtt,postgres,service]
dist/environment/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv dist/environment
	dist/environment/bin/python -m pip install --quiet --upgrade "pip>=25.1" --constraint constraints.txt
	dist/environment/bin/python -m pip install --quiet --constraint constraints.txt "$(SHIPPED)"
	touch $@

sbom: $(VENV)/.ready dist/environment/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group release
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file dist/sfumato.cdx.json dist/environment

# Their hashes, for `pip install --require-hashes`; of this version of python and kind of machine.
hashes: $(VENV)/.ready
	mkdir -p dist
	$(BIN)/python -m pip install --quiet --dry-run --ignore-installed --report dist/report.json \
		--constraint constraints.txt "$(SHIPPED)"
	$(BIN)/python packaging/pinned_hashes.py < dist/report.json > dist/hashes.txt
	rm dist/report.json

# The peers ask for other versions than we do: they live in an environment of their own.
$(PEERS)/.ready: benchmarks/peers-constraints.txt constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade "pip>=25.1" --constraint constraints.txt
	$(PEERS)/bin/python -m pip install --quiet --constraint benchmarks/peers-constraints.txt \
		pure-ldp multi-freq-ldpy diffprivlib opendp statsmodels cryptography
	touch $@

# Everything in one run, so that ratios mean something; tables and figures are kept.
bench: wheel $(PEERS)/.ready
	mkdir -p $(RESULTS)
	$(BIN)/python -m tests.servers --install postgresql mosquitto mosquitto-clients openjdk-17-jre-headless
	$(BIN)/python benchmarks/solver.py > $(RESULTS)/solver.md
	$(PEERS)/bin/python benchmarks/peers.py > $(RESULTS)/peers.json
	$(BIN)/python benchmarks/streams.py $(RESULTS)/peers.json > $(RESULTS)/streams.md
	$(BIN)/python benchmarks/fleet_limit.py > $(RESULTS)/fleet_limit.md
	$(BIN)/python benchmarks/threads.py > $(RESULTS)/threads.md
	$(BIN)/python benchmarks/tables.py --growth $(RESULTS)/growth.json > $(RESULTS)/tables.md
	$(BIN)/python benchmarks/readers.py > $(RESULTS)/readers.md
	$(BIN)/python benchmarks/first_command.py > $(RESULTS)/first_command.md
	$(BIN)/python benchmarks/coins.py > $(RESULTS)/coins.md
	$(BIN)/python benchmarks/pipes.py > $(RESULTS)/pipes.md
	$(BIN)/python benchmarks/batches.py > $(RESULTS)/batches.md
	$(BIN)/python benchmarks/recovery.py > $(RESULTS)/recovery.md
	$(BIN)/python benchmarks/learning_costs.py > $(RESULTS)/learning_costs.md
	$(BIN)/python benchmarks/temporal.py > $(RESULTS)/temporal.md
	$(BIN)/python benchmarks/series.py > $(RESULTS)/series.md
	$(BIN)/python benchmarks/disclosure.py > $(RESULTS)/disclosure.md
	$(BIN)/python -m benchmarks.stores > $(RESULTS)/stores.md
	$(BIN)/python -m benchmarks.live > $(RESULTS)/live.md
	$(BIN)/python -m benchmarks.service > $(RESULTS)/service.md
	$(BIN)/python -m benchmarks.bridge > $(RESULTS)/bridge.md
	$(BIN)/python -m benchmarks.spark > $(RESULTS)/spark.md
	$(BIN)/python -m benchmarks.spark_skew > $(RESULTS)/spark_skew.md
	$(BIN)/python -m benchmarks.spark_streaming --apis > $(RESULTS)/spark_streaming.md
	$(BIN)/python -m benchmarks.scale > $(RESULTS)/scale.md
	$(BIN)/python benchmarks/figure.py
	$(BIN)/python benchmarks/growth_figure.py
	$(BIN)/python benchmarks/concept_figures.py
	$(BIN)/python benchmarks/strips_figure.py

# Nothing may be slower than it was: `make bench-compare BASE=v0.1`.
BASE ?= HEAD~1
bench-compare: $(VENV)/.ready
	$(BIN)/python benchmarks/compare_revisions.py $(BASE)

soak: $(VENV)/.ready
	$(BIN)/python benchmarks/soak.py

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean-loops:
	find src -name "*.nb[ic]" -delete

clean: clean-loops
	rm -rf $(VENV) $(PEERS) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
