# Everything runs in .venv, which is made on first use. Choose the interpreter with PYTHON=..., the environment with VENV=...
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench wheel clean

help: ## Show what there is
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/.demo ## Embed a few texts and ask the example plugin
	@$(BIN)/python examples/demo.py

test: $(VENV)/.dev ## Run the tests
	@$(BIN)/python -m pytest

lint: $(VENV)/.dev ## Check style, types and the walls between the rooms
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.dev ## Put the code into shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev ## Compare with sentence-transformers, in turns
	@$(BIN)/python benchmarks/offline.py

wheel: $(VENV)/.dev ## Build the wheel into dist/
	@$(BIN)/python -m build --outdir dist .

clean: ## Remove what was made
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt plugin_template/pyproject.toml | $(BIN)/pip
	@echo "Setting up $(VENV): this downloads PyTorch (gigabytes, unless it is a CPU build) and an 84 MB model, once."
	@$(INSTALL) --editable '.[demo]'
	@$(INSTALL) ./plugin_template
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Setting up $(VENV) for development, once."
	@$(INSTALL) --editable '.[dev]'
	@touch $@
