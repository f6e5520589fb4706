# make run: the main job.  make test: everything CI checks.  All set up .venv by themselves; make setup does only that.
export OMP_NUM_THREADS = 1
PYTHON ?= python3
BIN = .venv/bin
READY = .venv/ready

RAY = .venv-ray/bin
RAY_READY = .venv-ray/ready

.PHONY: run test setup lint bench rllib docs wheel
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

setup: $(READY)

# The documentation as a site: open site/index.html, or `.venv/bin/mkdocs serve` to write it. Needs no network.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Wheel and sdist in dist/, and a smoke test of the wheel in an empty environment with the core libraries alone.
wheel: $(READY)
	rm -rf dist build .venv-wheel
	$(BIN)/python -m build --no-isolation
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd dist && ../.venv-wheel/bin/python ../tests/smoke.py

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

$(RAY_READY): pyproject.toml constraints-ray.txt
	test -x $(RAY)/python || $(PYTHON) -m venv .venv-ray
	$(RAY)/pip install --quiet --disable-pip-version-check -c constraints-ray.txt -e '.[rllib]' pytest
	touch $(RAY_READY)
