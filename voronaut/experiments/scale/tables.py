"""The table of docs/results.md about the weights."""

from voronaut.experiments.common import drawing, sweep
from voronaut.experiments.common.sweep import Plan
from voronaut.experiments.exploration.run import beside
from voronaut.experiments.scale.run import PLAN, SCALES, papers
from voronaut.markdown import table

FORMS: dict[drawing.Score, str] = {
    drawing.area: ".1f",
    drawing.final: ".1f",
    drawing.top: ".2f",
    drawing.entropy: ".1f",
}


def computed(plan: Plan = PLAN) -> dict[str, str]:
    """One row per method and weight, means over seeds with t-intervals."""
    runs, others = sweep.collect(plan)[0], beside(plan, seeds=plan.seeds)
    rows = [["PPO alone", "0", *drawing.means(others["none"], FORMS)]]
    for cell in plan.cells:
        name, usual = drawing.NAMES[cell.name], papers(cell.name)
        rows.append([name, f"{usual} (run before, with exploration)", *drawing.means(others[cell.name], FORMS)])
        for scale, results in zip(SCALES[cell.name], runs[cell.name].values(), strict=True):
            rows.append([name, scale + " (the paper's)" * (scale == usual), *drawing.means(results, FORMS)])
    head = ["method", "β", "seeds", "mean return over training", "final return", "top dense reward", "state entropy"]
    return {"scale": table(head, rows)}
