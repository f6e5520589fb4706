"""Trainings of a few steps compile for longer than they run."""

import pytest

QUICK = {"test_absorb", "test_off_policy", "test_on_policy", "test_population", "test_replay", "test_stack"}


@pytest.fixture(autouse=True, scope="module")
def compiled_quickly(request: pytest.FixtureRequest) -> None:
    """Without most of the optimizations, where they cost more than they save."""
    if request.module.__name__.rpartition(".")[2] in QUICK:
        request.getfixturevalue("quick_compilation")
