# Python 3.11 or newer; empty means the first fit on PATH
PYTHON ?=
VENV ?= .venv
BIN := $(VENV)/bin
IMAGE ?= lora-capacity-exporter
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' exporter/__init__.py)
# `make lock LOCK_FLAGS=--upgrade` moves every pin to the newest release that its range allows
LOCK_FLAGS ?=

PIP_INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet install
LOCK := $(BIN)/uv pip compile --quiet --no-config --default-index https://pypi.org/simple \
	--universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' $(LOCK_FLAGS)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run setup test test-engines packages lint readme alerts replay dashboards types wheel bench lock \
	image clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

# exec, so that Ctrl-C and SIGTERM reach the exporter alone and no shell reports its death
run: $(VENV)/.runtime ## run the demo: a simulated fleet and the exporter that watches it
	@exec $(BIN)/lora-exporter demo $(ARGS)

setup: $(VENV)/.dev ## make .venv with everything that a developer needs

test: packages lint types ## run every check and every test
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

# hours at first: it installs engines, and compiles one. `make test-engines ARGS='-k vllm'` runs some
test-engines: $(VENV)/.dev ## run the exporter against real engines, without a GPU
	@scripts/debian-packages.sh g++=g++
	$(BIN)/python -m pytest tests/real_engines $(ARGS)

packages:
	@scripts/debian-packages.sh promtool=prometheus amtool=prometheus-alertmanager \
		redis-server=redis-server chromium=chromium dnsmasq=dnsmasq-base

lint: $(VENV)/.dev ## check style, format and the layers' imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/python scripts/readme_tables.py --check
	$(BIN)/python -m alerts.generator --check
	$(BIN)/python -m dashboards.generator --check

readme: $(VENV)/.dev ## write the generated tables of README.md anew
	$(BIN)/python scripts/readme_tables.py

alerts: $(VENV)/.dev ## write the rules in alerts/ anew from alerts/inputs.yml
	$(BIN)/python -m alerts.generator

replay: packages $(VENV)/.dev ## replay weeks through the alerts, and write the figures of docs/alerts.md
	$(BIN)/python -m alerts.replay --write $(ARGS)

dashboards: $(VENV)/.dev ## write the dashboards in dashboards/ anew
	$(BIN)/python -m dashboards.generator

types: $(VENV)/.dev ## check the types
	$(BIN)/mypy

wheel: $(VENV)/.dev ## build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation

bench: $(VENV)/.dev ## measure the exporter
	@exec $(BIN)/python -m tests.benchmarks $(ARGS)

lock: $(VENV)/.dev ## write requirements/*.txt anew from pyproject.toml
	$(LOCK) --extra redis --extra dns --extra kubernetes --group dev --output-file requirements/dev.txt pyproject.toml
	$(LOCK) --extra redis --extra dns --extra kubernetes --constraint requirements/dev.txt --output-file requirements/runtime.txt pyproject.toml
	$(LOCK) --group build --constraint requirements/dev.txt --output-file requirements/build.txt

image: ## build the container image
	docker build --tag $(IMAGE):$(VERSION) --build-arg VERSION=$(VERSION) \
		--build-arg REVISION=$$(git rev-parse HEAD) .

clean: ## remove .venv and all that was built
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find exporter tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made: scripts/venv.sh
	@PYTHON='$(PYTHON)' scripts/venv.sh $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.made pyproject.toml requirements/runtime.txt requirements/build.txt
	@echo 'Installing the exporter in $(VENV)'
	@$(PIP_INSTALL) --require-hashes -r requirements/runtime.txt -r requirements/build.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	@echo 'Installing the development tools in $(VENV)'
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@
