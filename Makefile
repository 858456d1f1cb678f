# Needs python3 (3.11 or newer) and make, nothing else; the tools go into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := $(VENV)/oldest
BRIDGES := $(VENV)/bridges
DOCS := $(VENV)/docs
LOCKING := $(VENV)/locking
LOCK := requirements-dev.lock

# What pip installs PyTorch by, in the version of pyproject.toml; an index of builds for CPUs can be named here.
TORCH ?= torch==2.13.0

# pytest runs in this many processes ...
JOBS ?= 2
# ... each held to one thread, so that the processes do not compete for the cores.
# NPROC sizes the thread pool of XLA and is what holds it to one thread with jax 0.10,
# where the XLA_FLAGS alone do not (they are the setting of older versions).
# OMP_NUM_THREADS holds the BLAS and OpenMP code of numpy, scipy and scikit-learn.
# All are set for the test run only: ordinary use keeps every core.
TEST_ENV := NPROC=1 OMP_NUM_THREADS=1 \
	XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
PYTEST = $(TEST_ENV) $(BIN)/python -m pytest -n $(JOBS)
# The fast tests compile thousands of programs and run each for a moment: a quarter of the time without optimising them.
UNOPTIMISED = XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help venv venv-locked lock sbom demo bench docs test test-all test-oldest test-bridges lint lint-ruff lint-format lint-types lint-imports format clean

help: ## list the targets
	@$(PYTHON) -c 'import re; [print("make %-13s %s" % m) for m in re.findall(r"^([a-z-]+):.*?## (.*)$$", open("Makefile").read(), re.M)]'

# The stamps are newer than the pyproject.toml of both packages as long as .venv matches them.
PROJECTS := pyproject.toml reproduction/pyproject.toml
$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed-plot: pyproject.toml | $(VENV)/.created
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -e '.[plot]'
	@touch $@

# The dev extra contains the plot extra, hence both stamps.
$(VENV)/.installed-dev: $(PROJECTS) | $(VENV)/.created
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -e '.[dev]' -e reproduction
	@touch $@ $(VENV)/.installed-plot

venv: $(VENV)/.installed-dev ## create .venv with both packages and the development tools

# The versions of the lock, each file with a known hash; the two packages are built by the locked hatchling.
$(VENV)/.installed-locked: $(LOCK) $(PROJECTS) | $(VENV)/.created
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e . -e reproduction
	@touch $@ $(VENV)/.installed-dev $(VENV)/.installed-plot

venv-locked: $(VENV)/.installed-locked ## the same with the versions and hashes of requirements-dev.lock

# hatchling needs editables to install the two packages from their folders.
# uv resolves for all supported versions of Python and all systems, and knows the hashes of all files of a version.
$(LOCKING)/.installed:
	$(PYTHON) -m venv --clear $(LOCKING)
	$(LOCKING)/bin/python -m pip install --disable-pip-version-check --quiet uv
	@touch $@

lock: $(LOCKING)/.installed ## write requirements-dev.lock anew: the newest versions that fit, with their hashes
	printf '%s\n' '-e .[dev]' '-e ./reproduction' 'editables~=0.3' | $(LOCKING)/bin/uv pip compile - --quiet --upgrade \
		--universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command 'make lock' \
		--no-emit-package metaprior --no-emit-package metaprior-reproduction --output-file $(LOCK)

# The folder has the same name.
.PHONY: dist
dist: venv ## build the wheel and the source distribution of the library in dist/
	$(BIN)/python -m hatchling build

sbom: venv ## write the bill of materials (CycloneDX) of the locked dependencies to dist/
	$(BIN)/python .ci/sbom.py

demo: $(VENV)/.installed-plot ## run examples/sinusoid.py, which writes sinusoid.png
	$(BIN)/python examples/sinusoid.py

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/.created
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -e '.[bench]' -e reproduction
	@touch $@

bench: $(VENV)/.installed-bench ## measure the ratios of docs/performance.md (about 25 minutes, with the machine for itself; METAPRIOR_DATA must name the tables)
	$(BIN)/python -m benchmarks

# An environment of its own: Sphinx and its extensions are many, and nothing else needs them.
$(DOCS)/.installed: $(PROJECTS)
	$(PYTHON) -m venv --clear $(DOCS)
	$(DOCS)/bin/python -m pip install --disable-pip-version-check --quiet -e '.[docs]' -e reproduction
	@touch $@

# A folder for every version, beside those of other versions, and a page in front that leads to this one.
DOCS_VERSION = $(shell $(PYTHON) -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
SITE = build/docs/html/$(DOCS_VERSION)
# Of Sphinx: a warning is an error, reported after the rest is built. Executed notebooks are kept in build/docs.
SPHINXOPTS ?= --fail-on-warning --keep-going

# Pages of an earlier build that are gone would be checked, too.
docs: $(DOCS)/.installed ## build the documentation site in build/docs/html, and check its links and its snippets
	rm -rf $(SITE)
	$(DOCS)/bin/python -m sphinx $(SPHINXOPTS) --builder html --doctree-dir build/docs/doctrees docs $(SITE)
	$(DOCS)/bin/python .ci/links.py $(SITE)
	$(DOCS)/bin/python .ci/front.py build/docs/html $(DOCS_VERSION)
	MPLBACKEND=Agg $(TEST_ENV) $(UNOPTIMISED) $(DOCS)/bin/python .ci/snippets.py --processes $(JOBS) README.md CONTRIBUTING.md docs src

test: lint ## lint, types, import rules, and the tests but the slow ones
	$(TEST_ENV) $(UNOPTIMISED) $(BIN)/python -m pytest -n $(JOBS) -m "not slow"

test-all: lint ## the same with the slow tests
	$(PYTEST)

# An environment of its own, with the lowest allowed version of everything that a pyproject.toml names.
$(OLDEST)/.installed: $(PROJECTS) .ci/oldest.py
	$(PYTHON) -m venv --clear $(OLDEST)
	$(PYTHON) .ci/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --disable-pip-version-check --quiet -c $(OLDEST)/constraints.txt -e '.[dev]' -e reproduction
	@touch $@

test-oldest: $(OLDEST)/.installed ## the tests but the slow ones, with the oldest allowed version of every dependency
	$(TEST_ENV) $(OLDEST)/bin/python -m pytest -n $(JOBS) -m "not slow"

# An environment of its own: the libraries of the bridges are many, and torch has to be the build for CPUs.
$(BRIDGES)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(BRIDGES)
	$(BRIDGES)/bin/python -m pip install --disable-pip-version-check --quiet $(TORCH)
	$(BRIDGES)/bin/python -m pip install --disable-pip-version-check --quiet -e '.[bridges,plot,hmc]' sktime arviz-base pytest pytest-xdist beartype
	@touch $@

test-bridges: $(BRIDGES)/.installed ## the tests of the bridges, slow ones too, with the libraries that they lead to
	$(TEST_ENV) $(BRIDGES)/bin/python -m pytest -n $(JOBS) tests/bridges tests/conformal

lint: lint-ruff lint-format lint-types lint-imports ## ruff, formatting, mypy and the import rules

lint-ruff: venv
	$(BIN)/ruff check .

lint-format: venv
	$(BIN)/ruff format --check .

lint-types: venv
	$(BIN)/mypy

lint-imports: venv
	$(BIN)/lint-imports

format: venv ## sort imports, apply safe fixes and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove caches, build output and pictures (.venv stays)
	rm -rf build dist reproduction/dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis *.png
	rm -rf docs/api/modules docs/api/objects docs/gallery
	@$(PYTHON) -c 'import pathlib, shutil; [shutil.rmtree(p) for d in ("src", "tests", "examples", "reproduction") for p in list(pathlib.Path(d).rglob("__pycache__"))]'
