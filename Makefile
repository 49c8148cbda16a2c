# Every target says what it does: `make help`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TORCH  ?= torch==2.13.0

.DEFAULT_GOAL := help
.PHONY: help machine setup fuzz test lint format bench clean

help:  ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

machine:
	@command -v $(PYTHON) >/dev/null || { echo "make: no $(PYTHON) found; install Python 3.10 or newer, or pass PYTHON=/path/to/python"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "make: $(PYTHON) is older than 3.10; pass PYTHON=/path/to/a/newer/python"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: $(PYTHON) has no venv module; install it (Debian: apt install python3-venv)"; exit 2; }
	@command -v g++ >/dev/null || { echo "make: no g++ found; TorchInductor compiles C++ on CPU (Debian: apt install g++)"; exit 2; }

# The stamp is rewritten whenever pyproject.toml changes, so that set-up is paid once.
$(VENV)/ready: pyproject.toml | machine
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing $(TORCH) (first, so that nothing pulls another build of it) …"
	@$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/pip install --quiet "$(TORCH)"
	@$(BIN)/pip install --quiet -e ".[dev]"
	@touch $@

setup: $(VENV)/ready  ## Make .venv with torch and everything else

fuzz: setup  ## Run a 10-minute campaign against torch into campaigns/first
	@$(BIN)/eddy fuzz campaigns/first --max-time 10m --resume-or-new

test: setup  ## Run all tests
	@$(BIN)/pytest

lint: setup  ## Check style and types (ruff, mypy)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup  ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup  ## Run the benchmarks (minutes; prints tables)
	@$(BIN)/python -m benchmarks

clean:  ## Remove caches (not campaigns, not .venv)
	@rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
