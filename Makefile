# Everything runs in .venv, which these targets make themselves: only python3 (with venv) and make are needed.
PYTHON ?= python3
BIN := .venv/bin
UV := $(shell command -v uv 2>/dev/null)

.PHONY: install demo test lint bench docs clean

install: .venv/.installed

.venv/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "spklink needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
ifdef UV
	@test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) .venv
	uv pip install --quiet --python $(BIN)/python -e '.[dev]'
else
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
endif
	@touch $@

# The peers that the benchmarks compare with; nothing else needs them.
.venv/.bench: .venv/.installed
ifdef UV
	uv pip install --quiet --python $(BIN)/python -e '.[bench]'
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
endif
	@touch $@

demo: .venv/.installed
	@$(BIN)/spklink demo -o demo-out

test: .venv/.installed
	$(BIN)/python -m pytest

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.bench
	$(BIN)/python benchmarks/run.py

docs: .venv/.installed
	$(BIN)/python docs/make_reference.py

clean:
	rm -rf .venv build dist demo-out
