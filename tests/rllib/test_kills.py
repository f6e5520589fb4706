"""An env runner and a learner are killed in turn: Tune goes on from the last checkpoint, and the clusters are whole.

RLlib itself starts env runners anew; a dead learner is an error of the whole algorithm, which is Tune's to repair.
"""

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray import tune

import voronaut as vn
from tests.rllib.worlds import many, states_of
from voronaut.adapters.rllib import add_bonus

KILLED = {1: "env runner", 2: "learner"}  # after which iteration; the learner is the one whose state is saved
ITERATIONS = 4


def digest(state: dict[str, Any]) -> str:
    return hashlib.sha256(b"".join(state[name].tobytes() for name in sorted(state))).hexdigest()


def note(folder: Path, what: str, algorithm: Any, **_: Any) -> None:
    """A line about what the learners hold."""
    states = states_of(algorithm)
    seen, updates = (int(number) for number in states[0]["totals"][:2])
    said = {"what": what, "iteration": algorithm.training_iteration, "updates": updates, "states": seen}
    with (folder / "lines.jsonl").open("a") as log:
        log.write(json.dumps({**said, "held": [digest(state) for state in states]}) + "\n")


def note_and_kill(folder: Path, algorithm: Any, **_: Any) -> None:
    """After an iteration, before it is saved: whose turn it is dies, once."""
    note(folder, "trained", algorithm)
    victim = KILLED.get(algorithm.training_iteration)
    if victim is None or (folder / victim).exists():
        return
    (folder / victim).touch()
    if victim == "learner":
        ray.kill(algorithm.learner_group._workers[0])
    else:
        ray.kill(algorithm.env_runner_group._worker_manager.actors()[1], no_restart=False)


def trained(folder: Path) -> Any:
    """Two learners and two env runners under Tune, which saves every iteration and may begin again once."""
    config = add_bonus(many("CartPole-v1"), vn.KME(dim=4, clusters=16))
    config.fault_tolerance(restart_failed_env_runners=True)
    config.callbacks(
        on_train_result=partial(note_and_kill, folder), on_checkpoint_loaded=partial(note, folder, "loaded")
    )
    options = tune.RunConfig(
        storage_path=str(folder),
        stop={"training_iteration": ITERATIONS},
        failure_config=tune.FailureConfig(max_failures=1),
        checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1),
        verbose=0,
    )
    return tune.Tuner(config.algo_class, param_space=config, run_config=options).fit()[0]


def test_killed_in_turn(cluster: None, tmp_path: Path) -> None:
    result = trained(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    print(*lines, sep="\n")
    assert result.error is None and result.metrics["training_iteration"] == ITERATIONS
    assert [(line["what"], line["iteration"]) for line in lines] == [
        *[("trained", 1), ("trained", 2)],  # the second died with the learner before it was saved
        *[("loaded", 1), ("trained", 2), ("trained", 3), ("trained", 4)],
    ]
    for line in lines:
        assert len(line["held"]) == 2 and len(set(line["held"])) == 1  # both learners, the same clusters
        assert line["updates"] == line["iteration"] and line["states"] >= 128 * line["iteration"]
    assert lines[2]["held"] == lines[0]["held"]  # what was learned is there again to the bit
