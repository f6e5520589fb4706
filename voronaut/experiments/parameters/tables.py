"""The tables of docs/results.md about the parameters: means over seeds with t-intervals."""

from voronaut.experiments.common import drawing
from voronaut.experiments.common.results import Result
from voronaut.experiments.common.sweep import Data, Plan
from voronaut.experiments.parameters.figures import ROWS, last
from voronaut.experiments.parameters.run import PLAN, SYMBOLS, points
from voronaut.markdown import table
from voronaut.training import ways


def computed(plan: Plan = PLAN) -> dict[str, str]:
    """Every parameter and value; and gaps that had to be computed anew."""
    by_parameter = points(plan, say=lambda trouble: None)
    return {"parameters": values(by_parameter), "recomputed": recomputed(by_parameter)}


def values(by_parameter: Data) -> str:
    """One row per parameter and value."""
    if not any(results for runs in by_parameter.values() for results in runs.values()):
        return "Nothing has been run yet."
    forms = dict.fromkeys(ROWS.values(), ".2f")
    rows = [
        [f"{name} {SYMBOLS[name]}".strip(), value, *drawing.means(results, forms)]
        for name, runs in by_parameter.items()
        for value, results in runs.items()
    ]
    return table(["parameter", "value", "seeds", *ROWS], rows)


def recomputed(by_parameter: Data) -> str:
    """Gaps per state that grew, which the paper computes anew, and those that had to be here."""
    forms = dict.fromkeys(map(per_state, ("grown_gaps", "recomputed_gaps")), ".3f")
    online = [name for name, way in ways.WAYS.items() if way.online]
    rows = [[value, *drawing.means(by_parameter[ways.OPTION][value], forms)] for value in online]
    return table(["absorb", "seeds", "gaps that grew, per state", "gaps recomputed here, per state"], rows)


def per_state(name: str) -> drawing.Score:
    """A total of KME's, by the states that it has absorbed."""

    def score(result: Result) -> float:
        return last(name)(result) / last("states")(result)

    return score
