# Python >= 3.11 and make are all that has to be there, and Node >= 20.15 for packages/voltagent; the rest is installed here.
PYTHON ?= python3
BIN := .venv/bin
export NO_MKDOCS_2_WARNING := 1
# Tests start hundreds of processes: none should have to compile the package once more.
unexport PYTHONDONTWRITEBYTECODE
LOCKED := .venv/.locked
INSTALLED := .venv/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST ?= -n auto --dist worksteal
VOLTAGENT := packages/voltagent
HAS_NPM := $(shell command -v npm 2>/dev/null)
NPM := npm --prefix $(VOLTAGENT) --no-audit --no-fund
VOLTAGENT_INSTALLED := $(VOLTAGENT)/node_modules/.package-lock.json
FIGURES ?= $(sort $(filter-out bench/_%,$(wildcard bench/*.py))) bench/peers/run.py

# What is fuzzed, and for how many seconds at least: the readers of logs, notes, queries, session names and paths.
FUZZED ?= $(addprefix tests/,log/test_scan.py log/test_line.py log/test_log_model.py notes/test_notes.py notes/test_bullets.py \
	notes/test_outline.py recall/test_query.py index/words/test_word_table.py filesystem/test_layout.py filesystem/test_confine.py test_files.py)
SECONDS ?= 120

.PHONY: help run serve test test-voltagent offline-voltagent snapshots lowest newest frameworks faults fuzz check check-voltagent without-npm docs lock bench clean
.DEFAULT_GOAL := help

help:
	@echo "make run     install into .venv and run the demo"
	@echo "make serve   serve the demo and open it in your browser"
	@echo "make test    run the tests (PYTEST=\"-x tests/log/test_log_file.py\" chooses)"
	@echo "make snapshots  take new pictures of the chat and the pages, for the tests and the documentation"
	@echo "make lowest  run a smoke part of the tests with the lowest versions we accept, on the oldest Python"
	@echo "make newest  run it on the newest Python"
	@echo "make frameworks  test the adapters whose frameworks need an older mcp, in an environment of their own"
	@echo "make faults  run the fault tests (kill -9, full disk, damage) at length, then fuzz"
	@echo "make fuzz    fuzz the readers of logs, notes, queries, names and paths (SECONDS=600 chooses how long)"
	@echo "make check   format, lint, types, imports, documentation"
	@echo "make docs    serve the documentation while you write"
	@echo "make bench   print the figures (FIGURES=bench/notes.py chooses)"
	@echo "make lock    resolve the dependencies into requirements.lock, -lowest.lock and -frameworks.lock"
	@echo "make clean   remove what make made"

run: $(INSTALLED)
	@$(BIN)/keepstone model install minilm || echo "Without the model recall goes by words and by static vectors."
	@$(BIN)/keepstone demo
	@echo "Open the demo in your browser: make serve"

serve: .keepstone-demo/DEMO.txt
	$(BIN)/keepstone serve --open --home .keepstone-demo --project .keepstone-demo/project --user-file .keepstone-demo/user/memory.md

.keepstone-demo/DEMO.txt: $(INSTALLED)
	@$(BIN)/keepstone demo > /dev/null

test: $(INSTALLED)
	$(BIN)/python -m pytest $(PYTEST)
	@$(MAKE) --no-print-directory $(if $(HAS_NPM),test-voltagent,without-npm)

test-voltagent: $(INSTALLED) $(VOLTAGENT_INSTALLED)
	KEEPSTONE_PYTHON=$(CURDIR)/$(BIN)/python $(NPM) test

snapshots: $(INSTALLED)
	$(BIN)/python -m keepstone.tui.picture docs/chat.svg
	$(BIN)/python scripts/readme_picture.py docs/recall.svg
	$(BIN)/python scripts/page_pictures.py docs
	KEEPSTONE_SNAPSHOTS=write $(BIN)/python -m pytest -q tests/tui/test_snapshots.py

# Without a network, as after "npm ci" on a train: a second one takes everything from npm's cache.
offline-voltagent: $(INSTALLED) $(VOLTAGENT_INSTALLED)
	KEEPSTONE_PYTHON=$(CURDIR)/$(BIN)/python unshare --map-root-user --net sh -ec \
		'ip link set lo up; for step in "ci --include=dev --ignore-scripts --offline" test "run build"; do $(NPM) $$step; done'

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet
	@! grep -nE '://|^ *-[a-z]|^ *--[^h]' requirements.lock requirements-lowest.lock requirements-frameworks.lock || { echo "a lock names an index: run make lock"; exit 1; }
	@$(MAKE) --no-print-directory $(if $(HAS_NPM),check-voltagent,without-npm)

check-voltagent: $(INSTALLED) $(VOLTAGENT_INSTALLED)
	$(VOLTAGENT)/node_modules/.bin/pyright -p tests/typing
	$(NPM) run types
	$(NPM) run build
	@! grep -n '"resolved"' $(VOLTAGENT)/package-lock.json || { echo "package-lock.json names an index: run npm install in $(VOLTAGENT)"; exit 1; }

without-npm:
	@echo "npm is missing, so packages/voltagent is left out: install Node 20.15 or newer to test it"

docs: $(INSTALLED)
	$(BIN)/mkdocs serve

# A part of the tests with the lowest versions on the oldest Python, on the newest Python, and with the
# frameworks whose dependencies disagree with the others'.
lowest newest frameworks: $(INSTALLED)
	$(BIN)/python scripts/smoke.py $@

faults: $(INSTALLED)
	KEEPSTONE_FAULT_ROUNDS=200 $(BIN)/python -m pytest tests/faults -n auto --timeout 900
	@$(MAKE) --no-print-directory fuzz

# Each round begins at another place by chance; what failed once is kept in .hypothesis and tried first.
fuzz: $(INSTALLED)
	@end=$$(($$(date +%s) + $(SECONDS))); while \
		HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -q -m hypothesis $(FUZZED) -n auto --timeout 900 || exit 1; \
		[ $$(date +%s) -lt $$end ]; do :; done

bench: $(INSTALLED)
	@for figure in $(FIGURES); do echo "== $$figure"; $(BIN)/python $$figure || exit 1; done

lock: $(INSTALLED)
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --upgrade --quiet \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra all --group test --python-version 3.11 --resolution lowest-direct --upgrade --quiet \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --output-file requirements-lowest.lock
	$(BIN)/uv pip compile pyproject.toml --group frameworks-apart --universal --python-version 3.11 --upgrade --quiet \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --output-file requirements-frameworks.lock

clean:
	rm -rf $(VOLTAGENT)/node_modules $(VOLTAGENT)/build $(VOLTAGENT)/dist
	rm -rf .venv .venv-lowest .venv-newest .venv-frameworks .bench .keepstone-demo site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A new lock makes a new environment, so that nothing of an old one stays; a change of pyproject.toml only the package.
$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "keepstone needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": try make PYTHON=python3.12")'
	@echo "Installing what requirements.lock names into .venv (once, about a minute) ..."
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) install --require-hashes -r requirements.lock
	@touch $@

$(INSTALLED): $(LOCKED) pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VOLTAGENT_INSTALLED): $(VOLTAGENT)/package-lock.json
	@echo "Installing what package-lock.json names into $(VOLTAGENT)/node_modules (once, about a minute) ..."
	@$(NPM) ci --include=dev --ignore-scripts --loglevel=error || $(NPM) ci --include=dev --ignore-scripts --loglevel=error
	@touch $@
