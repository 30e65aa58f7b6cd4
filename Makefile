# Everyday commands. A fresh machine needs python3 ≥ 3.11, make and a package index; the rest is installed here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
SEEDS ?= 1000
FIRST ?= 1
# What Python compiled is kept, as pip does for what it installs: without it each start takes half as long again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-long test-peers soak bench lint format lock picture wheel clean

help:                  ## Show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: $(VENV)/.product ## The whole story on simulators, in under a minute
	@$(BIN)/vgpuctl demo

test: $(VENV)/.tests   ## The tests, in about three minutes
	@$(BIN)/pytest -n 4 --dist worksteal -m "not long and not peers" --durations 10

test-long: $(VENV)/.tests ## The long form: the real process killed after every single write
	@$(BIN)/pytest -n 3 --dist worksteal -m long --durations 10 --timeout 600

test-peers: $(VENV)/.tests ## The same tests against the real programs, which are built first
	@if [ -n "$(PEERS_BIN)" ]; then echo "The real programs are those in $(PEERS_BIN)."; \
	else $(MAKE) --no-print-directory -C tests/contract/programs PYTHON=$(abspath $(BIN)/python); fi
	@$(BIN)/pytest tests/contract -n 4 -rs --durations 10 --timeout 600

soak: $(VENV)/.tests   ## New examples of every property, and adventures, one a seed: make soak SEEDS=100000 FIRST=1
	@$(BIN)/pytest -n 2 --dist worksteal -m "hypothesis and not peers" --hypothesis-profile soak --timeout 1800
	@$(BIN)/python -m tests.support.soak --seeds $(SEEDS) --first $(FIRST)
	@$(BIN)/python -m tests.support.foretold --first $(FIRST)

bench: $(VENV)/.tests  ## In figures: how fast the program starts, and a large estate on the simulators, beside real programs
	@$(BIN)/python -m tests.bench.startup
	@$(BIN)/python -m tests.bench.planning
	@$(BIN)/python -m tests.bench.critical_path
	@$(BIN)/python -m tests.bench.daemon
	@$(BIN)/python -m tests.bench.status
	@$(BIN)/python -m tests.bench.scale

lint: $(VENV)/.tests   ## ruff, mypy strict (the tests too), and the one-way rule
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.tests ## Put the code into its form
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: | $(VENV)/bin/python ## Write tests/requirements.txt anew: the newest releases that pyproject.toml allows
	@$(BIN)/python -m tests.support.lock

picture: $(VENV)/.product ## Draw the README's picture anew
	@$(BIN)/vgpuctl demo --svg docs/demo.svg

wheel: $(VENV)/.tests  ## Build the wheel into dist/
	@$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

clean:                 ## Remove what was installed and built here
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "vgpuctl needs Python 3.11 or newer")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.product: pyproject.toml | $(VENV)/bin/python
	@echo "Installing vgpuctl into $(VENV) …"
	@$(PIP) --editable '.[sim]'
	@touch $@

$(VENV)/.tests: pyproject.toml tests/requirements.txt | $(VENV)/bin/python
	@echo "Installing vgpuctl and its tests into $(VENV) …"
	@if $(BIN)/python -m tests.support.lock fits; then \
	$(PIP) --require-hashes --only-binary :all: --requirement tests/requirements.txt && \
	$(PIP) --no-deps --no-build-isolation --editable .; \
	else echo "tests/requirements.txt has no hashes for this Python or system: the newest releases are installed unchecked."; \
	$(PIP) --editable '.[test]'; fi
	@touch $@ $(VENV)/.product
