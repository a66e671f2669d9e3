# Python >= 3.11 and make are all that has to be there; the rest goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
export NO_MKDOCS_2_WARNING := 1
LOCKED := .venv/.locked
INSTALLED := .venv/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST ?= -n auto
FIGURES ?= $(sort $(filter-out bench/_%,$(wildcard bench/*.py))) bench/peers/run.py

.PHONY: help run test faults check docs lock bench clean
.DEFAULT_GOAL := help

help:
	@echo "make run     install into .venv and run the demo"
	@echo "make test    run the tests (PYTEST=\"-x tests/test_log.py\" chooses)"
	@echo "make faults  break it in every way, at length"
	@echo "make check   format, lint, types, imports, documentation"
	@echo "make docs    serve the documentation while you write"
	@echo "make bench   print the figures (FIGURES=bench/notes.py chooses)"
	@echo "make lock    resolve the dependencies anew into requirements.lock"
	@echo "make clean   remove what make made"

run: $(INSTALLED)
	@$(BIN)/recollect model install minilm || echo "Without the model recall goes by words and by static vectors."
	@$(BIN)/recollect demo
	@echo "Open the demo in your browser:"
	@echo "  $(BIN)/recollect serve --open --home .recollect-demo --dir .recollect-demo/project --user-file .recollect-demo/user/memory.md"

test: $(INSTALLED)
	$(BIN)/python -m pytest $(PYTEST)

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet
	@! grep -nE '://|^ *-[a-z]|^ *--[^h]' requirements.lock || { echo "requirements.lock names an index: run make lock"; exit 1; }

docs: $(INSTALLED)
	$(BIN)/mkdocs serve

faults: $(INSTALLED)
	RECOLLECT_FAULT_ROUNDS=200 $(BIN)/python -m pytest tests/faults -n auto --timeout 900

bench: $(INSTALLED)
	@for figure in $(FIGURES); do echo "== $$figure"; $(BIN)/python $$figure || exit 1; done

lock: $(INSTALLED)
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --upgrade --quiet \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --output-file requirements.lock

clean:
	rm -rf .venv .bench .recollect-demo site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A new lock makes a new environment, so that nothing of an old one stays; a change of pyproject.toml only the package.
$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "recollect needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": try make PYTHON=python3.12")'
	@echo "Installing what requirements.lock names into .venv (once, about a minute) ..."
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) install --require-hashes -r requirements.lock
	@touch $@

$(INSTALLED): $(LOCKED) pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@
