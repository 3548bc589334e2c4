# Every target does its own set-up: `make run` works in a fresh clone with Python 3.11 (with venv), make and git.
# Variables: make run PORT=8765 VAR=/somewhere. What make is given or finds in the environment reaches the programs.
.DEFAULT_GOAL := help
.PHONY: help run manage test properties attacks faults fuzz lint audit image bench e2e screenshots lock assets clean

VENV ?= .venv
export PYTHON VENV ARGS

# Any Python may start the bootstrap: it finds one that is new enough by itself, or says in one line what is missing.
# `exec` throughout: a signal for make's child reaches the program itself.
define bootstrap
@for python in "$$PYTHON" python3 python3.11 python3.12 python3.13 python python2; do \
	command -v "$$python" >/dev/null 2>&1 && "$$python" -c "" >/dev/null 2>&1 && exec "$$python" scripts/bootstrap.py $(1); \
done; \
echo "Python 3.11 or newer is needed; none was found. Install it or run: make PYTHON=/path/to/python3.11 run" >&2; exit 2
endef

help: ## this list
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1	\2/p' Makefile
	@echo
	@echo "  Variables of run: PORT (8000), IDP_PORT (9400), VENDOR_PORT (9100), HOST (127.0.0.1), BASE_URL, VAR (./var),"
	@echo "  CATALOG, DATABASE_URL, REDIS_URL, DEMO=0. Of manage: ARGS, VAR. Of all: PYTHON, VENV (.venv). Of test: TEST_DATABASE_URL, TEST_REDIS_URL."

run: ## the whole service with a demo organization; Ctrl-C stops it
	$(call bootstrap,run -m gateway.supervisor)

manage: ## a command on the installation in VAR: make manage ARGS="create_org 'Acme' alice@example.com"
	$(call bootstrap,run -m gateway.supervisor.manage)

test: ## the test suite; on real PostgreSQL and Redis too where TEST_DATABASE_URL and TEST_REDIS_URL name them
	$(call bootstrap,dev scripts/test.py)

properties: ## the property tests on random examples, for SECONDS (600); what fails is kept and tried again
	$(call bootstrap,dev scripts/properties.py $(SECONDS))

attacks: ## the sixty attacks of the security suite as a table; exit code 1 unless all of them are answered as documented
	$(call bootstrap,dev -m tests.attacks -n 2)

faults: ## every row of the fault matrix on PostgreSQL, Redis, web and worker of its own; ROUNDS=10 repeats
	$(call bootstrap,dev -m tests.faults.matrix --rounds $(or $(ROUNDS),1))

fuzz: ## random requests of every kind to the whole service, INPUTS (180000), from SEED (2026); counts by kind and status
	$(call bootstrap,dev -m tests.fuzz $(or $(INPUTS),180000) $(or $(SEED),2026))

lint: ## ruff, types, import contracts, migrations, templates, lock files
	$(call bootstrap,dev scripts/lint.py)

audit: ## known vulnerabilities of the pinned packages, asked of osv.dev
	$(call bootstrap,dev scripts/audit_dependencies.py)

image: ## the container image: built, examined, with sbom.json and licenses.txt in ./dist; ARGS=--twice: built again, compared
	$(call bootstrap,dev scripts/image.py $(ARGS))

bench: ## the performance report; BENCH_OPTIONS="--wide": many callers and several processes; "--pages": the pages
	$(call bootstrap,dev -m bench)

e2e: ## the browser tests, with the system's Chromium
	$(call bootstrap,dev scripts/test.py --browser)

screenshots: ## pictures of every page into ./screenshots, with the system's Chromium; ARGS="--language de"
	$(call bootstrap,dev -m tests.browser.screenshots $(ARGS))

lock: ## resolve requirements/*.in into the lock files again
	@exec sh scripts/lock.sh

assets: ## fetch the pinned front-end files into gateway/static/vendor again
	$(call bootstrap,dev scripts/vendor_assets.py)

clean: ## remove the virtual environment, caches and built files; data in ./var stays
	@if [ -f "$(VENV)/pyvenv.cfg" ]; then rm -rf "$(VENV)"; fi
	@rm -rf .venv-vendors .venv-collector .venv-openbao .venv-cluster .venv-clients tests/vendors/node_modules tests/clients/node_modules tests/homes/provider/node_modules staticfiles dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './node_modules/*' -prune -exec rm -rf {} +
	@echo "Clean. Data in ./var stays; remove it by hand to start afresh."
