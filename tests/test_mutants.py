"""`make mutants` changes what it says, in rooms that are there."""

import ast
import difflib

import pytest

from tests import mutants


@pytest.mark.parametrize("room", mutants.ROOMS)
def test_every_room_and_its_tests_are_there(room: str) -> None:
    assert (mutants.HOME / room).exists()
    assert all((mutants.HOME / part).exists() for part in mutants.ROOMS[room].split())


def test_what_keeps_a_run_is_drawn_from() -> None:
    files = {path for path, _ in mutants.drawn(10**6, 0, "")}
    kept = ("replay", "slots", "pair", "checkpoint", "folder", "watching/logs")
    assert {f"voronaut/training/{name}.py" for name in kept} <= files
    assert {"voronaut/views.py", *(f"voronaut/kernels/{kind}/views.py" for kind in ("cpu", "xla", "gpu"))} <= files
    assert "voronaut/training/watching/progress.py" not in files


def test_one_operator_is_changed_and_nothing_else() -> None:
    path, place = mutants.drawn(1, 0, "voronaut/clusters.py")[0]
    source, said = mutants.mutant(path, place)
    before = ast.unparse(ast.parse((mutants.HOME / path).read_text())).splitlines()
    changed = [line for line in difflib.ndiff(before, source.splitlines()) if line[0] in "+-"]
    assert len(changed) == 2 and said.startswith("voronaut/clusters.py:")


def test_the_mirror_of_the_changed_file_comes_first() -> None:
    assert mutants.ordered("voronaut/training/replay.py", {})[0] == "tests/training/test_replay.py"
    assert mutants.ordered("voronaut/kernels/xla/views.py", {})[0] == "tests/kernels/xla/test_views.py"
