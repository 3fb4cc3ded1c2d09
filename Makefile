# make demo    build a dataset from the embedded corpus        make test      lint, types, tests
# make lock    refresh the locked requirements                 make test-all  the slow tests too
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALLED := .venv/.installed
LANGUAGE := .venv/.language
JOBS ?= 2

.PHONY: demo test test-all check lint types env language lock docs clean
.DELETE_ON_ERROR:

demo: $(LANGUAGE)
	@$(BIN)/pairwright demo --out demo

test: check
	$(BIN)/pytest -q -n $(JOBS) -m "not slow"

test-all: check
	$(BIN)/pytest -q -n $(JOBS)

check: lint types

lint: $(LANGUAGE)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(LANGUAGE)
	$(BIN)/mypy

env: $(INSTALLED)
language: $(LANGUAGE)

$(INSTALLED): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv"; exit 1; }
	@echo "Making .venv from requirements.lock (once; a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(LANGUAGE): $(INSTALLED)
	@$(BIN)/pairwright doctor --mend
	@touch $@

lock: $(INSTALLED)
	@$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --quiet --upgrade --output-file requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --extra dev --extra download --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --quiet --upgrade --no-emit-package dataclasses --output-file requirements-download.lock

docs: $(INSTALLED)
	@$(BIN)/python -m tools.update_docs

clean:
	rm -rf .venv demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
