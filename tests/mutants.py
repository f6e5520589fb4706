"""`make mutants`: one operator of the library is changed at a time, and the tests of its room must notice.

Works in a copy of the tree, goes on where it stopped, and writes what became of each mutant to one JSON file.
Every file of tests runs in a fork of one warm process, which has imported the heavy libraries and nothing of voronaut;
the file that mirrors the changed one comes first, and the first failure is enough. What numba would have to compile
anew is first tried without its compiler.

    python tests/mutants.py --count 200 --seed 0 --out mutants.json
"""

import argparse
import ast
import importlib
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[1]
ROOMS = {  # what is changed, and the tests that must notice; quick ones first
    "voronaut/clusters.py": "tests/test_clusters.py tests/kernels/cpu/test_cpu.py",
    "voronaut/helpers/npz.py": "tests/helpers/test_npz.py tests/bonuses/test_saving.py",
    "voronaut/helpers/files.py": "tests/helpers/test_files.py tests/training/test_folder.py tests/training/watching",
    "voronaut/adapters/payer.py": "tests/adapters/test_payer.py tests/adapters/sb3",
    "voronaut/bonuses": "tests/bonuses tests/training/test_stack.py tests/training/test_absorb.py",
    "voronaut/learners": "tests/learners",
    "voronaut/learners/sac.py": "tests/learners/test_sac.py",
    "voronaut/adapters/sb3": "tests/adapters/sb3 tests/adapters/test_conformance.py",
    "voronaut/views.py": "tests/kernels/cpu/test_views.py tests/bonuses/kme/test_views.py",
    "voronaut/training": "tests/training",
    "voronaut/learners/ppo.py": "tests/learners/test_ppo.py",
    "voronaut/kernels/cpu": "tests/kernels/cpu tests/kernels/test_every_machine.py",
    "voronaut/kernels/xla": "tests/kernels/xla tests/test_jax.py",
    "voronaut/kernels/gpu": "tests/kernels/gpu",
}
COMPILED = ("voronaut/kernels/cpu", "voronaut/kernels/rules.py")  # by numba, and kept on disk
NUMBERS = "voronaut/views.py"  # kernels take its numbers, in which there are no operators
MIRRORS = {  # of files that no file of tests is named after or imports
    **dict.fromkeys(("few", "singles"), "test_views"),
    **dict.fromkeys(("winners", "all_clusters", "short_lists", "shared", "prepare", "prepared"), "test_rewards"),
    "slots": "test_replay",
}
LEFT_OUT = tuple(  # they only tell
    f"voronaut/training/{name}"
    for name in ("command.py", *(f"watching/{part}" for part in ("__init__", "board", "progress", "snap", "wandb_log")))
)
HEAVY = (
    "numpy",
    "scipy.stats",
    "numba",
    "jax",
    "optax",
    "torch",
    "gymnasium",
    "stable_baselines3",
    "hypothesis",
    "pytest",
)
BOTH_WAYS = [
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
    (ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.LShift, ast.RShift), (ast.USub, ast.UAdd),
]  # fmt: skip
ONE_WAY = [(ast.FloorDiv, ast.Mult), (ast.Mod, ast.FloorDiv), (ast.Pow, ast.Mult), (ast.BitAnd, ast.BitOr)]
SWAPS: dict[type, type] = dict([*BOTH_WAYS, *((b, a) for a, b in BOTH_WAYS), *ONE_WAY])
SILENT = (ast.Raise, ast.Assert, ast.JoinedStr)  # words are not what is tested


def sites(node: ast.AST) -> Iterator[tuple[ast.AST, str, int]]:
    """Every operator in the order of the source: whose it is, in which field, and its place there."""
    for name, child in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for index, part in enumerate(child if isinstance(child, list) else [child]):
            if type(part) in SWAPS:
                yield node, name, index
            elif isinstance(part, ast.AST) and not isinstance(part, SILENT):
                yield from sites(part)


def mutant(path: str, place: int) -> tuple[str, str]:
    """The source of a file with its n-th operator changed, and what that is: "voronaut/x.py:12 Lt -> LtE"."""
    tree = ast.parse((HOME / path).read_text())
    node, name, index = list(sites(tree))[place]
    found = getattr(node, name)
    old = found[index] if isinstance(found, list) else found
    new = SWAPS[type(old)]()
    setattr(node, name, [*found[:index], new, *found[index + 1 :]] if isinstance(found, list) else new)
    said = f"{path}:{getattr(node, 'lineno', 0)} {type(old).__name__} -> {type(new).__name__}"
    return ast.unparse(ast.fix_missing_locations(tree)), said


def drawn(count: int, seed: int, only: str) -> list[tuple[str, int]]:
    """Files and places: a fair draw from each room; the rooms with quick tests come first."""
    rooms: dict[str, list[tuple[str, int]]] = {room: [] for room in ROOMS}
    for path in sorted({p for room in ROOMS for p in (HOME / room, *(HOME / room).rglob("*.py")) if p.is_file()}):
        name = str(path.relative_to(HOME))
        if not name.startswith(LEFT_OUT):
            rooms[room_of(name)] += [(name, n) for n, _ in enumerate(sites(ast.parse(path.read_text())))]
    print(", ".join(f"{room}: {len(places)}" for room, places in rooms.items()), flush=True)
    rng = random.Random(seed)
    turns = zip_longest(*(rng.sample(places, len(places)) for places in rooms.values()))
    chosen = [place for turn in turns for place in turn if place][:count]
    order = list(ROOMS)
    return sorted((c for c in chosen if c[0].startswith(only)), key=lambda c: order.index(room_of(c[0])))


def room_of(path: str) -> str:
    """The narrowest room that a file is in."""
    return max((room for room in ROOMS if path.startswith(room)), key=len)


def ordered(path: str, known: dict[str, float]) -> list[str]:
    """The files of tests of a room: the mirror of the changed file, then those that import it, then the quick ones."""
    room = [HOME / part for part in ROOMS[room_of(path)].split()]
    files = {f for part in room for f in ([part] if part.is_file() else part.rglob("test_*.py"))}
    stem = Path(path).stem

    def key(file: Path) -> tuple[bool, bool, float]:
        named = re.search(rf"^(from|import) voronaut.*\b{stem}\b", file.read_text(), re.MULTILINE)
        return (
            file.stem != MIRRORS.get(stem, f"test_{stem}"),
            not named,
            known.get(str(file.relative_to(HOME)), 0),
        )

    return [str(file.relative_to(HOME)) for file in sorted(sorted(files), key=key)]


class Noted:
    """Writes down which test failed, and begins with those that draw no examples: they are quick."""

    def __init__(self, copy: Path) -> None:
        self.path = copy / "failed"

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """As pytest calls it."""
        items.sort(key=lambda item: hasattr(getattr(item, "obj", None), "hypothesis"))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """As pytest calls it."""
        if report.failed:
            self.path.write_text(report.nodeid)


def child(copy: Path, test: str, limit: float, mutated: str, plainly: bool) -> None:
    """In the fork: the tests of one file against the copy, quietly; a failing example is not made smaller."""
    os.setsid()
    for stream, name in ((1, "said"), (2, "said")):
        os.dup2(os.open(copy / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
    os.chdir(copy)
    sys.path[0] = str(copy)
    if mutated:  # two mutants of one size in one second would share their bytecode
        os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
    if mutated.startswith(COMPILED):  # it would push out the machine code that all others use
        import numba

        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(copy / ".mutated")
    if mutated == NUMBERS:  # or all kernels would be compiled anew
        source = (copy / mutated).read_text()
        shutil.copy2(HOME / mutated, copy / mutated)
        importlib.import_module("voronaut.kernels.compiled")
        (copy / mutated).write_text(source)
        assert "voronaut.views" not in sys.modules
    if plainly:
        import numba

        os.environ["NUMBA_DISABLE_JIT"], numba.config.DISABLE_JIT = "1", True
    import pytest
    from hypothesis import Phase, settings

    settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], database=None)
    settings.load_profile("mutants")
    import voronaut

    assert voronaut.__file__.startswith(str(copy))
    words = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
        *(["-Wignore::RuntimeWarning"] if plainly else []),
    ]
    os._exit(int(pytest.main([*words, test], plugins=[Noted(copy)])))


def check(copy: Path, test: str, limit: float, mutated: str = "", *, plainly: bool = False) -> tuple[str, float]:
    """What the tests of a file say ("survived", "killed", "killed by time"), and the seconds that were worked.

    The limit is of worked seconds, so that a busy machine kills nothing; one that waits for ever has ten times as many.
    """
    started = time.monotonic()
    pid = os.fork()
    if not pid:
        try:
            child(copy, test, limit, mutated, plainly)
        finally:
            os._exit(70)
    done, overdue = 0, False
    while not done and not overdue:
        done, status, used = os.wait4(pid, os.WNOHANG)
        time.sleep(0.05)
        overdue = time.monotonic() - started > 10 * limit
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # with what it has started itself
    if not done:
        _, status, used = os.wait4(pid, 0)
    timed = overdue or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL))
    fine = os.WIFEXITED(status) and os.WEXITSTATUS(status) in (0, 5)  # 5: all of them are skipped
    said = "killed by time" if timed else "survived" if fine else "killed"
    return said, round(used.ru_utime + used.ru_stime, 1)


def copied(folder: Path) -> Path:
    """The tree as it is, what git knows and what it does not ignore; machine code of an earlier time may lie there."""
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=HOME, text=True)
    for name in filter(lambda n: (HOME / n).is_file(), listed.splitlines()):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HOME / name, target)
    return folder


def warm(copy: Path) -> None:
    """Import what is slow to import, in the surroundings that every fork will have."""
    cache = {"NUMBA_CACHE_DIR": str(copy / ".numba"), "JAX_COMPILATION_CACHE_DIR": str(copy / ".jax")}
    triton = {"TRITON_INTERPRET": "0" if Path("/dev/nvidiactl").exists() else "1"}  # as tests/conftest.py has it
    os.environ.update({"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", **cache, **triton})
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    for name in HEAVY:
        with suppress(ImportError):
            importlib.import_module(name)


def tried_plainly(copy: Path, path: str, source: str, test: str) -> dict[str, Any] | None:
    """What half a minute without numba's compiler says; None unless a test fails, and only with the change."""
    (copy / "failed").unlink(missing_ok=True)
    (copy / path).write_text(source)
    outcome, worked = check(copy, test, 30, mutated=path, plainly=True)
    shutil.copy2(HOME / path, copy / path)
    if outcome != "killed" or not (copy / "failed").exists():
        return None
    by = (copy / "failed").read_text()
    fine = check(copy, by, 600, plainly=True)[0] == "survived"
    return {"outcome": "killed", "by": by, "cpu": worked, "compiled": False} if fine else None


def tried(copy: Path, path: str, source: str, known: dict[str, float], patience: float) -> dict[str, Any]:
    """Run the tests of the room against the changed file until one fails, which must not do so without the change."""
    plainly = path.startswith(COMPILED) and tried_plainly(copy, path, source, ordered(path, known)[0])
    if plainly:
        return plainly
    spent = 0.0
    for test in ordered(path, known):
        (copy / "failed").unlink(missing_ok=True)
        (copy / path).write_text(source)
        outcome, worked = check(copy, test, 120 + 4 * known.get(test, 60), mutated=path)
        shutil.copy2(HOME / path, copy / path)
        spent += worked
        if outcome != "survived":
            by = (copy / "failed").read_text() if (copy / "failed").exists() else test
            if check(copy, by, 1800)[0] != "survived":
                sys.exit(f"{by} fails without any change: mend that first.\n{(copy / 'said').read_text()[-3000:]}")
            return {"outcome": outcome, "by": by, "cpu": round(spent, 1)}
        known[test] = worked
        if spent > patience:
            return {"outcome": "survived", "until": test, "cpu": round(spent, 1)}
    return {"outcome": "survived", "cpu": round(spent, 1)}


def main() -> None:
    """Draw, change, test, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("--count", 200), ("--seed", 0)):
        parser.add_argument(name, type=int, default=usual)
    parser.add_argument("--only", default="", metavar="PATH", help="those of the draw whose files begin with this")
    parser.add_argument("--patience", type=float, default=math.inf, help="seconds of work after which one has survived")
    parser.add_argument("--again", action="store_true", help="those that survived, once more")
    parser.add_argument("--out", type=Path, default=Path("mutants.json"))
    args = parser.parse_args()
    known = json.loads(args.out.read_text()) if args.out.exists() else {"seconds": {}, "mutants": {}}
    copy = copied(args.out.resolve().with_suffix(".copy"))
    warm(copy)
    for path, place in drawn(args.count, args.seed, args.only):
        source, said = mutant(path, place)
        key = f"{said} ({place})"
        before = known["mutants"].get(key, {}).get("outcome")
        if before and not (args.again and before == "survived"):
            continue
        found = known["mutants"][key] = tried(copy, path, source, known["seconds"], args.patience)
        args.out.write_text(json.dumps(known, indent=1))
        print(f"{found['outcome']:<14} {found['cpu']:>6} s  {key}", flush=True)
    outcomes = [one["outcome"] for one in known["mutants"].values()]
    print(f"{outcomes.count('survived')} of {len(outcomes)} survived")


if __name__ == "__main__":
    main()
