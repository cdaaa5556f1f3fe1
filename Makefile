# The commands of the house. Nothing needs to be activated: everything runs in .venv, which the first call makes.
#   make demo     Python only: no R, no download beyond pip
#   make test     everything that can be tested on this machine, but audits and simulations of seconds: make audits
# Variables: PYTHON=python3.12 (which Python makes .venv), PYTEST_ARGS="-k curves", PROCESSES="-n 0", DEMO_ARGS, BENCH_ARGS.

VENV := .venv
PY := $(VENV)/bin/python
PIP := PYTHONWARNINGS=ignore $(PY) -m pip install --quiet
PYTHON ?=
PYTEST_ARGS ?=
PROCESSES ?= -n 2 --dist worksteal
# Minutes of CPU that `make test` may take on the machine of conftest.py, which knows how slow another one is.
MOST_CPU ?= 7.5
DEMO_ARGS ?= --out fdadp-demo
BENCH_ARGS ?=
DOCS_ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes: where bytecode may not be written, each one compiles fdadp again.
unexport PYTHONDONTWRITEBYTECODE
# Two processes of tests fill two cores: threads of BLAS would wait for one another, and compute while they wait.
test audits: export OPENBLAS_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs test audits test-r test-debian13 test-debian-testing lint format notebooks sdist bench bench-learners setup r rpy2 clean

help: ## show this list
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

demo: $(VENV)/.stamp-plots ## weather without privacy, 3,000 simulated people with it: tables, figures in fdadp-demo/
	$(PY) -m fdadp demo $(DEMO_ARGS)

test: $(VENV)/.stamp-dev rpy2 ## run all tests and doctests but those of audits (R's too where R is there or can be installed)
	@log=$$(mktemp); sh .ci/r-package.sh tests >$$log 2>&1 & r=$$!; trap 'kill $$r; rm $$log; exit 130' INT TERM; \
	$(PY) -m pytest $(PROCESSES) --most-cpu $(MOST_CPU) $(PYTEST_ARGS); python=$$?; \
	wait $$r; r=$$?; cat $$log; rm $$log; exit $$((python > r ? python : r))

audits: $(VENV)/.stamp-dev ## audits, simulations and deployed runs that take seconds each
	$(PY) -m pytest tests/python -m "statistics and not long" $(PROCESSES) $(PYTEST_ARGS)

test-r: r ## the R package: its tests, its vignette and R CMD check (R_PYTHON= names the Python, else .venv or .venv-r)
	@sh .ci/r-package.sh tests check

test-debian13: ## the R package and the bridge to R on R 4.5, NumPy 2 (a root by debootstrap in DEBIAN_ROOTS=, 1.2 GB)
	@sh .ci/debian.sh 13

test-debian-testing: ## the wheel with the newest Python that Debian has (the same, 1 GB)
	@sh .ci/debian.sh testing

lint: $(VENV)/.stamp-dev ## ruff, formatting, mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(VENV)/.stamp-dev ## mend formatting and what ruff can mend
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

notebooks: $(VENV)/.stamp-dev rpy2 ## run every notebook from its .py pair (NOTEBOOK_ARGS=--write stores the outputs)
	$(PY) .ci/notebooks.py $(NOTEBOOK_ARGS)

docs: $(VENV)/.stamp-docs ## build the site in docs/_build/html and check it, its English too (DOCS_ARGS=--fast: nothing is run or checked)
	$(PY) docs/build.py $(DOCS_ARGS)

sdist: $(VENV)/.stamp-dev ## build the source distribution in dist/, compare it with the repository, run tests from it
	$(PY) .ci/sdist.py

bench: $(VENV)/.stamp-bench ## side by side with the peers (BENCH_ARGS=--quick, --readme, --help)
	$(PY) benchmarks/run.py $(BENCH_ARGS)
	$(PY) benchmarks/terms/waits.py --rounds 1

bench-learners: $(VENV)/.stamp-dev ## private classifiers beside diffprivlib and interpret, each in its own environment
	$(PY) benchmarks/learners/run.py $(BENCH_ARGS)

setup: $(VENV)/.stamp-dev ## only make .venv with everything for development

r: ## install R where apt and root are there; else say what is skipped
	@sh .ci/install-r.sh

rpy2: $(VENV)/.stamp-dev r ## install the rpy2 that fits the R that is there; without R say what is skipped
	@sh .ci/install-rpy2.sh $(PY)

clean: ## remove .venv, caches and what was made here
	rm -rf fdadp/_kernels.* .venv .venv-oldest .venv-newest .venv-r build dist *.egg-info .ci/reports .ci/roots fdadp-demo docs/_build
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up, once: a stamp is older than pyproject.toml when the dependencies may have changed, and older than these when
# kernels may have, which are compiled.
KERNELS := setup.py $(shell grep -rl --include='*.py' '^@kernel' fdadp)

$(VENV)/.stamp-python: .ci/make-venv.sh
	@PYTHON="$(PYTHON)" sh .ci/make-venv.sh $(VENV)
	@touch $@

$(VENV)/.stamp-plots: $(VENV)/.stamp-python pyproject.toml $(KERNELS)
	@echo "Installing fdadp with its plots into $(VENV), which compiles kernels ..."
	$(PIP) --editable '.[plots]'
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-python pyproject.toml $(KERNELS)
	@echo "Installing fdadp with the tools for development into $(VENV) ..."
	$(PIP) --group dev --editable '.[plots,federated,service,published]'
	@# r_bridge is not installed, as it is not in the wheel: Python finds it in this folder.
	@$(PY) -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "r_bridge.pth").write_text(str(pathlib.Path.cwd()))'
	@touch $(VENV)/.stamp-plots $@

$(VENV)/.stamp-docs: $(VENV)/.stamp-dev docs/requirements.txt
	$(PIP) --requirement docs/requirements.txt
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp-dev benchmarks/requirements.txt
	$(PIP) --requirement benchmarks/requirements.txt
	@touch $@
