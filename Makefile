# make run: the main job.  make test: everything CI checks.  Both set up .venv by themselves.
export OMP_NUM_THREADS = 1
PYTHON ?= python3
BIN = .venv/bin
READY = .venv/ready

RAY = .venv-ray/bin
RAY_READY = .venv-ray/ready

.PHONY: run test lint bench rllib
run: $(READY)
	$(BIN)/python examples/cheetah.py

test: lint rllib
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Ray pins an older Gymnasium than the rest is tested with: what meets either runs here as well.
rllib: $(RAY_READY)
	$(RAY)/python -m pytest tests/rllib tests/adapters/test_gymnasium.py

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

$(RAY_READY): pyproject.toml constraints-ray.txt
	test -x $(RAY)/python || $(PYTHON) -m venv .venv-ray
	$(RAY)/pip install --quiet --disable-pip-version-check -c constraints-ray.txt -e '.[rllib]' pytest
	touch $(RAY_READY)
