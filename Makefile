# Two commands matter: `make plan` and `make test`. Stamp files keep a second call quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
TORCH := torch

.DEFAULT_GOAL := help
.PHONY: help plan test test-all setup check format atlas accuracy calibrate-published clean

help:
	@echo "make plan    install what a plan needs and plan one video model over every card"
	@echo "make test    install the rest and run every check"
	@echo "make test-all  the same, and the SkyPilot tasks against SkyPilot's own parser"
	@echo "make setup   install everything for development"
	@echo "make format  lay the code out"
	@echo "make atlas [MODELS='flux.1-dev ...'] [RAY=local|auto|HOST:PORT]"
	@echo "             trace the library at many points and write the shipped traces"
	@echo "make accuracy [VERSIONS='0.30.3 0.32.2']"
	@echo "             score the published rows; with VERSIONS, those of that time with older diffusers first"
	@echo "make calibrate-published"
	@echo "             fit what cards reach to published times, and write docs/times.md"
	@echo "make clean   remove .venv and caches"

plan: $(VENV)/base.stamp
	@$(BIN)/cardfit plan wan2.1-t2v-14b --width 1280 --height 720 --num-frames 81

test: $(VENV)/dev.stamp check

test-all: test
	$(BIN)/python scripts/check_skypilot.py

setup: $(VENV)/dev.stamp

check:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 --dist loadgroup

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The page of published rows. Older releases of diffusers get an environment each; what they say is kept as data.
accuracy: $(VENV)/dev.stamp $(VERSIONS:%=older-%)
	$(if $(VERSIONS),$(BIN)/python benchmarks/versions.py --keep $(VERSIONS:%=$(VENV)/traced-%))
	$(BIN)/python benchmarks/accuracy.py

# The shipped traces, anew where the library or the versions have changed; goes on where it was interrupted.
atlas: $(VENV)/dev.stamp
	$(BIN)/python scripts/atlas/build.py --usual $(MODELS) $(if $(RAY),--ray $(RAY))
	$(BIN)/python scripts/atlas/build.py --more $(MODELS)

# What cards reach of their peak, fitted to published times; writes the factors and docs/times.md.
calibrate-published: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/calibrate_published.py

older-%: $(VENV)/older-%/stamp
	PYTHONPATH=src $(<D)/bin/python benchmarks/versions.py --trace $(VENV)/traced-$*

$(VENV)/older-%/stamp: benchmarks/versions.py | $(VENV)/dev.stamp
	@echo "making an environment for diffusers $* (some minutes the first time)" >&2
	@packages="$$($(BIN)/python benchmarks/versions.py --pins $*)" \
		&& $(BIN)/python -m venv $(@D) \
		&& $(@D)/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt '$(TORCH)' \
		&& $(@D)/bin/python -m pip --disable-pip-version-check install --quiet $$packages
	@touch $@

.PRECIOUS: $(VENV)/older-%/stamp

# Without torch: the shipped traces answer.
$(VENV)/base.stamp: constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "cardfit needs Python 3.11 or later; name one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "making $(VENV) and installing cardfit" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e .
	@touch $@

# torch first and alone: whatever needs it then finds it in place.
$(VENV)/torch.stamp: $(VENV)/base.stamp
	@echo "installing torch (some minutes the first time)" >&2
	@$(PIP) '$(TORCH)'
	@touch $@

$(VENV)/trace.stamp: $(VENV)/torch.stamp pyproject.toml
	@echo "installing cardfit with the dry run" >&2
	@$(PIP) -e '.[trace]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/trace.stamp pyproject.toml
	@echo "installing the tools of development" >&2
	@$(PIP) -e '.[trace,run,quality,web,dev]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
