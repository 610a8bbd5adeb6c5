# One command for everything. `make` alone lists them. Each target installs what it needs first.

# bash, because env.sh is for bash and zsh.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PROFILE ?= full
PYTHON ?=
ARGS ?=
# 1: also Ray and SLURM (requirements/cluster.txt); what was installed once stays up to date without it.
CLUSTER ?=
# 1: also what builds the documentation site (requirements/docs.txt).
DOCS ?=
# 1: also the operator's console in the browser (requirements/console.txt).
CONSOLE ?=
TASK ?= block_picking
EQUI_FUZZ_CASES ?= 10000

# Runs a command in the environment that `source env.sh` gives.
IN_ENV := . ./env.sh &&

# Folders that hold Python packages of ours, and the packages in them.
BASES := $(wildcard requirements tests/fixtures training calibration ros2_ws/pip_ros2/src ros2_ws/src/* tests/fixtures/*)
PACKAGES := $(patsubst %/__init__.py,%,$(wildcard $(addsuffix /*/__init__.py,$(BASES))))
LISTS := build.txt core.txt robot.txt training.txt dev.txt colcon.txt ros.txt cluster.txt docs.txt console.txt
# Found as plain modules: a test folder is no package, and fixtures are imported by their own names.
TESTS = $(shell find tests -name '*.py' -not -path 'tests/fixtures/*/*' -not -name '*.launch.py')
EMPTY :=
SPACE := $(EMPTY) $(EMPTY)

.PHONY: help setup baselines demo test test-slow test-cluster fuzz check types format bench bench-console faults soak graph sizes lock doctor clean ready docs docs-serve

help: ## list the commands
	@echo 'Equivariant manipulation: commands (make NAME)'
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'
	@echo 'Options: PROFILE=robot (no training, for the robot PC), PYTHON=python3.11, CLUSTER=1 (Ray and SLURM too), DOCS=1 (documentation tools too), CONSOLE=1 (console in the browser too), ARGS="..." (more arguments)'

setup: ## install everything and build the workspace; a second time does nothing
	@PYTHON='$(PYTHON)' sh requirements/installer/setup.sh --profile '$(PROFILE)' $(if $(CLUSTER),--cluster) $(if $(DOCS),--docs) $(if $(CONSOLE),--console)

# What the other targets ask for: as setup, but silent if there is nothing to do.
ready:
	@PYTHON='$(PYTHON)' sh requirements/installer/setup.sh --profile '$(PROFILE)' $(if $(CLUSTER),--cluster) $(if $(DOCS),--docs) $(if $(CONSOLE),--console) --quiet

demo: ready ## watch a policy at work in the simulated cell (TASK=drawer_opening for another task, CONSOLE=1 in the browser)
	@$(IN_ENV) python -m equi_evaluation.demo --task $(TASK) $(if $(CONSOLE),--console) $(ARGS)

test: ready ## run the tests (ARGS="-k name" for some of them)
	@$(IN_ENV) pytest -m 'not slow and not fuzz and not hardware' $(ARGS)

test-slow: ready ## run the long tests
	@$(IN_ENV) pytest -m 'slow and not fuzz and not hardware' $(ARGS)

test-cluster: ready ## run the tests on a simulated Ray cluster (needs CLUSTER=1 once)
	@$(IN_ENV) pytest -m cluster $(ARGS)

fuzz: ready ## mutated files and messages: 10,000 cases per parser (EQUI_FUZZ_CASES=n for others)
	@$(IN_ENV) EQUI_FUZZ_CASES=$(EQUI_FUZZ_CASES) pytest -m 'fuzz and not hardware' $(ARGS)

baselines: ready ## install sheeprl (DreamerV2, DreamerV3) into an environment of its own, .venv-baselines
	@$(IN_ENV) PYTHONPATH="requirements:$$PYTHONPATH" python -m installer.baselines

check: ready ## check format, lint, spelling and types, of the tests too
	@$(IN_ENV) ruff format --check . && ruff check . && codespell && $(MAKE) --no-print-directory types

types: ready
	@$(IN_ENV) MYPYPATH='.:$(subst $(SPACE),:,$(BASES))' mypy $(PACKAGES) $(TESTS) $(ARGS)

format: ready ## put the code into the common format
	@$(IN_ENV) ruff format . && ruff check --fix .

bench: ready ## run every benchmark (equi-bench NAME for one of them)
	@$(IN_ENV) equi-bench all $(ARGS)

bench-console: CONSOLE = 1
bench-console: ready ## measure the console's page in a browser: answers to presses, page load, images, processor time
	@$(IN_ENV) PYTHONPATH="tests/fixtures:$$PYTHONPATH" python tests/equi_console/measure_page.py $(ARGS)

faults: ready ## inject every fault into the moving, emulated robot and report travel and recovery
	@$(IN_ENV) ros2 run equi_system_tests equi-faults $(ARGS)

soak: ready ## run the whole simulated cell for ten minutes and look for anything that grows
	@$(IN_ENV) python -m equi_system_tests.studies.soak $(ARGS)

docs: DOCS = 1
docs: ready ## build the documentation site into build/docs/site, without a network
	@$(IN_ENV) PYTHONPATH="requirements:$$PYTHONPATH" python -m documentation.build $(ARGS)

docs-serve: DOCS = 1
docs-serve: ready ## build the documentation and show it at http://127.0.0.1:8000, rebuilt at every change
	@$(IN_ENV) PYTHONPATH="requirements:$$PYTHONPATH" python -m documentation.build --serve $(ARGS)

graph: ready ## draw the imports between packages and inside equi_rl (requirements/architecture)
	@$(IN_ENV) python requirements/architecture/draw.py $(ARGS)

sizes: ## print lines and modules per package (ARGS=/other/checkout to compare)
	@python3 requirements/architecture/sizes.py $(ARGS)

lock: ready ## compile requirements/constraints.txt from the short lists (after a change of one)
	@$(IN_ENV) cd requirements && UV_CUSTOM_COMPILE_COMMAND='make lock' \
		uv pip compile --quiet --universal --python-version 3.10 --annotation-style line \
		$(LISTS) --output-file constraints.txt >/dev/null && echo requirements/constraints.txt

doctor: ## check the environment line by line, and say how to repair it
	@PYTHON='$(PYTHON)' sh requirements/installer/setup.sh --doctor

clean: ## remove everything that setup and the tests have made
	rm -rf .venv .venv-baselines .venv.*.old .cache ros2_ws/build ros2_ws/install ros2_ws/log
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +
