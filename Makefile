# Two commands are enough on a fresh machine: make demo, make test.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint bench examples pins lock clean

help:  ## list the targets
	@grep -hE '^[a-z]+: .*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

venv: $(STAMP)  ## .venv/ with azcp-kit, azcp-distribute and mpirun; Azurite too where npm exists

$(STAMP): pyproject.toml tests/requirements.txt tests/azurite/package-lock.json tests/venv.sh
	PYTHON="$(PYTHON)" tests/venv.sh "$(VENV)"
	@touch $@

demo: venv  ## 4 ranks here take a data set from a local Blob endpoint to 4 destinations
	$(BIN)/azcp-kit demo

test: venv  ## all tests; what lacks Docker, Slurm or Node.js is skipped with the reason
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: venv  ## ruff, mypy, shellcheck, hadolint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/shellcheck .ci/run tests/venv.sh templates/image/build/*.sh \
	  templates/cyclecloud/*/*.sh templates/cyclecloud/*/*/*.sh
	$(BIN)/hadolint tests/kit/golden/*.Dockerfile

bench: venv  ## the tables of bench/ (the shaped cluster needs root)
	$(BIN)/python bench/run.py

examples: venv  ## regenerate examples/ and the golden files of the tests
	$(BIN)/python -m azcp_kit.examples examples
	$(BIN)/python -m tests.kit.golden_dockerfiles

pins: venv  ## download every pinned archive and write its digest anew
	$(BIN)/python -m azcp_kit.payload.update_pins $(PINS_ARGS)

lock: venv  ## write the hash-locked requirements again
	$(BIN)/uv pip compile --quiet pyproject.toml --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-header --upgrade -o tests/requirements.txt
	$(BIN)/uv pip compile --quiet --group pyproject.toml:runtime --universal --python-version 3.11 \
	  --generate-hashes --no-header --upgrade -o runtime/requirements.txt

clean:  ## remove what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
