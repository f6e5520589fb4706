"""`voronaut bench rllib`: environment steps per second of RLlib's PPO with 1 and 2 learners, with KME and without.

The batch of all learners together stays the same, so two learners share one learner's work. Sampling and learning take
turns in PPO, so on two cores the two learners have a core each; there is no network between them.
"""

from pathlib import Path
from typing import Any

import numpy as np

from voronaut.bench import measure
from voronaut.bench.measure import Clock

BATCH, DIM, EPISODE = 8192, 17, 1000
RUNNERS, ROUNDS = 2, 6


def drift(_: Any = None) -> Any:
    """An environment that costs next to nothing: 17 numbers that go where a 6-dimensional action pushes them."""
    import gymnasium

    class Drift(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (DIM,), np.float32)
        action_space = gymnasium.spaces.Box(-1, 1, (6,), np.float32)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.state, self.time = np.zeros(DIM, np.float32), 0
            return self.state, {}

        def step(self, action: Any) -> Any:
            self.time += 1
            self.state = 0.99 * self.state + 0.1 * np.resize(action, DIM).astype(np.float32)
            return self.state, 0.0, False, self.time == EPISODE, {}

    return Drift()


def algorithm(learners: int, bonus: Any = None) -> Any:
    """PPO with that many learner processes and two env runners."""
    from ray.rllib.algorithms.ppo import PPOConfig  # type: ignore[import-not-found, unused-ignore]
    from ray.tune.registry import register_env  # type: ignore[import-not-found, unused-ignore]

    from voronaut.adapters.rllib import add_bonus

    register_env("drift", drift)
    config = (
        PPOConfig()
        .environment("drift")
        .env_runners(num_env_runners=RUNNERS, num_envs_per_env_runner=8)
        .learners(num_learners=learners)
        .training(train_batch_size_per_learner=BATCH // learners, minibatch_size=256, num_epochs=4)
        .rl_module(model_config={"fcnet_hiddens": [64, 64]})
        .debugging(seed=0, log_level="ERROR")
    )
    return (config if bonus is None else add_bonus(config, bonus)).build_algo()


def iteration(made: Any) -> dict[str, float]:
    """Seconds of one iteration: all of it, and of it in learning (by the wall clock) and in the bonus."""
    whole, learning = Clock(made.train), Clock(made.learner_group.update)
    made.learner_group.update = learning
    logged = whole()["learners"]["__all_modules__"].get("bonus", {})
    del made.learner_group.update
    return {"total": whole.seconds, "learn": learning.seconds, "bonus": logged.get("seconds", 0.0)}


def row(learners: int, name: str, took: dict[str, float]) -> dict[str, Any]:
    """A line of the table."""
    sent = BATCH * DIM * 4 * (learners - 1) / learners / 2**20 if name != "none" else 0.0
    return {
        "learners": learners,
        "bonus": name,
        "steps/s": BATCH / took["total"],
        "iteration s": took["total"],
        "learning s": took["learn"],
        "bonus ms": 1000 * took["bonus"],
        "bonus % of iteration": 100 * took["bonus"] / took["total"],
        "MiB received per learner": sent,
    }


def rows() -> list[dict[str, Any]]:
    """All four take turns, after an iteration each to compile and settle; the fastest iteration of each."""
    import voronaut as vn

    bonuses = {"none": None, "kme": vn.KME(dim=DIM)}  # learners work on copies
    made = {(n, name): algorithm(n, bonus) for n in (1, 2) for name, bonus in bonuses.items()}
    for one in made.values():
        iteration(one)
    taken = [{key: iteration(one) for key, one in made.items()} for _ in range(ROUNDS)]
    for one in made.values():
        one.stop()
    return [row(*key, min((turn[key] for turn in taken), key=lambda took: took["total"])) for key in made]


def run(folder: Path) -> str:
    """Measure on a local Ray, keep the table in `folder`, and return it."""
    import ray  # type: ignore[import-not-found, unused-ignore]

    threads = {"env_vars": {"OMP_NUM_THREADS": "1"}}
    ray.init(address="local", num_cpus=16, include_dashboard=False, log_to_driver=False, runtime_env=threads)
    lines = rows()
    ray.shutdown()
    return measure.keep(folder, "rllib", {"rows": lines}, [
        "# RLlib: environment steps per second with 1 and 2 learners",
        f"PPO, {BATCH} steps per iteration over all learners, {RUNNERS} env runners, d = {DIM}, 300 clusters, an "
        f"environment that costs next to nothing, one thread per process, the fastest of {ROUNDS} iterations. All "
        "processes share the cores named below and talk through shared memory and loopback: this shows what the "
        "bonus costs and whether learners share their work, not how a cluster scales.",
        lines,
    ])  # fmt: skip
