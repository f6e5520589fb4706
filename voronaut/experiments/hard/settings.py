"""What is run: cells, methods, seeds and budgets. A tag freezes this file; `freeze` writes every number it comes to.

A method says only how it differs from `voronaut train --learner sac`; `resolved` adds the defaults, and that is what a
result carries and is judged by, so that a default that moves later does not pass for the one that was run.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from voronaut.helpers import files
from voronaut.tasks.table import TASKS
from voronaut.training.api import configure
from voronaut.training.config import Config

FOLDER, WORK = Path("results/hard"), Path("runs/hard")
FROZEN = "settings.json"  # in FOLDER
RETIRED = (("replay", 0.0),)  # parameters that older files name, with the one value that they have had
SINCE = {"explorer_share_after": 0.0}  # numbers of the learner that older files do not name, with what they were then
MAIN, TWICE, FIVE, THREE = ("none", "kme"), "twice", tuple(range(100, 105)), tuple(range(100, 103))
ENVS, ROLLOUT = 16, 10_240  # of a run; steps of a turn, of which a line is kept
EVALUATIONS, EPISODES = 5, 20  # in the last tenth of a run, with the exploiter's mean action
LAST = 0.1
SIZE = "large"  # of the learner, where a cell does not say another
HOPPER = "env:voronaut.experiments.hard.hopper:make"
DIMS = {"cheetah-run": 17, "walker-run": 24, "quadruped-run": 78, "humanoid-run": 67, "cartpole-swingup": 5,
        "acrobot-swingup": 6, HOPPER: 11}  # of a state  # fmt: skip
# Seconds per step of a run beside nine others, before any was timed: one H200 with 16 cores.
GUESS = {"cheetah-run": 6e-5, "walker-run": 7e-5, "quadruped-run": 7e-5, "humanoid-run": 8e-5, "cartpole-swingup": 5e-5,
         "acrobot-swingup": 5e-5, HOPPER: 8e-5}  # fmt: skip


class Cell(NamedTuple):
    """A task at a threshold, how long it is trained, and the mean score that is aimed at."""

    name: str
    task: str
    threshold: str
    steps: int
    aim: float
    ppo: str  # the cell of the exploration experiment that is the same task
    size: str = SIZE  # of the learner

    @property
    def title(self) -> str:
        """Cheetah run, reward from 0.25."""
        if self.task == HOPPER:
            return "Hopper, reward from 2 m on"
        least = TASKS[self.task].threshold(self.threshold)
        words = self.task.replace("-", " ").capitalize()
        if self.threshold == "dense":
            return f"{words}, dense reward"
        return f"{words}, reward from {least:g}" if least else f"{words}, sparse"


class Method(NamedTuple):
    """A bonus and what is chosen about it and about the learner."""

    name: str
    text: str  # in legends and tables
    bonus: str
    params: Mapping[str, Any] = {}
    numbers: Mapping[str, Any] = {}
    pair: bool | str = True


class Wanted(NamedTuple):
    """Runs that belong together: one cell, some methods, the same seeds."""

    cell: str
    methods: tuple[str, ...]
    seeds: tuple[int, ...]


def _cell(name: str, task: str, threshold: str, millions: float, aim: float) -> Cell:
    return Cell(name, task, threshold, int(millions * 1e6), aim, f"{task}-{threshold}")


CELLS = {
    cell.name: cell
    for cell in (
        _cell("cheetah-0.25", "cheetah-run", "release", 1, 700),
        _cell("quadruped-0.7", "quadruped-run", "release", 1, 700),
        _cell("walker-0.25", "walker-run", "release", 1, 600),
        _cell("cartpole", "cartpole-swingup", "release", 1, 849),
        _cell("acrobot", "acrobot-swingup", "release", 1, 100),
        _cell("humanoid-0.2", "humanoid-run", "release", 2, 150),
        _cell("cheetah-0.5", "cheetah-run", "paper", 2, 400),
        _cell("walker-0.5", "walker-run", "paper", 2, 300),
    )
}
# The paper's budget, for those of the last three that are at 0 or still rising at their end: in a table of their own.
LONG = {
    f"{name}-5M": CELLS[name]._replace(name=f"{name}-5M", steps=5_000_000)
    for name in ("humanoid-0.2", "cheetah-0.5", "walker-0.5")
}
# The learner by outside measure: dense rewards, no bonus, aims are what others published for SAC.
DENSE = {
    cell.name: cell
    for cell in (
        _cell("cheetah-dense", "cheetah-run", "dense", 1, 805),
        _cell("walker-dense", "walker-run", "dense", 1, 622),
        _cell("quadruped-dense", "quadruped-run", "dense", 1, 196),
        _cell("humanoid-dense", "humanoid-run", "dense", 1, 117),
    )
}
# A task that terminates and that nothing was tuned on, small enough for two cores.
NEW = {"hopper-far": _cell("hopper-far", HOPPER, "release", 1, 0)._replace(size="small")}
EVERY = {**CELLS, **LONG, **DENSE, **NEW}
METHODS = {
    method.name: method
    for method in (
        Method("none", "SAC alone", "none"),
        Method("kme", "pair + KME", "kme"),
        Method("rnd", "pair + RND", "rnd"),
        Method("re3", "pair + RE3", "re3", {"memory": 16_384}),
        Method("kme-whole", "pair + KME on the whole state", "kme", {"views": 1}),
        Method("zero", "pair without a bonus", "zero"),
        Method(TWICE, "SAC alone, twice the gradient steps", "none", numbers={"gradient_steps": 16}),
        # What is taken away or put in another's place, on one cell
        Method("kme-views-2", "views of two coordinates", "kme", {"view_dim": 2}),
        Method("kme-paper", "the paper's clusters", "kme", {"balance": 1e-4, "init": "data"}),
        Method("one-0.1", "one agent, 0.1 of the bonus", "kme", {"scale": 0.1}, pair=False),
        Method("one-1", "one agent, all of the bonus", "kme", {"scale": 1}, pair=False),
        Method("stored", "the bonus as it was when a state was met", "kme", pair="stored"),
        Method("bonus-only", "explorer without task reward", "kme", numbers={"explorer_task": 0.0}),
        Method("not-near-reward", "batches drawn without regard to reward", "kme", numbers={"near_reward": 0.0}),
        Method("lower-critic", "the lower of two critics, not their mean", "kme", numbers={"critics": "min"}),
    )
}
RIVALS = ("rnd", "re3", "kme-whole", "zero")
NEW_RIVALS = ("kme-whole", "zero")  # what two cores can do
ABLATIONS = tuple(name for name in METHODS if name not in (*MAIN, *RIVALS, TWICE))
ABLATED = "quadruped-0.7"
COMPARED = ("cheetah-0.25", "walker-0.25", "quadruped-0.7", "humanoid-0.2")
PLAN = (
    *(Wanted(cell, MAIN, FIVE) for cell in CELLS),
    *(Wanted(cell, ("rnd",), FIVE) for cell in COMPARED),
    *(Wanted(cell, RIVALS[1:], THREE) for cell in COMPARED),
    Wanted(ABLATED, ABLATIONS, THREE),
)
OUTSIDE = (
    *(Wanted(cell, ("none", TWICE), THREE) for cell in DENSE),
    *(Wanted(cell, (*MAIN, *NEW_RIVALS), THREE) for cell in NEW),
)
FURTHER = tuple(Wanted(cell, ("kme",), FIVE) for cell in LONG)  # run when it is asked for
PLANS = (*PLAN, *OUTSIDE, *FURTHER)


def configured(cell: Cell, method: Method, seeds: Sequence[int], numbers: Mapping[str, Any]) -> Config:
    """The runs of one method as the trainer takes them; `numbers` of the learner go before the method's own."""
    given = {method.bonus: dict(method.params), "sac": {"size": cell.size, **numbers, **method.numbers}}
    options = {name: own for name, own in given.items() if own}
    whole = configure(
        cell.task, learner="sac", pair=method.pair, bonuses=method.bonus, seeds=list(seeds), steps=cell.steps,
        threshold=cell.threshold, envs=ENVS, rollout=ROLLOUT, options=options,
    )  # fmt: skip
    return dataclasses.replace(whole, methods=(dataclasses.replace(whole.methods[0], label=method.name),))


def resolved(config: Config) -> dict[str, Any]:
    """Every number of a method's runs, defaults too, as plain values."""
    from voronaut.bonuses import bonus_class
    from voronaut.training import pair

    [method] = config.methods
    bonus = bonus_class(method.kind)(dim=DIMS[config.task], seed=0, **method.params)
    params = {name: given for name, given in bonus.params.items() if name not in ("dim", "seed")}
    chosen = {
        "task": config.task, "threshold": config.threshold, "steps": config.steps, "envs": config.envs,
        "rollout": config.rollout, "pair": config.pair, "learner": dataclasses.asdict(pair.settings(config.numbers)),
        "bonus": method.kind, "scale": method.scale, "params": params,
    }  # fmt: skip
    return dict(json.loads(json.dumps(chosen)))


def freeze(folder: Path) -> Path:
    """Write what every method of every cell comes to; from then on only such runs are begun, and only such count.

    What was frozen before stays as it was.
    """
    path = folder / FROZEN
    before = json.loads(path.read_text()) if path.exists() else {}
    every = {
        f"{wanted.cell}/{name}": {**resolved(configured(EVERY[wanted.cell], METHODS[name], FIVE, {})),
                                  "seeds": list(wanted.seeds)}
        for wanted in PLANS for name in wanted.methods
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(given)}" for name, given in {**every, **before}.items())
    files.write_text(path, "{\n" + lines + "\n}\n")
    return path


def frozen(folder: Path) -> dict[str, dict[str, Any]]:
    """What `freeze` wrote, by cell/method; nothing before."""
    path = folder / FROZEN
    return {name: of_today(given) for name, given in json.loads(path.read_text()).items()} if path.exists() else {}


def of_today(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a file, without what has ceased to be a choice since and with what has become one."""
    params = {name: own for name, own in given["params"].items() if (name, own) not in RETIRED}
    return {**given, "params": params, "learner": {**SINCE, **given["learner"]}}
