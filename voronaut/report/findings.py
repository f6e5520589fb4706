"""What looks wrong, in words: each check measures one thing of a run, and says what it means and what to try."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.report.records import Run, grouped

EMPTY, CLAMPED, UNEVEN = 0.1, 0.05, 1.0  # share of cells, share of clusters, spread of masses / mean: docs/metrics.md
AUTO = "auto"  # the balance of a KME where none is chosen
CHANGE = 100.0  # a bonus this many times smaller or larger than at first has vanished or exploded
ENOUGH = 20  # rollouts before a bonus is judged
Measure = Callable[[Run], float | None]


class Finding(NamedTuple):
    """Something to look at: where, what, and what to do."""

    level: str  # warning or note
    title: str
    where: str
    text: str


class Check(NamedTuple):
    """`measure` gives a number if something is wrong with the run, else None; `text` is told the worst of them."""

    level: str
    title: str
    measure: Measure
    text: str


def last(run: Run, ending: str) -> float | None:
    """The last known value of the column with this ending."""
    for name, values in run.columns.items():
        if name.endswith(ending) and np.isfinite(values).any():
            return float(values[np.isfinite(values)][-1])
    return None


def _above(ending: str, limit: float) -> Measure:
    return lambda run: value if (value := last(run, ending)) is not None and value > limit else None


def papers(run: Run) -> bool:
    """Whether the clusters are the paper's, balanced by a number that somebody chose."""
    return bool((run.settings.get("params") or {}).get("balance", AUTO) != AUTO)


def dead(memory: bool) -> Measure:
    """Share of cells that hold no state, if above 10 %, of the paper's memory or of the default one."""
    return lambda run: _above("/empty_cells", EMPTY)(run) if papers(run) == memory else None


def uneven(run: Run) -> float | None:
    """Spread of the masses of cells, if above 1. With the default memory it tells of the agent: it rests somewhere."""
    return _above("/cell_mass_cv", UNEVEN)(run) if papers(run) else None


def clamped(run: Run) -> float | None:
    """Share of clusters whose gap is negative, if above 5 %."""
    count, clusters = last(run, "/clamped_gaps"), (run.settings.get("params") or {}).get("clusters", 300)
    return count / clusters if count is not None and count / clusters > CLAMPED else None


def change(run: Run) -> float | None:
    """Mean size of the bonus in the last tenth of the rollouts / that in the first tenth.

    The first rollout is left out: nothing was known before it, and its bonus is not paid.
    """
    bonus = np.abs(run.columns.get("bonus_mean", np.empty(0)))[1:]
    tenth = len(bonus) // 10
    if run.kind == "none" or len(bonus) < ENOUGH or not np.isfinite(bonus).all():
        return None
    before, after = float(bonus[:tenth].mean()), float(bonus[-tenth:].mean())
    return after / before if before > 0 else (math.inf if after > 0 else 0.0)


def vanished(run: Run) -> float | None:
    """The share of the first bonus that is left, if below 1/100."""
    return factor if (factor := change(run)) is not None and factor * CHANGE < 1 else None


def exploded(run: Run) -> float | None:
    """By which factor the bonus rose, if by more than 100."""
    return factor if (factor := change(run)) is not None and factor > CHANGE else None


def broken(*names: str) -> Measure:
    """In how many rollouts one of these was not a number."""

    def measure(run: Run) -> float | None:
        known: list[NDArray[np.bool_]] = [np.isfinite(run.columns[name]) for name in names if name in run.columns]
        count = int((~np.all(known, axis=0)).sum()) if known else 0
        return float(count) if count else None

    return measure


def unrewarded(run: Run) -> float | None:
    """How many rollouts finished episodes, if none of these ever had a return other than 0."""
    returns = run.columns.get("extrinsic_return", np.empty(0))
    known = returns[np.isfinite(returns)]
    return float(len(known)) if len(known) and not known.any() else None


def _degenerate(run: Run) -> float | None:
    """The bonus was asked for its entropy and had no finite answer."""
    return 1.0 if last(run, "/cell_mass_cv") is not None and last(run, "kme/entropy") is None else None


def _in_state(state: str) -> Measure:
    return lambda run: 1 - len(run.steps) / run.wanted if run.state == state else None


CHECKS = (
    Check("warning", "Stopped early", _in_state("stopped"),
          "Nothing was written for a long time and up to {worst:.0%} of the rollouts are missing. Go on with the same "
          "command and --resume."),
    Check("warning", "Log cut off", _in_state("cut"),
          "The experiment is finished, but up to {worst:.0%} of the rollouts are not in its log."),
    Check("warning", "Dead centers", dead(memory=True),
          "Up to {worst:.0%} of the cells hold none of the states seen. Try a larger balance where no gap is "
          "clamped, and --kme.init data if it is zeros."),
    Check("warning", "Dead centers", dead(memory=False),
          "Up to {worst:.0%} of the cells hold none of the states seen. Try fewer clusters, or longer rollouts: there "
          "should be several states for each cluster. Coordinates of few values, such as flags, leave cells empty too, "
          "and that does no harm."),
    Check("warning", "Clamped gaps", clamped,
          "Up to {worst:.0%} of the gaps are negative and count as 0: balance is too strong for the scale of these "
          "states. Try a balance ten times smaller."),
    Check("warning", "Imbalance", uneven,
          "The masses of the cells differ by up to {worst:.2g} times their mean (healthy: below 0.5), so gaps no "
          "longer measure density. Try a larger balance or step_size or, where gaps are clamped, a smaller balance."),
    Check("warning", "Vanishing bonus", vanished,
          "The bonus fell below a hundredth of what it was at first: everything within reach has been seen, or "
          "step_size is so small that no state moves a center."),
    Check("warning", "Exploding bonus", exploded,
          "The bonus rose to {worst:.3g} times what it was at first: the states have left the clusters far behind, or "
          "their scale has changed."),
    Check("warning", "Bonus not a number", broken("bonus_mean"),
          "In up to {worst:.0f} rollout(s) the mean bonus was not finite. Look at the simulator's states."),
    Check("warning", "Learning broke down", broken("policy_loss", "value_loss", "grad_norm"),
          "In up to {worst:.0f} rollout(s) a loss or gradient was not finite. Lower the weight of the bonus, or look "
          "for rewards and states that are not finite."),
    Check("warning", "Bad states", _above("/bad_states", 0),
          "Up to {worst:.0f} state(s) were not finite; they were paid 0 and not learned from. Look at the simulator."),
    Check("note", "No reward yet", unrewarded,
          "None of the episodes that ended so far met any reward ({worst:.0f} rollout(s) with such episodes). The top "
          "reward shows progress first."),
    Check("note", "No entropy", _degenerate,
          "The entropy of all states has no finite value: a coordinate is constant or follows from others, or there "
          "are too few states yet. The bonus does not need it."),
    Check("note", "Under way", _in_state("running"),
          "Up to {worst:.0%} of the rollouts are still to come. Write the page again to see more."),
)  # fmt: skip


def findings(runs: Sequence[Run], troubles: Sequence[str]) -> list[Finding]:
    """Everything to look at, once for each task, warnings first; damaged and missing files by name."""
    tasks = grouped(runs, lambda run: run.task).values()
    found = [finding for check in CHECKS for group in tasks for finding in _findings(check, group)]
    found += [Finding("warning", "Missing or damaged", "", trouble) for trouble in troubles]
    return sorted(found, key=lambda finding: finding.level != "warning")


def _findings(check: Check, runs: Sequence[Run]) -> list[Finding]:
    """What a check finds in the runs of a task: one finding, or none."""
    measured = [(run, value) for run in runs if (value := check.measure(run)) is not None]
    if not measured:
        return []
    own = grouped((run for run, _ in measured), lambda run: run.method)
    where = "; ".join(f"{method} {_seeds(sorted(run.seed for run in group))}" for method, group in own.items())
    text = check.text.format(worst=max(value for _, value in measured))
    return [Finding(check.level, check.title, f"{runs[0].task}, {where}", text)]


def _seeds(seeds: Sequence[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"
