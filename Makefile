# make run: the main job.  make quick: the inner loop.  make test: everything CI checks.
# All set up .venv by themselves; make setup does only that.
export OMP_NUM_THREADS = 1
PYTHON ?= python3
BIN = .venv/bin
READY = .venv/ready

RAY = .venv-ray/bin
RAY_READY = .venv-ray/ready

# Reference ≡ kernels, one adapter, one short training: under two minutes on two cores.
QUICK = tests/test_clusters.py tests/kernels/test_every_machine.py tests/kernels/cpu tests/kernels/xla \
	tests/adapters/test_gymnasium.py tests/training/test_on_policy.py tests/training/watching/test_snapshots.py

.PHONY: run quick test setup lint bench rllib docs wheel mutants
run: $(READY)
	$(BIN)/python examples/cheetah.py

quick: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile $(QUICK)

# Setting up two environments, lint and RLlib use one core each: side by side they take half as long.
test:
	$(MAKE) --jobs 2 --output-sync=line --no-print-directory lint rllib
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

# Do the tests notice? 200 changed operators, one at a time; hours, and it goes on where it stopped. Not part of CI.
SEED ?= 0
mutants: $(READY)
	mkdir -p out
	$(BIN)/python tests/mutants.py --count 200 --seed $(SEED) --out out/mutants-$(SEED).json

setup: $(READY)

# The documentation as a site: open site/index.html, or `.venv/bin/mkdocs serve` to write it. Needs no network.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Wheel and sdist in dist/, and a smoke test of each in an empty environment with the core libraries alone.
wheel: $(READY)
	rm -rf dist build .venv-wheel
	$(BIN)/python -m build --no-isolation
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd dist && ../.venv-wheel/bin/python ../tests/smoke.py
	.venv-wheel/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.tar.gz
	cd dist && ../.venv-wheel/bin/python ../tests/smoke.py

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

# What voronaut[rllib] wants, without building voronaut itself: .venv may be doing that at the same moment in this folder.
define NEEDS
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"]["rllib"], sep="\n")
endef
export NEEDS

$(RAY_READY): pyproject.toml constraints-ray.txt
	test -x $(RAY)/python || $(PYTHON) -m venv .venv-ray
	$(RAY)/python -c "$$NEEDS" > .venv-ray/needs.txt
	$(RAY)/pip install --quiet --disable-pip-version-check -c constraints-ray.txt -r .venv-ray/needs.txt pytest
	$(RAY)/python -c "import site; open(site.getsitepackages()[0] + '/voronaut.pth', 'w').write('$(CURDIR)')"
	touch $(RAY_READY)
