# make run: the main job.  make test: everything CI checks.  Both set up .venv by themselves.
export OMP_NUM_THREADS = 1
PYTHON ?= python3
BIN = .venv/bin
READY = .venv/ready

.PHONY: run test lint bench
run: $(READY)
	$(BIN)/python examples/cheetah.py

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/voronaut bench kernels

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)
