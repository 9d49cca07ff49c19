# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# As an installed package is: a process that starts for every call must not compile first.
COMPILE := $(BIN)/python -m compileall -q gateway/pinfold protocol/pinfold_protocol
BENCH_PEERS := benchmarks/peers/node_modules
EDITOR_PACKAGES := emacs-nox elpa-eglot elpa-markdown-mode vim vim-ale dbus xvfb xdotool kate
VSCODE := editors/vscode
NODE_PEERS := tests/clients/node/node_modules tests/clients/hosts/node_modules $(VSCODE)/node_modules

# pytest keeps what it makes of the tests beside them; without that each run begins ten seconds later.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check test-clients test-editors test-slow test-vscode generated docs vsix pictures dist test-dist bench bench-smoke clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## See it work, in a temporary directory
	@$(BIN)/pinfold demo

test: $(VENV)/.dev ## Run the tests (some two minutes on two cores)
	$(BIN)/python -m pytest -q -n auto --dist worksteal

check: $(VENV)/.dev ## Formatter, linter, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-clients: $(VENV)/.clients $(NODE_PEERS) ## Tests with clients, hosts and types that others wrote
	$(BIN)/python -m pytest -q -m client tests/clients tests/examples tests/vscode

test-editors: $(VENV)/.editors ## Neovim, Emacs, Vim and Kate themselves, driven
	$(BIN)/python -m pytest -q -m editor -n 2 -rs tests/editors

test-slow: $(VENV)/.dev $(VENV)/.fuse ## The long tests: races, crashes, folding volumes
	$(BIN)/python -m pytest -q -m slow

test-vscode: vsix ## A walk through the real VS Code (ten minutes at first)
	PYTHON="$(CURDIR)/$(BIN)/python" tests/vscode/install.sh
	cd tests/vscode && PINFOLD="$(CURDIR)/$(BIN)/pinfold" .installed/bin/node --test walk.test.mjs

vsix: $(VSCODE)/node_modules ## The extension for VS Code, as editors/vscode/pinfold.vsix
	cd $(VSCODE) && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent package

# A generator that fails leaves what is there.
MADE = $(BIN)/python $(1) > $(2).new && mv $(2).new $(2) || { rm -f $(2).new; exit 1; }

generated: $(VENV)/.dev ## Write what is made from the code: schema, reference, house
	$(call MADE,-m pinfold_protocol.schema,protocol/schema.json)
	$(call MADE,-m pinfold_protocol.typescript,$(VSCODE)/src/protocol.ts)
	$(call MADE,-m pinfold_protocol.reference,docs/reference/protocol.md)
	$(call MADE,scripts/cli_reference.py,docs/reference/cli.md)
	$(call MADE,scripts/house.py,docs/images/house.svg)
	cd tests && PYTHONPATH=. ../$(BIN)/python error_page.py

pictures: $(VENV)/.dev ## Draw `pinfold demo`, as docs/images/demo.svg
	$(call MADE,scripts/demo_picture.py,docs/images/demo.svg)

dist: $(VENV)/.dev ## Build the wheel and the source distribution, in dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

test-dist: dist ## Build it, install it into empty environments, use it
	PINFOLD_DIST="$(CURDIR)/dist" $(BIN)/python -m pytest -q -m slow tests/release

docs: $(VENV)/.docs ## The pages as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

bench: $(VENV)/.runtime $(BENCH_PEERS) ## All that is claimed about speed, as ratios (needs npm)
	$(BIN)/python benchmarks/peers.py --json benchmarks/peers.json
	$(BIN)/python benchmarks/own.py --json benchmarks/own.json
	$(BIN)/python benchmarks/hook.py
	$(BIN)/python benchmarks/compaction.py
	$(BIN)/python benchmarks/memory_index.py

bench-smoke: $(VENV)/.dev ## The benchmarks run at all, in seconds
	$(BIN)/python -m pytest -q -m '' tests/unit/test_benchmarks.py

clean: ## Remove what make made
	rm -rf $(VENV) $(NODE_PEERS) $(BENCH_PEERS) $(VSCODE)/dist $(VSCODE)/pinfold.vsix tests/vscode/.installed site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pinfold needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV) || { echo "On Debian, apt-get install python3-venv first."; exit 1; }
	$(PIP) --upgrade pip # an old one's scripts import re, which a hook would pay for at every call
	@touch $@

$(VENV)/.runtime: pyproject.toml | $(VENV)/.made
	$(PIP) --editable .
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	$(PIP) --editable '.[dev]'
	@$(COMPILE)
	@touch $@ $(VENV)/.runtime

$(VENV)/.docs: pyproject.toml | $(VENV)/.made
	$(PIP) --editable '.[docs]'
	@touch $@ $(VENV)/.runtime

$(VENV)/.clients: pyproject.toml | $(VENV)/.dev
	$(PIP) --editable '.[dev,clients]'
	@touch $@

# Where an editor is not to be had, its tests say so. Emacs has Eglot built in from 29 on.
$(VENV)/.editors: pyproject.toml | $(VENV)/.dev
	$(PIP) --editable '.[dev,editors]'
	-@command -v apt-get >/dev/null && apt-get update -q
	-@for package in $(EDITOR_PACKAGES); do \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$package; done
	@touch $@

# A volume that folds names is mounted by FUSE; where that is not to be had, its tests say so.
$(VENV)/.fuse: | $(VENV)/.dev
	-$(PIP) mfusepy
	-@command -v fusermount3 >/dev/null || { apt-get update -q && apt-get install -y -q fuse3; }
	@touch $@

# What comes from npm, on the Node that comes from PyPI.
$(NODE_PEERS) $(BENCH_PEERS): %/node_modules: %/package.json | $(VENV)/.clients
	cd $* && PATH="$(CURDIR)/$(BIN):$$PATH" npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@
