# make demo    build a dataset from the embedded corpus        make test      lint, types, tests
# make lock    refresh the locked requirements                 make test-all  the slow tests too
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALLED := .venv/.installed
LANGUAGE := .venv/.language
FULL := .venv/.full
TORCH ?= torch==2.13.0
JOBS ?= 2
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile
# uv, of the version that the lock names, installs the rest in a tenth of pip's time. It does not read pip.conf: where
# only that knows the way to a registry, pip does it.
UV := VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --no-deps
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal
# Python compiles what it imports, once, also where it is told elsewhere not to: a command imports a thousand modules.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all check lint types env language full lock docs clean
.DELETE_ON_ERROR:

demo: $(LANGUAGE)
	@$(BIN)/pairwright demo --out demo

test: check $(FULL)
	$(PYTEST) -m "not slow"

test-all: check $(FULL)
	PAIRWRIGHT_TEST_EXAMPLES=thorough $(PYTEST)

check: lint types

lint: $(LANGUAGE) $(FULL)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(LANGUAGE) $(FULL)
	$(BIN)/mypy -n $(JOBS)

env: $(INSTALLED)
language: $(LANGUAGE)
full: $(FULL)

$(INSTALLED): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv"; exit 1; }
	@echo "Making .venv from requirements.lock (once; about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > .venv/uv.lock
	@$(PIP) --require-hashes -r .venv/uv.lock
	@$(UV) --require-hashes -r requirements.lock || $(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-build-isolation --editable .
	@touch $@

# What the extras need, for the tests of what uses them: encoders, downloads. torch by a line of its own: which build
# of it is the machine's business; without it those tests are skipped.
$(FULL): $(INSTALLED) requirements-full.lock
	@echo "Installing the extras from requirements-full.lock (once; a minute or two)"
	@$(UV) --require-hashes -r requirements-full.lock || $(PIP) --require-hashes -r requirements-full.lock
	@$(PIP) $(TORCH)
	@touch $@

$(LANGUAGE): $(INSTALLED)
	@$(BIN)/pairwright doctor --fix
	@touch $@

lock: $(INSTALLED)
	@$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --quiet --upgrade --output-file requirements.lock
	@printf 'torch ; sys_platform == "never"\ndataclasses ; sys_platform == "never"\n' > .venv/overrides.txt
	@$(BIN)/uv pip compile pyproject.toml --extra dev --extra download --extra clip --extra minilm --extra train --extra consumers --extra ray --extra remote --extra hub --extra s3server --override .venv/overrides.txt \
	    --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --upgrade \
	    --no-emit-package torch --no-emit-package dataclasses --output-file requirements-full.lock

docs: $(INSTALLED)
	@$(BIN)/python -m tools.update_docs

clean:
	rm -rf .venv demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
