"""The tables of docs/results.md about the exploration experiment, in Markdown, computed from the result files."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from voronaut.experiments.common import drawing, stats, sweep
from voronaut.experiments.common.results import Result
from voronaut.experiments.common.stats import pretty
from voronaut.experiments.common.sweep import Cell, Plan
from voronaut.experiments.exploration.figures import (
    METHODS,
    RIVALS,
    SCORES,
    Data,
    bonus_seconds,
    chance,
    complete,
    normalised,
)
from voronaut.experiments.exploration.run import PLAN
from voronaut.helpers.markdown import table

SHORT = {"area": "mean return", "final": "final return"}
PROGRESS = 10.0  # a mean final return of 1 % of the highest possible


def computed(plan: Plan = PLAN) -> dict[str, str]:
    """The parts of docs/results.md about this experiment."""
    data, troubles = sweep.collect(plan)
    makers = {"claims": claims, "tasks": tasks, "chances": chances, "iqm": iqms, "costs": costs}
    return {"missing": missing(plan, data, troubles), **{name: make(plan, data) for name, make in makers.items()}}


def tasks(plan: Plan, data: Data) -> str:
    """One table per cell that has data."""
    head = ["method", "seeds", "mean return over training", "final return", "seeds with reward at the end",
            "top dense reward", "state entropy, first 10 % of steps",
            "first return above 1, million steps"]  # fmt: skip
    parts = []
    for cell in plan.cells:
        runs = {method: data[cell.name].get(method, []) for method in METHODS}
        if any(runs.values()):
            rows = [[drawing.NAMES[m], *_numbers(results)] for m, results in runs.items()]
            parts.append(f"**{cell.name}**\n\n{table(head, rows)}")
    return "\n\n".join(parts) or "Nothing has been run yet."


def _numbers(results: Sequence[Result]) -> list[str]:
    if not results:
        return ["0", drawing.NOT_RUN, "", "", "", "", ""]
    ends = drawing.scores(results, drawing.final)
    return [
        str(len(results)),
        pretty(stats.bootstrap([drawing.scores(results, drawing.area)], stats.mean)),
        pretty(stats.bootstrap([ends], stats.mean)),
        f"{int((ends > 0).sum())} of {len(ends)}",
        pretty(stats.mean_interval(drawing.scores(results, drawing.top)), ".2f"),
        pretty(stats.mean_interval(drawing.scores(results, drawing.early_entropy))),
        _first(drawing.scores(results, drawing.first_above_one) / 1e6),
    ]


def _first(millions: Any) -> str:
    known = millions[np.isfinite(millions)]
    if not len(known):
        return "never"
    return f"{np.median(known):.2f} ({known.min():.2f}–{known.max():.2f}), {len(known)} of {len(millions)} seeds"


def chances(plan: Plan, data: Data) -> str:
    """P(KME beats each method) per cell and over all complete cells, beside the p of a rank test."""
    rows = []
    for cell in plan.cells:
        for rival in RIVALS:
            if data[cell.name].get("kme") and data[cell.name].get(rival):
                found = [_against(plan, data, cell, rival, score) for score in SCORES.values()]
                texts = [text for both, p in found for text in (pretty(both, ".2f"), f"{p:.3f}")]
                rows.append([cell.name, drawing.NAMES[rival], *texts])
    together = complete(plan, data)
    for rival in RIVALS if together else ():
        both = [pretty(chance(plan, data, together, rival, score), ".2f") for score in SCORES.values()]
        rows.append([f"all {len(together)} complete cells", drawing.NAMES[rival], both[0], "", both[1], ""])
    return table(["cell", "against", "P, mean return", "p", "P, final return", "p"], rows)


def _against(plan: Plan, data: Data, cell: Cell, rival: str, score: drawing.Score) -> tuple[stats.Interval, float]:
    """P(KME > rival) on a cell, and p of the rank test."""
    mine, theirs = (drawing.scores(data[cell.name][method], score) for method in ("kme", rival))
    return chance(plan, data, [cell], rival, score), stats.rank_test(mine, theirs)


def iqms(plan: Plan, data: Data) -> str:
    """Interquartile means of normalised scores."""
    strata = {key: normalised(plan, data, score) for key, score in SCORES.items()}
    rows = [[drawing.NAMES[m], *(pretty(stats.bootstrap(strata[key][m], stats.iqm), ".2f") for key in SCORES)]
            for m in METHODS]  # fmt: skip
    names = ", ".join(cell.name for cell in complete(plan, data)) or "none"
    head = ["method", "IQM, mean return over training", "IQM, final return"]
    return f"Cells put together: {names}.\n\n{table(head, rows)}"


def costs(plan: Plan, data: Data) -> str:
    """Seconds per rollout of each bonus and the ratio to KME."""
    rows = []
    for cell in plan.cells:
        runs = {m: rs for m, rs in data[cell.name].items() if rs}
        if "kme" in runs:
            base = bonus_seconds(runs["kme"])
            rows += [_cost(cell, m, runs[m], base) for m in METHODS if m in runs and m != "none"]
    return table(["cell", "method", "bonus, s per rollout", "ratio to KME", "share of a rollout's time"], rows)


def _cost(cell: Cell, method: str, results: Sequence[Result], base: float) -> list[str]:
    seconds, mine = results[0].about["median_seconds"], bonus_seconds(results)
    whole = sum(seconds[key] for key in ("collect_seconds", "bonus_seconds", "learn_seconds"))
    share = mine / whole
    return [cell.name, drawing.NAMES[method], f"{mine:.3f}", f"{mine / base:.1f}", f"{share:.1%}"]


def missing(plan: Plan, data: Data, troubles: Sequence[str]) -> str:
    """How much of the grid there is, what has not been run, and which files were not used."""
    lines = [f"{len(complete(plan, data))} of {len(plan.cells)} cells are complete.\n"]
    for cell in plan.cells:
        counts = {m: len(data[cell.name].get(m, ())) for m in METHODS}
        texts = ", ".join(f"{m} {count} of {plan.seeds}" for m, count in counts.items())
        state = f"seeds done: {texts}" if any(counts.values()) else "not run"
        lines.append(f"- {cell.name}: " + ("complete" if cell in complete(plan, data) else state))
    return "\n".join([*lines, *(f"- not used: {trouble}" for trouble in troubles)])


class Verdict(NamedTuple):
    """What was measured about a claim, and what follows."""

    measured: str
    holds: str


Judge = Callable[[Plan, Data, Cell], Verdict]


class Claim(NamedTuple):
    """The paper's words, how they are judged, and which methods must have been run for that."""

    text: str
    judge: Judge
    needs: Sequence[str] = METHODS


def outperforms(rival: str) -> Judge:
    """KME is better than the rival by mean return and by final return: see `sure`."""

    def judge(plan: Plan, data: Data, cell: Cell) -> Verdict:
        sides, texts = {}, []
        if not any(drawing.scores(data[cell.name][m], drawing.area).any() for m in ("kme", rival)):
            return Verdict("no run of either ever had reward", "not shown")
        for key, score in SCORES.items():
            found, p = _against(plan, data, cell, rival, score)
            sides[key] = sure(found, p)
            texts.append(f"P = {pretty(found, '.2f')}, p = {p:.3f} by {SHORT[key]}")
        return Verdict("; ".join(texts), _together(sides))

    return judge


def sure(found: stats.Interval, p: float) -> int:
    """1: better, −1: worse, 0: not sure. Sure is an interval on one side of ½ and a rank test below 5 %."""
    return 0 if p >= 0.05 else 1 if found.low > 0.5 else -1 if found.high < 0.5 else 0


def _together(sides: Mapping[str, int]) -> str:
    values = set(sides.values())
    if len(values) == 1:
        return {1: "holds", 0: "not shown", -1: "contradicted"}[values.pop()]
    return "; ".join(f"by {SHORT[key]}: {('not shown', 'holds', 'contradicted')[side]}" for key, side in sides.items())


def finds_nothing(plan: Plan, data: Data, cell: Cell) -> Verdict:
    """PPO alone ends with return 0 in every seed."""
    ends = drawing.scores(data[cell.name]["none"], drawing.final)
    found = int((ends > 0).sum())
    text = f"{found} of {len(ends)} seeds have reward at the end; mean final return {np.mean(ends):.1f}"
    return Verdict(text, f"does not hold in {found} of {len(ends)} seeds" if found else "holds")


def competitive(plan: Plan, data: Data, cell: Cell) -> Verdict:
    """No other method is better than KME by final return with an interval wholly below ½."""
    found = {rival: chance(plan, data, [cell], rival, drawing.final) for rival in RIVALS}
    text = ", ".join(f"P = {pretty(c, '.2f')} against {drawing.NAMES[r]}" for r, c in found.items())
    return Verdict(f"by final return: {text}", "contradicted" if any(c.high < 0.5 for c in found.values())
                   else "not contradicted")  # fmt: skip


def nobody_gets_far(plan: Plan, data: Data, cell: Cell) -> Verdict:
    """The mean final return of every method is below 1 % of the highest possible."""
    ends = {m: float(np.mean(drawing.scores(data[cell.name][m], drawing.final))) for m in METHODS}
    text = ", ".join(f"{drawing.NAMES[m]} {value:.1f}" for m, value in ends.items())
    return Verdict(f"mean final return: {text}", "holds" if max(ends.values()) < PROGRESS else "does not hold")


_WHERE_PPO_FAILS = (
    Claim("PPO is unable to find rewards", finds_nothing, ("none",)),
    Claim("KME does better than PPO", outperforms("none"), ("kme", "none")),
    Claim("KME outperforms RND", outperforms("rnd"), ("kme", "rnd")),
    Claim("KME outperforms RE3", outperforms("re3"), ("kme", "re3")),
)
_COMPETITIVE = (Claim("KME is competitive", competitive),)
CLAIMS: dict[str, tuple[Claim, ...]] = {
    "cheetah-run": _WHERE_PPO_FAILS,
    "quadruped-run": _WHERE_PPO_FAILS,
    "walker-run": _COMPETITIVE,
    "cartpole-swingup": _COMPETITIVE,
    "acrobot-swingup": _COMPETITIVE,
    "humanoid-run": (Claim("no method makes significant progress", nobody_gets_far),),
}


def claims(plan: Plan, data: Data) -> str:
    """The paper's words, cell by cell, beside what was measured."""
    rows: list[list[Any]] = []
    for cell in plan.cells:
        for claim in CLAIMS[cell.task]:
            done = all(len(data[cell.name].get(method, ())) == plan.seeds for method in claim.needs)
            verdict = claim.judge(plan, data, cell) if done else Verdict(drawing.NOT_RUN, "–")
            rows.append([cell.name, claim.text, verdict.measured, verdict.holds])
    return table(["cell", "the paper says", "measured here", "verdict"], rows)
