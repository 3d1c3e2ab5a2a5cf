# Everything runs in .venv, which these targets make themselves: only python3 (with venv) and make are needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test coverage torture lint bench docs clean

install: .venv/.installed

# uv where it is there and reaches a package index, else venv and pip.
define into_venv
	@{ command -v uv >/dev/null && { test -x $(BIN)/python || uv venv -q --seed -p $(PYTHON) .venv; } \
	  && uv pip install -q -p $(BIN)/python -e '$(1)' 2>/dev/null; } || \
	{ { test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv; } && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check -e '$(1)'; }
endef

.venv/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "spklink needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	@echo "setting up .venv with what running needs (about a minute, once)"
	$(call into_venv,.)
	@touch $@

# What running does not need: tools for developers, the site, peers that the benchmarks compare with.
.venv/.dev .venv/.docs .venv/.bench: .venv/.%: .venv/.installed
	@echo "adding to .venv what make $(MAKECMDGOALS) needs ($*, once)"
	$(call into_venv,.[$*])
	@touch $@

demo: .venv/.installed
	@$(BIN)/spklink demo -o demo-out

test: .venv/.dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4

# All tests, then the lines and branches that they ran, by room. Takes longer than the tests alone.
coverage: .venv/.dev
	rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -m pytest -n auto --maxprocesses 4
	$(BIN)/python -m coverage combine -q
	$(BIN)/python benchmarks/coverage_rooms.py

# The adversary at length, 20 minutes of computing: spoilt files, odd recordings, damaged caches, kills, pairs of runs,
# hostile names in Chromium. Ends with a table of what was tried and what went wrong.
LENGTHY := tests/adversary tests/runs/test_linking.py::test_killed_twenty_times_ends_with_the_same_bytes \
  tests/runs/test_watch.py::test_killed_at_any_moment tests/test_install.py

torture: .venv/.dev
	SPKLINK_TORTURE=1 SPKLINK_BROWSER_REQUIRED=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(LENGTHY)

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.dev .venv/.bench
	$(BIN)/python benchmarks/run.py

# The pages that are made from the code, then the site: site/index.html. Needs no network once it is set up.
docs: .venv/.dev .venv/.docs
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_library.py
	$(BIN)/python docs/make_glossary.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q
	@echo "read it:  $(BIN)/python -m http.server -b 127.0.0.1 -d site"

clean:
	rm -rf .venv build dist demo-out site
