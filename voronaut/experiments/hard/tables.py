"""The computed parts of docs/hard.md, in Markdown, from the result files alone: of none, some or all of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from voronaut.experiments.common import drawing, stats
from voronaut.experiments.common.stats import pretty
from voronaut.experiments.hard import figures, results, settings
from voronaut.experiments.hard.figures import Data
from voronaut.experiments.hard.results import Result
from voronaut.experiments.hard.settings import (
    ABLATED,
    ABLATIONS,
    CELLS,
    COMPARED,
    DENSE,
    EVERY,
    FOLDER,
    LONG,
    MAIN,
    METHODS,
    NEW,
    PLANS,
    RIVALS,
    TWICE,
    Cell,
)
from voronaut.helpers.markdown import table

NOTHING = "Nothing has been run yet."
# Means of others at a million steps of the dense tasks, as they print them.
PUBLISHED = {
    "cheetah-dense": {"SAC": 805, "SimbaV2": 920, "BRO": 867, "MR.Q": 914},
    "walker-dense": {"SAC": 622, "SimbaV2": 817, "BRO": 824, "MR.Q": 794},
    "quadruped-dense": {"SAC": 196, "SimbaV2": 936, "BRO": 889, "MR.Q": 948},
    "humanoid-dense": {"SAC": 117, "SimbaV2": 195, "BRO": 297, "MR.Q": 200},
}
DISCOVERED = ("first rewarded step, million", "taken by", "hundredth", "from the first to half of the final return")
Some = Sequence[Result]


def computed(folder: Path = FOLDER) -> dict[str, str]:
    """All parts of the page."""
    data, before = figures.load(folder), figures.ppo()
    return {
        "sentences": sentences(data, before),
        "frozen": frozen(folder),
        "scores": scores(data, before),
        "further": further(data),
        "new": new(data),
        "rivals": rivals(data),
        "discovery": discovery(data),
        "ablations": ablations(data),
        "cost": cost(data),
        "missing": missing(data, results.find(folder).troubles),
    }


def frozen(folder: Path) -> str:
    """Whether every number was fixed before the runs."""
    fixed = settings.frozen(folder)
    if not fixed:
        return "The settings are not frozen yet."
    return (
        f"Every number of all {len(fixed)} combinations of cell and method was fixed before the first of its runs that "
        f"is reported (`{FOLDER / settings.FROZEN}`); files of runs with any other are not used, and trials had seeds "
        "below 100."
    )


def marks(some: Some) -> np.ndarray:
    """The score of every seed."""
    return np.array([results.score(result) for result in some])


def reached(cell: Cell, some: Some) -> bool:
    """Whether the mean is at the aim and the median seed above half of it."""
    return bool(some) and marks(some).mean() >= cell.aim and float(np.median(marks(some))) > cell.aim / 2


def better(mine: Some, theirs: Some) -> tuple[stats.Interval, float]:
    """P(mine > theirs) with its interval, and the p of a rank test."""
    pair = (marks(mine), marks(theirs))
    return stats.bootstrap(pair, stats.better), stats.rank_test(*pair)


def sentences(data: Data, before: dict[str, float]) -> str:
    """What the page opens with."""
    both = [cell for cell in CELLS.values() if all(data[cell.name].get(method) for method in MAIN)]
    if not both:
        return NOTHING
    means = {cell.name: [marks(data[cell.name][method]).mean() for method in MAIN] for cell in both}
    judged = {cell.name: better(data[cell.name]["kme"], data[cell.name]["none"]) for cell in both}
    sure = {side: [f"{name}, {means[name][1]:.0f} against {means[name][0]:.0f}" for name, (found, p) in judged.items()
                   if p < 0.05 and (found.value - 0.5) * side > 0] for side in (1, -1)}  # fmt: skip
    done = [cell.name for cell in both if reached(cell, data[cell.name]["kme"])]
    told = [cell for cell in both if cell.name in before]
    beyond = sum(means[cell.name][1] > before[cell.name] for cell in told)
    return (
        f"Of {len(both)} cells that were run with both, the pair with KME has a higher mean score than SAC alone in "
        f"{sum(pair > alone for alone, pair in means.values())}; a rank test at 5 % finds it better in "
        f"{_counted(sure[1])} and worse in {_counted(sure[-1])}. "
        f"It reaches what was aimed at in {_counted(done)}. "
        f"Its mean score is above the final return of PPO with KME after five million steps in {beyond} of {len(told)}."
    )


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} ({'; '.join(names)})" if names else "none"


def scores(data: Data, before: dict[str, float]) -> str:
    """SAC alone and the pair with KME on every cell."""
    head = ["cell", "million steps", *(METHODS[m].text for m in MAIN), "every seed of the pair",
            "P(pair better)", "p", "PPO + KME, 5M", "aim", "reached"]  # fmt: skip
    return table(head, [_row(cell, data, before) for cell in CELLS.values()])


def _row(cell: Cell, data: Data, before: dict[str, float]) -> list[str]:
    alone, pair = (data[cell.name].get(method, []) for method in MAIN)
    versus = ["–", "–"]
    if alone and pair:
        found, p = better(pair, alone)
        versus = [pretty(found, ".2f"), f"{p:.3f}"]
    ppo = f"{before[cell.name]:.1f}" if cell.name in before else "–"
    end = ("yes" if reached(cell, pair) else "no") if pair else "–"
    return [cell.title, f"{cell.steps / 1e6:g}", mean(alone), mean(pair), _seeds(pair), *versus, ppo,
            f"{cell.aim:g}", end]  # fmt: skip


def brief(folder: Path = FOLDER) -> dict[str, str]:
    """The cells that both were run on, as README shows them."""
    data, before = figures.load(folder), figures.ppo()
    rows = [
        [cell.title, f"{cell.steps / 1e6:g}", *(_short_mean(data[cell.name][method]) for method in MAIN),
         f"{before[cell.name]:.0f}" if cell.name in before else "–"]
        for cell in CELLS.values() if all(data[cell.name].get(method) for method in MAIN)
    ]  # fmt: skip
    return {"hard": table(["task", "million steps", *(METHODS[m].text for m in MAIN), "PPO + KME, 5 million"], rows)}


def _short_mean(some: Some) -> str:
    """Mean score, and the lowest and highest seed's."""
    each = marks(some)
    return f"{each.mean():.0f} ({each.min():.0f} to {each.max():.0f})"


def further(data: Data) -> str:
    """Cells that went on to five million steps."""
    runs = {cell: data[cell.name]["kme"] for cell in LONG.values() if data[cell.name].get("kme")}
    if not runs:
        return "None was run for longer yet."
    rows = [[cell.title, mean(data[cell.name.removesuffix("-5M")].get("kme", [])), mean(some), _seeds(some)]
            for cell, some in runs.items()]  # fmt: skip
    return table(["cell", "pair + KME, 2M", "pair + KME, 5M", "every seed"], rows)


def new(data: Data) -> str:
    """All methods on a task that terminates and that nothing was tuned on."""
    rows = [[METHODS[method].text, mean(some), _seeds(some), *_steps(some)]
            for name in NEW for method in (*MAIN, *RIVALS) if (some := data[name].get(method))]  # fmt: skip
    return table(["method", "score", "every seed", *DISCOVERED], rows) if rows else NOTHING


def _seeds(some: Some) -> str:
    return ", ".join(f"{x:.0f}" for x in sorted(marks(some))) or "–"


def mean(some: Some) -> str:
    """Mean score with its bootstrap interval and the number of seeds."""
    if not some:
        return drawing.NOT_RUN
    seeds = "1 seed" if len(some) == 1 else f"{len(some)} seeds"
    return f"{pretty(stats.bootstrap([marks(some)], stats.mean), '.0f')}, {seeds}"


def _against(data: Data, cell: str, names: Sequence[str]) -> list[list[str]]:
    """Rows of methods beside the pair with KME, those that were run."""
    rows, kme = [], data[cell].get("kme", [])
    for name in names:
        some = data[cell].get(name, [])
        if some:
            found, p = better(kme, some) if kme else (stats.Interval(*[np.nan] * 3), np.nan)
            p_text = "–" if np.isnan(p) else f"{p:.3f}"
            rows.append([CELLS[cell].title, METHODS[name].text, mean(some), pretty(found, ".2f"), p_text])
    return rows


def rivals(data: Data) -> str:
    """Other bonuses, one clustering, and none, in the same pair."""
    rows = [row for cell in COMPARED for row in _against(data, cell, ("none", *RIVALS))]
    return table(["cell", "method", "score", "P(pair + KME better)", "p"], rows) if rows else NOTHING


def ablations(data: Data) -> str:
    """What was changed in the pair with KME, on one cell."""
    rows = [row[1:] for row in _against(data, ABLATED, ABLATIONS)]
    kme = [["pair + KME", mean(data[ABLATED]["kme"]), "", ""]] if data[ABLATED].get("kme") else []
    head = [CELLS[ABLATED].title, "score", "P(pair + KME better)", "p"]
    return table(head, kme + rows) if rows else NOTHING


def dense(folder: Path = FOLDER) -> dict[str, str]:
    """The learner without a bonus on dense rewards, beside what others have published: a part of docs/pair.md."""
    data = figures.load(folder)
    texts = {"none": "this SAC", TWICE: "twice the gradient steps"}
    shown = [name for name in texts if name == "none" or any(data[cell].get(name) for cell in DENSE)]
    rows = [[cell.title, *(mean(data[name].get(method, [])) for method in shown), *map(str, PUBLISHED[name].values())]
            for name, cell in DENSE.items()]  # fmt: skip
    head = ["task, 1M steps", *(texts[name] for name in shown), *next(iter(PUBLISHED.values()))]
    return {"dense": table(head, rows)}


def discovery(data: Data) -> str:
    """When reward was found, who found it, and how long it took to make a return of it."""
    rows = [
        [cell.title, METHODS[method].text, *_steps(data[cell.name][method])]
        for cell in CELLS.values()
        for method in (*MAIN, *RIVALS)
        if data[cell.name].get(method)
    ]
    return table(["cell", "method", *DISCOVERED], rows) if rows else NOTHING


def _steps(some: Some) -> list[str]:
    measures: list[Callable[[Result], float]] = [
        results.first,
        lambda result: results.first(result, 100),
        lambda result: results.half(result) - results.first(result) if np.isfinite(results.half(result)) else np.inf,
    ]
    first, hundredth, converted = (_median([measure(result) / 1e6 for result in some]) for measure in measures)
    takers = [result.about["rewarded"]["1"]["by"] for result in some if "1" in result.about["rewarded"]]
    by = ", ".join(f"{name} {takers.count(name)}" for name in sorted(set(takers)))
    return [first, by or "–", hundredth, converted]


def _median(millions: Sequence[float]) -> str:
    known = sorted(x for x in millions if np.isfinite(x))
    if not known:
        return "never"
    return f"{np.median(known):.2f} ({known[0]:.2f} to {known[-1]:.2f}), {len(known)} of {len(millions)} seeds"


def cost(data: Data) -> str:
    """Minutes of a machine that a run takes of the time of all that train beside it, by cell and method."""
    rows = []
    for cell in (*CELLS.values(), *LONG.values(), *NEW.values()):
        for method, some in data[cell.name].items():
            for where in sorted({_machine(result) for result in some}):
                here = [result for result in some if _machine(result) == where]
                minutes = np.mean([_share(result) / 60 for result in here])
                beside = sorted({result.about["runs_side_by_side"] for result in here})
                count = " or ".join(map(str, beside))
                steps = f"{cell.steps / 1e6:g}"
                rows.append([cell.title, steps, METHODS[method].text, f"{minutes:.1f}", count, where])
    head = ["cell", "million steps", "method", "minutes per run", "runs side by side", "machine"]
    return table(head, rows) if rows else NOTHING


def _share(result: Result) -> float:
    return float(result.about["seconds"]["all"] / result.about["runs_side_by_side"])


def _machine(result: Result) -> str:
    told = result.about["machine"]
    return ", ".join(filter(None, (told.get("accelerator"), f"{told['cores']} cores")))


def missing(data: Data, troubles: Sequence[str]) -> str:
    """Runs done of runs planned, and files that are not used."""
    lines = []
    for name in EVERY:
        planned = {m: len(each.seeds) for each in PLANS if each.cell == name for m in each.methods}
        done = {method: len(data[name].get(method, [])) for method in planned}
        lacking = [f"{method} {done[method]} of {count}" for method, count in planned.items() if done[method] < count]
        if lacking:
            lines.append(f"- {name}, seeds done: {', '.join(lacking)}")
    every = "\n".join(["Still to be run:", "", *lines]) if lines else "All runs that were planned are there."
    return "\n".join([every, *(f"- not used: {trouble}" for trouble in troubles)])
