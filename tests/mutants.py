"""`make mutants`: one operator of the library is changed at a time, and the tests of its room must notice.

Works in a copy of the tree, goes on where it stopped, and writes what became of each mutant to one JSON file.

    python tests/mutants.py --count 200 --seed 0 --out mutants.json
"""

import argparse
import ast
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

HOME = Path(__file__).parents[1]
ROOMS = {  # what is changed, and the tests that must notice: the quick ones first, the first failure is enough
    "voronaut/clusters.py": "tests/test_clusters.py tests/kernels/cpu/test_cpu.py",
    "voronaut/kernels/cpu": "tests/kernels/cpu",
    "voronaut/kernels/xla": "tests/kernels/xla tests/test_jax.py",
    "voronaut/kernels/gpu": "tests/kernels/gpu",
    "voronaut/bonuses": "tests/bonuses",
    "voronaut/learners/ppo.py": "tests/learners/test_ppo.py",
    "voronaut/learners/sac.py": "tests/learners/test_sac.py",
    "voronaut/training": "tests/training",
    "voronaut/adapters/sb3": "tests/adapters/sb3 tests/adapters/test_conformance.py",
    "voronaut/adapters/payer.py": "tests/adapters/test_payer.py tests/adapters/sb3",
}
LEFT_OUT = ("voronaut/training/watching", "voronaut/training/command.py")  # they only tell
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
    """Files and places: a fair draw from each room, the rooms in turn."""
    rooms: dict[str, list[tuple[str, int]]] = {room: [] for room in ROOMS}
    for path in sorted({p for room in ROOMS for p in (HOME / room, *(HOME / room).rglob("*.py")) if p.is_file()}):
        name = str(path.relative_to(HOME))
        if name.startswith(only) and not name.startswith(LEFT_OUT):
            rooms[room_of(name)] += [(name, n) for n, _ in enumerate(sites(ast.parse(path.read_text())))]
    print(", ".join(f"{room}: {len(places)}" for room, places in rooms.items()), flush=True)
    rng = random.Random(seed)
    turns = zip_longest(*(rng.sample(places, len(places)) for places in rooms.values()))
    return [place for turn in turns for place in turn if place][:count]


def room_of(path: str) -> str:
    """The narrowest room that a file is in."""
    return max((room for room in ROOMS if path.startswith(room)), key=len)


def check(copy: Path, tests: str, limit: float) -> tuple[str, float, float]:
    """What the tests say ("survived", "killed", "killed by time"); seconds that passed, and that were worked."""
    env = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(copy / ".numba")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
    started, before, quiet = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN), subprocess.DEVNULL
    tried = subprocess.Popen(command, cwd=copy, env=env, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        said = "survived" if tried.wait(limit) == 0 else "killed"
    except subprocess.TimeoutExpired:
        said = "killed by time"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(tried.pid, signal.SIGKILL)  # with what it has started itself
        tried.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return said, round(time.monotonic() - started, 1), round(worked, 1)


def copied(folder: str) -> Path:
    """The tree as it is, what git knows and what it does not ignore."""
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=HOME, text=True)
    for name in filter(lambda n: (HOME / n).is_file(), listed.splitlines()):
        target = Path(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOME / name, target)
    return Path(folder)


def main() -> None:
    """Draw, change, test, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("--count", 200), ("--seed", 0)):
        parser.add_argument(name, type=int, default=usual)
    parser.add_argument("--only", default="", metavar="PATH", help="files that begin with this")
    parser.add_argument("--out", type=Path, default=Path("mutants.json"))
    args = parser.parse_args()
    known = json.loads(args.out.read_text()) if args.out.exists() else {"unchanged": {}, "mutants": {}}
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(folder)
        for path, place in drawn(args.count, args.seed, args.only):
            source, said = mutant(path, place)
            tests, key = ROOMS[room_of(path)], f"{said} ({place})"
            if key in known["mutants"]:
                continue
            if tests not in known["unchanged"]:  # tests that fail anyway would kill every mutant
                outcome, seconds, worked = check(copy, tests, 3600)
                if outcome != "survived":
                    sys.exit(f"{tests} fail without any change: mend that first.")
                known["unchanged"][tests] = {"seconds": seconds, "cpu": worked}
            (copy / path).write_text(source)
            outcome, seconds, worked = check(copy, tests, 60 + 5 * known["unchanged"][tests]["seconds"])
            shutil.copy(HOME / path, copy / path)
            known["mutants"][key] = {"outcome": outcome, "seconds": seconds, "cpu": worked}
            args.out.write_text(json.dumps(known, indent=1))
            print(f"{outcome:<14} {worked:>6} s  {key}", flush=True)
    outcomes = [one["outcome"] for one in known["mutants"].values()]
    print(f"{outcomes.count('survived')} of {len(outcomes)} survived")


if __name__ == "__main__":
    main()
