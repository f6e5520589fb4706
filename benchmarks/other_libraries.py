"""Runs the conformance kit on the exploration bonuses of other libraries and writes docs/other_libraries.md.

Needs an environment of its own, with as many of these libraries as are wanted (what is missing is left out):
    pip install torch==2.13.0 torchrl==0.14.1 'ray[rllib]==2.60.0' gymnasium==1.2.2 scipy numba
    pip install --no-deps rllte-core==1.0.1 torchvision==0.28.0 && pip install pynvml termcolor matplotlib seaborn
    python benchmarks/other_libraries.py

Each library is driven as its documentation says, with its defaults: `rewards` is its way to ask without learning where
it has one, `update` its way to learn, `state_dict` what it offers for saving. A library that offers nothing to save is
still read (its tensors and arrays) so that changes can be seen, and the checks about saving say "not offered". The
drivers are lenient: they flatten and restore layouts and seed torch's global generator before every call; and where
`rewards` was found to change something, all other checks ask a deep copy, so that one fault is counted once. Checks of
what a driver itself supplies (the protocol's names, metrics) are left out.
"""

import copy
import importlib
import importlib.metadata
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from voronaut.conformance import BONUS_CHECKS
from voronaut.conformance.state import STATE_CHECKS
from voronaut.helpers.markdown import table

SUPPLIED = ("keeps_the_protocol", "metrics_are_floats")
CHECKS = {check.__name__: check for check in BONUS_CHECKS if check.__name__ not in SUPPLIED}
TARGET = Path(__file__).parents[1] / "docs" / "other_libraries.md"


class Driven:
    """What the drivers share: layouts are flattened and restored here, so only the library's own work is judged."""

    saves = True

    def __init__(self, dim: int, seed: int) -> None:
        self.dim, self.seed, self.calls = dim, seed, 0

    def rewards(self, next_states: Any) -> Any:
        states = np.asarray(next_states)
        self.seed_torch()
        return np.asarray(self.ask(states.reshape(-1, states.shape[-1])), np.float32).reshape(states.shape[:-1])

    def update(self, next_states: Any) -> None:
        states = np.asarray(next_states)
        self.seed_torch()
        self.learn(states.reshape(-1, states.shape[-1]))
        self.calls += len(states) > 0

    def seed_torch(self) -> None:
        import torch

        torch.manual_seed(1000 * self.seed + self.calls)

    def metrics(self) -> dict[str, float]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return dict(arrays_of(self.module))

    def load_state_dict(self, state: Any) -> None:
        raise NotImplementedError


def arrays_of(thing: Any, name: str = "") -> Any:
    """Every tensor and array below an object's attributes, by name."""
    import torch

    if isinstance(thing, torch.nn.Module):
        yield from ((f"{name}.{key}", value.detach().numpy().copy()) for key, value in thing.state_dict().items())
    elif isinstance(thing, torch.Tensor | np.ndarray | int | float) and not isinstance(thing, bool):
        yield name, np.array(thing)
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from arrays_of(value, f"{name}.{key}")
    elif type(thing).__module__.startswith("rllte"):
        yield from arrays_of({k: v for k, v in vars(thing).items() if k not in ("envs", "metrics")}, name)


class Rllte(Driven):
    """rllte: compute(samples, sync=False) asks, compute(samples, sync=True) learns; RE3 stores with watch."""

    kind, saves = "RND", False

    def __init__(self, dim: int, seed: int) -> None:
        import rllte.xplore.reward as rewards
        import torch

        super().__init__(dim, seed)
        torch.manual_seed(seed)
        self.module = getattr(rewards, self.kind)(noise_environment(dim))

    def samples(self, flat: np.ndarray) -> dict[str, Any]:
        import torch

        rows = torch.tensor(flat, dtype=torch.float32)[:, None]
        blank = torch.zeros(len(flat), 1)
        names = ("actions", "rewards", "terminateds", "truncateds")
        return {"observations": rows, "next_observations": rows, **dict.fromkeys(names, blank)}

    def ask(self, flat: np.ndarray) -> Any:
        return self.module.compute(self.samples(flat), sync=False).numpy()[:, 0]

    def learn(self, flat: np.ndarray) -> None:
        self.module.compute(self.samples(flat), sync=True)


class RllteRe3(Rllte):
    kind = "RE3"

    def learn(self, flat: np.ndarray) -> None:
        for row in self.samples(flat)["observations"]:
            self.module.watch(row, None, None, None, None, row)


def noise_environment(dim: int) -> Any:
    """A vector environment of one, whose states are noise."""
    import gymnasium as gym

    rng = np.random.default_rng(0)

    class Noise(gym.Env):  # type: ignore[misc]
        observation_space = gym.spaces.Box(-np.inf, np.inf, (dim,), np.float32)
        action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

        def reset(self, **_: Any) -> Any:
            return np.zeros(dim, np.float32), {}

        def step(self, action: Any) -> Any:
            return rng.normal(scale=4, size=dim).astype(np.float32), 0.0, False, False, {}

    return gym.vector.SyncVectorEnv([Noise])


class TorchRlRnd(Driven):
    """TorchRL: RNDTransform in eval mode asks, in train mode it takes statistics; RNDLoss with Adam learns."""

    def __init__(self, dim: int, seed: int) -> None:
        import torch
        from torchrl.envs.transforms import RNDTransform
        from torchrl.objectives.rnd import RNDLoss

        super().__init__(dim, seed)
        torch.manual_seed(seed)
        nets = [
            torch.nn.Sequential(torch.nn.Linear(dim, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)) for _ in range(2)
        ]
        self.transform, self.loss = RNDTransform(*nets), RNDLoss
        self.adam = torch.optim.Adam(self.transform.predictor_network.parameters(), lr=1e-3)

    def pass_through(self, flat: np.ndarray) -> Any:
        import torch
        from tensordict import TensorDict

        state = TensorDict({"observation": torch.tensor(flat, dtype=torch.float32)}, batch_size=[len(flat)])
        return self.transform._step(state, state.clone())

    def ask(self, flat: np.ndarray) -> Any:
        self.transform.eval()
        return self.pass_through(flat)["intrinsic_reward"].numpy()[:, 0]

    def learn(self, flat: np.ndarray) -> None:
        self.transform.train()
        after = self.pass_through(flat)
        if len(flat) == 0:
            return
        after["next"] = after.select("observation")
        loss = self.loss(
            self.transform.predictor_network, self.transform.target_network, obs_rms=self.transform.obs_rms
        )
        self.adam.zero_grad()
        loss(after)["loss_predictor"].backward()
        self.adam.step()

    def state_dict(self) -> dict[str, Any]:
        named = {"driver.calls": np.array(self.calls)}
        for i, moments in self.adam.state_dict()["state"].items():
            named |= {f"adam.{i}.{k}": np.array(v) for k, v in moments.items()}
        return named | {f"transform.{k}": v.numpy().copy() for k, v in self.transform.state_dict().items()}

    def load_state_dict(self, state: Any) -> None:
        import torch

        split: dict[str, dict[str, Any]] = {"transform": {}, "adam": {}, "driver": {}}
        for name, array in state.items():
            part, _, key = name.partition(".")
            split.get(part, split["transform"])[key] = torch.tensor(array)
        moments: dict[int, dict[str, Any]] = {}
        for key, value in split["adam"].items():
            moments.setdefault(int(key.split(".")[0]), {})[key.split(".")[1]] = value
        self.transform.load_state_dict(split["transform"])
        self.adam.load_state_dict({**self.adam.state_dict(), "state": moments})
        self.calls = int(split["driver"]["calls"])


class RllibConnector(Driven):
    """RLlib: a learner connector called on an episode pays and learns at once; get_state is what RLlib saves."""

    kind, home = "CountBasedCuriosity", "count_based_curiosity"

    def __init__(self, dim: int, seed: int) -> None:
        super().__init__(dim, seed)
        module = importlib.import_module(f"ray.rllib.examples.connectors.classes.{self.home}")
        self.connector = getattr(module, self.kind)()

    def ask(self, flat: np.ndarray) -> Any:
        from ray.rllib.env.single_agent_episode import SingleAgentEpisode

        if len(flat) == 0:
            return np.zeros(0)
        episode = SingleAgentEpisode(
            observations=[row.copy() for row in [*flat, flat[-1]]],
            actions=[0] * len(flat),
            rewards=[0.0] * len(flat),
            len_lookback_buffer=0,
        )
        self.connector(rl_module=None, batch={}, episodes=[episode])
        return np.asarray(episode.get_rewards())

    def learn(self, flat: np.ndarray) -> None:
        self.ask(flat)

    def state_dict(self) -> dict[str, Any]:
        return {name: np.asarray(value) for name, value in self.connector.get_state().items()}

    def load_state_dict(self, state: Any) -> None:
        self.connector.set_state(dict(state))


class RllibDistance(RllibConnector):
    kind, home = "EuclidianDistanceBasedCuriosity", "euclidian_distance_based_curiosity"


HEAD = """# Bonuses of other libraries

What `vn.conformance.check_bonus` says of the exploration bonuses of other libraries. Voronaut's own pass all of these
checks on every commit. Written by `benchmarks/other_libraries.py`; only what was run is in the table.

"""
LEGEND = "✓ passed, ✗ failed for the reason of that number, – the library has no way to save what it learned."

DRIVERS: dict[str, tuple[str, type[Driven]]] = {
    "rllte-core RND": ("rllte-core", Rllte),
    "rllte-core RE3": ("rllte-core", RllteRe3),
    "TorchRL RNDTransform": ("torchrl", TorchRlRnd),
    "RLlib CountBasedCuriosity": ("ray", RllibConnector),
    "RLlib EuclidianDistanceBasedCuriosity": ("ray", RllibDistance),
}


def asked_on_a_copy(driver: type[Driven]) -> Callable[..., Any]:
    """The driver with a `rewards` that leaves no trace, whatever the library does."""

    class Copied(driver):  # type: ignore[misc,valid-type]
        def rewards(self, next_states: Any) -> Any:
            return driver.rewards(copy.deepcopy(self), next_states)

    return Copied


def outcome(check: Callable[[Any], None], factory: Callable[..., Any]) -> tuple[str, str]:
    """Pass or fail, and one line why."""
    try:
        check(factory)
    except AssertionError as error:
        return "fail", " ".join(str(error).split()) or "an assertion of the library"
    except Exception as error:
        return "fail", f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
    return "pass", ""


class Row(NamedTuple):
    """One check of one library."""

    check: str
    library: str
    version: str
    result: str
    why: str


def rows() -> list[Row]:
    """One for each check that was run."""
    found = []
    for name, (package, driver) in DRIVERS.items():
        try:
            version = importlib.metadata.version(package)
            driver(5, 0)
        except ImportError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        pure = outcome(CHECKS["rewards_change_nothing"], driver)[0] == "pass"
        for check_name, check in CHECKS.items():
            asked = driver if pure or check_name == "rewards_change_nothing" else asked_on_a_copy(driver)
            result, why = outcome(check, asked)
            if check in STATE_CHECKS and not driver.saves:
                result, why = "not offered", ""
            found.append(Row(check_name, name, version, result, why))
    return found


def page(found: list[Row]) -> str:
    """A matrix of checks and libraries, and a numbered list of what failed."""
    names = {row.library: f"{row.library.replace(' ', '<br>')}<br>{row.version}" for row in found}
    reasons: dict[str, int] = {}
    cells: dict[tuple[str, str], str] = {}
    for row in found:
        number = reasons.setdefault(row.why, len(reasons) + 1) if row.result == "fail" else 0
        cells[row.check, row.library] = f"✗ {number}" if number else {"pass": "✓"}.get(row.result, "–")
    checks = [row.check for row in found if row.library == found[0].library]
    plain = {check: check.replace("_", " ").replace("its rows", "its row's") for check in checks}
    lines = [[plain[check], *(cells[check, name] for name in names)] for check in checks]
    passed = ["passed", *(str(sum(cells[check, name] == "✓" for check in checks)) for name in names)]
    numbered = [f"{number}. {why.replace('|', '/')}" for why, number in reasons.items()]
    return "\n".join([table(["check", *names.values()], [*lines, passed]), "", LEGEND, "", *numbered, ""])


def main() -> None:
    """Run everything that is installed and write the page."""
    warnings.simplefilter("ignore")
    TARGET.write_text(HEAD + page(rows()) + "\n" + (__doc__ or "").split("\n\n")[-1])


if __name__ == "__main__":
    main()
