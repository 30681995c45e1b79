# Every target creates its virtual environment on first use.
#   make demo    render a video and a picture to out/     make bench   run the benchmarks with their peers
#   make test    lint and all tests                       make lint    style, types and layers only
#   make docs    build the site to build/site            make docs-serve   show it while you write
#   make fuzz MINUTES=10   mutated input for everything that reads bytes
#   make fuzz-guided MINUTES=60   the same, guided by coverage
#   make test-arm   the CPU engine's tests on ARM, under QEMU
# Use another Python: make PYTHON=python3.13 ...

PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
OLDEST := .venv-oldest
# Two workers on any machine: each already uses every core for its kernels.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test docs docs-serve soak test-long test-arm fuzz fuzz-guided fuzz-atheris lint bench test-oldest clean
.DELETE_ON_ERROR:

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.ready-media
	$(VENV)/bin/python -m dala demo

# Two runs: what thousands of compiled kernels leave in a process would add to what models take.
# In one run with an empty cache a worker reached 1.6 GB.
ENGINES = tests/engine tests/gpu tests/null

# Lint runs while packages and weights are downloaded. Tests start hundreds of interpreters. With bytecode, also where PYTHONDONTWRITEBYTECODE is set, each
# starts half a second sooner.
test: $(VENV)/.ready-dev
	@(sh scripts/setup_test_machine.sh && $(VENV)/bin/python -m tests.support.weights) & \
	    $(MAKE) --no-print-directory lint; linted=$$?; wait $$! && exit $$linted
	@$(VENV)/bin/python -m compileall -q src
	@status=0; set -x; \
	    $(VENV)/bin/python -m pytest -n $(WORKERS) --durations=25 $(ENGINES) || status=$$?; \
	    $(VENV)/bin/python -m pytest -n $(WORKERS) --durations=25 $(ENGINES:%=--ignore=%) || status=$$?; \
	    exit $$status

# Tests that take minutes, such as the sanitized suite; hours in all. A part:
#   make test-long TESTS=tests/faults
TESTS ?= tests
test-long: $(VENV)/.ready-dev
	$(VENV)/bin/python -m pytest -m long --durations=25 $(TESTS)

# The CPU engine on ARM, in a root of Debian's packages that is made in build/arm. Pieces that passed
# are not repeated until a source changes. Some of them: make test-arm ARGS=engine/ops
test-arm: $(VENV)/.ready-dev
	$(VENV)/bin/python -m tests.arm --jobs $(WORKERS) $(ARGS)

# All targets in turn; an input that fails is kept, and the command to replay it is printed.
MINUTES ?= 10
fuzz: $(VENV)/.ready-dev
	$(VENV)/bin/python -m tests.fuzz --minutes $(MINUTES) --jobs $(WORKERS)

# Guided by coverage, so many minutes for all targets together; the result is out/fuzz.json.
fuzz-guided: $(VENV)/.ready-dev
	$(VENV)/bin/python -m tests.fuzz.guided --seconds $$(( $(MINUTES) * 60 )) --jobs $(WORKERS) --out out

# The same with Atheris; so many minutes for each target.
fuzz-atheris: $(VENV)/.ready-dev
	$(VENV)/bin/python -m pip install -q atheris
	$(VENV)/bin/python -m tests.fuzz.with_atheris all -max_total_time=$$(( $(MINUTES) * 60 ))

# An hour of everything; memory, threads and descriptors must stay flat.
soak: $(VENV)/.ready-dev
	$(VENV)/bin/python -m benchmarks.soak --minutes $(or $(MINUTES),60) --plot docs/images/soak.png

lint: $(VENV)/.ready-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# The site, to build/site. It needs no network; a warning is an error, and a crawl checks every page.
# As one of several versions, with a switcher (see website/versions.py): make docs SITE_VERSION=0.1.0
SITE_VERSION ?=
docs: $(VENV)/.ready-dev
	NO_MKDOCS_2_WARNING=1 SITE_VERSION=$(SITE_VERSION) $(VENV)/bin/mkdocs build
	$(VENV)/bin/python -m website.crawl build/site

docs-serve: $(VENV)/.ready-dev
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs serve --livereload --watch src --watch website

bench: $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks $(ARGS)

# The suite on the oldest versions that pyproject.toml allows.
test-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/python -m pytest -n $(WORKERS)

clean:
	rm -rf $(VENV) $(BENCH) $(OLDEST) build dist out .pytest_cache .mypy_cache .ruff_cache \
	    .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# environments ------------------------------------------------------------------------------------

# $(call environment,FOLDER,WHAT TO INSTALL)
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "dala needs Python 3.11 or newer, but $(PYTHON) is '$$($(PYTHON) --version 2>&1)'." \
	        "Use another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(1)/bin/python || { echo "Setting up $(1) ..."; $(PYTHON) -m venv $(1); } || { \
	    echo "Cannot create a virtual environment (Debian: apt-get install python3-venv)." >&2; \
	    rm -rf $(1); exit 1; }
	@printf '*\n' > $(1)/.gitignore
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2)
	@touch $@
endef

$(VENV)/.ready-media: pyproject.toml
	$(call environment,$(VENV),--editable '.[media]')

$(VENV)/.ready-dev: pyproject.toml
	$(call environment,$(VENV),--editable '.[dev]')

# Peers are installed one by one; those that cannot be are left out, and the tables say so. Each is
# resolved together with dala, so that none replaces our llvmlite.
$(BENCH)/.ready: pyproject.toml benchmarks/requirements.txt
	$(call environment,$(BENCH),--editable .)
	@rm -f $@
	@sed 's/ *#.*//; /^$$/d' benchmarks/requirements.txt | while IFS= read -r peer; do \
	    $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable . "$$peer" \
	        || echo "left out, cannot be installed here: $$peer" >&2; \
	done
	@touch $@

$(OLDEST)/.ready: pyproject.toml tests/oldest.txt
	$(call environment,$(OLDEST),--editable '.[dev]' --requirement tests/oldest.txt)
