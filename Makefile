# One target for each thing a newcomer wants. `make` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ON_POSTGRES := $(filter postgres,$(STORE))
# Compiled modules make every later start faster, whatever the caller's shell says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-campaign demo-prospect test test-long check format bench crash crash-campaign serve lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: $(VENV)/.run ## send a sample mailout through the sandbox: no account, no network
	@$(BIN)/sendonce demo

demo-campaign: $(VENV)/$(if $(ON_POSTGRES),.dev,.run) ## three clients' campaigns, a bad list, a bad sender, days in seconds: STORE= WORKERS=
	@$(if $(ON_POSTGRES),$(BIN)/python -m tests.postgres) $(BIN)/sendonce demo-campaign \
	  $(if $(ON_POSTGRES),--database-url {url}) $(if $(WORKERS),--workers $(WORKERS)) $(ARGS)

demo-prospect: $(VENV)/.run ## search, visit sites, write and send letters in the sandbox, in about a minute
	@$(BIN)/sendonce demo-prospect $(ARGS)

# Many tests wait for real processes: five at a time keep two processors busy. The tests of a file run in one
# process, in order of their folders: what a file shares is made once, and the quick units fill the gaps at the end.
test: $(VENV)/.dev ## every test, on SQLite and on a real PostgreSQL
	@echo "Testing with $$($(BIN)/python --version) …"
	@$(BIN)/python -m pytest -m "not long" -n 5 --dist loadfile --no-loadscope-reorder $(ARGS)

test-long: $(VENV)/.dev .stamp/exim/.fetched .stamp/prometheus/.fetched ## the tests that take minutes: real mail servers, pgbouncer, a million recipients, full pacing, new examples
	@test -x /usr/sbin/pgbouncer || { echo "Installing pgbouncer …"; apt-get install -qq -y pgbouncer >/dev/null; }
	@$(BIN)/python -c 'from bench.peers import install_postfix; install_postfix(print)'
	@test -x /usr/sbin/dovecot || { echo "Installing dovecot …"; \
	  RUNLEVEL=1 apt-get install -qq -y --no-install-recommends dovecot-imapd >/dev/null; }
	@$(BIN)/python -m pytest -m "long or hypothesis" --hypothesis-profile=search $(ARGS)

check: $(VENV)/.dev ## ruff, mypy strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev ## let ruff put the code in order
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev ## speed as ratios against named peers (installs postfix's smtp-sink)
	@$(BIN)/python -m bench $(ARGS)

crash: $(VENV)/.dev ## kill it many times and let the provider's log judge: KILLS= STORE= SEED=
	@$(BIN)/python -m tests.crash --kills $(or $(KILLS),100) --store $(or $(STORE),sqlite) \
	  $(if $(SEED),--seed $(SEED)) $(ARGS)

crash-campaign: $(VENV)/.dev ## kill the workers of the campaign demo many times, with the same judge: KILLS= STORE= SEED=
	@$(BIN)/python -m tests.crash.campaigns --kills $(or $(KILLS),30) --store $(or $(STORE),sqlite) \
	  $(if $(WORKERS),--workers $(WORKERS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

serve: $(VENV)/.run ## the HTTP service and a worker, on your .env
	@$(BIN)/sendonce serve

lock: ## write the requirements locks anew from pyproject.toml
	@$(PYTHON) -m venv .stamp/lock && .stamp/lock/bin/pip -q install uv
	@.stamp/lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header pyproject.toml -o requirements/run.txt
	@.stamp/lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header pyproject.toml --group dev -o requirements/dev.txt
	@.stamp/lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header requirements/build.in -o requirements/build.txt

# Debian lets one mail server be installed at a time, so Exim is unpacked beside Postfix, with its libraries.
.stamp/exim/.fetched:
	@echo "Fetching exim …"; mkdir -p .stamp/exim
	@apt-get update -qq && cd .stamp/exim && \
	  apt-get download -qq -o APT::Sandbox::User=root exim4-daemon-light libnss-wrapper libidn12 libgnutls-dane0 libnsl2 libdb5.3 && \
	  for package in *.deb; do dpkg -x $$package . && rm $$package; done && touch .fetched

# Only its promtool is wanted, and no service that starts.
.stamp/prometheus/.fetched:
	@echo "Fetching promtool …"; mkdir -p .stamp/prometheus
	@apt-get update -qq && cd .stamp/prometheus && apt-get download -qq -o APT::Sandbox::User=root prometheus && \
	  dpkg -x prometheus_*.deb . && rm prometheus_*.deb && touch .fetched

clean: ## remove the environment and what tests and demos left
	@rm -rf .venv .venv-newest .stamp .mypy_cache .ruff_cache .hypothesis sendonce-demo sendonce-demo-prospect sendonce-demo-campaign build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "python3 is missing: apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, this is $$($(PYTHON) --version): name another with make PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "The venv module is missing: apt-get install python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements/run.txt requirements/build.txt pyproject.toml | $(VENV)/bin/python
	@echo "Installing hash-locked dependencies into $(VENV) …"
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/build.txt -r requirements/run.txt
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	@echo "Installing hash-locked test tools into $(VENV) …"
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@
