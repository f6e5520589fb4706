"""An explorer and an exploiter that share one memory: how they act and learn, as compiled programs over many runs.

The exploiter is paid by the task alone, the explorer by the bonus and the task. Each drives its share of the
environments, and both learn from every transition. SAC without a bonus is an exploiter by itself; one agent paid by
both is an explorer by itself.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from voronaut.helpers.kinds import check_kinds
from voronaut.learners import runs, sac
from voronaut.learners.networks import Array, side_by_side
from voronaut.training import replay

Floats = NDArray[np.float32]
EXPLOITER, EXPLORER = 0, 1
RATE = 0.016  # of the bonus's running deviation, per vector step
LEAST = 1e-8  # a deviation below is none: nothing is paid
KNOWN = 100  # rewarded steps after which there is something to learn from


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is chosen about learning from a replay; steps are of all environments of a run together."""

    random_steps: int = 10_000  # before anybody learns
    batch: int = 256
    gradient_steps: int = 8  # after every vector step
    n_step: int = 3
    discount: float = 0.99
    near_reward: float = 0.25  # share of a batch that starts shortly before a reward, once there is one
    memory: int = 0  # transitions of a run that are remembered; 0 for all
    absorb_every: int = 64  # vector steps after which the bonus learns what is new
    explorer_share: float = 0.5  # of the environments, at least one
    explorer_share_after: float = 0.0  # the same from the hundredth rewarded step on; 0 to leave it as it is
    explorer_task: float = 1.0  # weight of the task's reward for the explorer: 0 leaves it the bonus alone
    agent: sac.Settings = dataclasses.field(default_factory=sac.Settings)

    def __post_init__(self) -> None:
        counts = (self.batch, self.gradient_steps, self.n_step, self.absorb_every)
        if any(not isinstance(each, int) or each < 1 for each in counts):
            raise ValueError(f"batch, gradient_steps, n_step and absorb_every must be at least 1; got {counts}.")
        if not isinstance(self.memory, int) or self.memory < 0:
            raise ValueError(f"memory must be a number of transitions, or 0 for all; got {self.memory}.")
        check_kinds(self)
        if not 0 < self.explorer_share < 1 or not 0 <= self.near_reward <= 1 or not 0 <= self.discount < 1:
            raise ValueError(
                "explorer_share must lie between 0 and 1, near_reward within [0, 1], discount within [0, 1); got "
                f"{self.explorer_share}, {self.near_reward} and {self.discount}. The defaults are 0.5, 0.25 and 0.99."
            )
        if self.random_steps < 1 or self.explorer_task < 0:
            raise ValueError(
                "random_steps must be at least 1, as nobody learns from nothing, and explorer_task at least 0; got "
                f"{self.random_steps} and {self.explorer_task}."
            )
        if not 0 <= self.explorer_share_after < 1:
            raise ValueError(
                f"explorer_share_after must lie between 0 and 1, or be 0 (no change); got {self.explorer_share_after}."
            )

    def explorers(self, envs: int, rewarded: int) -> int:
        """How many of the environments are the explorer's, when so many steps were rewarded: at least one, not all."""
        share = (rewarded >= KNOWN and self.explorer_share_after) or self.explorer_share
        return min(max(1, round(envs * share)), envs - 1)


AGENT = tuple(each.name for each in dataclasses.fields(sac.Settings))
NAMES = ("size", *(each.name for each in dataclasses.fields(Settings) if each.name != "agent"), *AGENT)
COUNTS = tuple(each.name for kind in (Settings, sac.Settings) for each in dataclasses.fields(kind) if each.type is int)
SIZES: Mapping[str, Mapping[str, Any]] = {
    "usual": {},
    # for a core or two: few gradient steps, so larger ones
    "small": {"width": 128, "batch": 128, "gradient_steps": 4, "learning_rate": 1e-3},
    "large": {"width": 512, "bfloat16": True},  # for an accelerator and bodies with many joints
}


def settings(given: Mapping[str, Any]) -> Settings:
    """Settings from what is chosen of `NAMES`; a size stands for several of them."""
    rest: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    size = rest.pop("size", "usual")
    if size not in SIZES:
        raise ValueError(f"there is no size {size!r} of SAC. Sizes: {', '.join(SIZES)}.")
    chosen = {**SIZES[size], **{key: _count(each) if key in COUNTS else each for key, each in rest.items()}}
    agent = sac.Settings(**{key: value for key, value in chosen.items() if key in AGENT})
    return Settings(**{key: value for key, value in chosen.items() if key not in AGENT}, agent=agent)


def _count(given: Any) -> Any:
    """1e6 is a float and means a whole number."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


class Scale(NamedTuple):
    """Running mean and variance of the observations, (d,), of so many of them."""

    mean: Array
    variance: Array
    count: Array


class Run(NamedTuple):
    """What changes on the device in one run; axis 0 of every leaf of `agents` is the exploiter and the explorer."""

    agents: sac.Agent
    scale: Scale
    deviation: Array  # running, of the bonus
    batches: Array  # () paid so far


class Stats(NamedTuple):
    """Of the last gradient step of a vector step."""

    agents: sac.Stats  # (agents,)
    bonus: Array  # () mean, in deviations


def standardised(observations: Array, scale: Scale) -> Array:
    """In running deviations from the running mean, cut at ±10."""
    return jnp.clip((observations - scale.mean) / jnp.sqrt(scale.variance + 1e-6), -10, 10)


def seen(scale: Scale, observations: Array) -> Scale:
    """The scale after (…, d) more observations (Chan et al., 1979)."""
    rows = observations.reshape(-1, observations.shape[-1])
    total, apart = scale.count + len(rows), rows.mean(axis=0) - scale.mean
    spread = scale.variance * scale.count + rows.var(axis=0) * len(rows) + apart**2 * scale.count * len(rows) / total
    return Scale(scale.mean + apart * len(rows) / total, spread / total, total)


def act(
    run: Run, observations: Array, explores: Array, key: Array, shares: tuple[int, ...], settings: Settings
) -> Array:
    """(envs, d) -> (envs, a): the explorer's actions where it explores, the exploiter's elsewhere.

    No more than the first `shares[0]` environments can be the exploiter's, and the last `shares[1]` the explorer's.
    """
    keys, x = jax.random.split(key, len(shares)), standardised(observations, run.scale)
    parts = (slice(shares[0]), slice(len(x) - shares[-1], None))
    drawn = [
        sac.sample(jax.tree.map(lambda leaf, i=i: leaf[i], run.agents.actor), x[part], keys[i], settings.agent).actions
        for i, part in enumerate(parts[: len(shares)])
    ]
    placed = [jnp.zeros((len(x), own.shape[1])).at[part].set(own) for own, part in zip(drawn, parts, strict=False)]
    return jnp.where(explores[:, None], placed[-1], placed[0])


def learn(
    run: Run, windows: replay.Windows, raw: Array, weight: Array, curious: tuple[bool, ...], key: Array,
    settings: Settings,
) -> tuple[Run, Stats]:  # fmt: skip
    """All gradient steps of a vector step: windows (steps, batch, …) and what their states earn, (steps, batch, n).

    Agent i is paid by the task and, if it is curious, `weight` times the bonus, which is in units of its running
    deviation (over all that was drawn, also behind a window's end); the task counts `explorer_task` for the explorer of
    a pair.
    """
    batches = run.batches + 1
    deviation = run.deviation + jnp.maximum(RATE, 1 / batches) * (raw.std() - run.deviation)
    bonus = raw / jnp.where(deviation > LEAST, deviation, jnp.inf)
    task, extra = (replay.returns(windows, paid, settings.discount) for paid in (windows.rewards, bonus))
    last, discounts = replay.ends(windows, settings.discount)
    first, last = (standardised(states, run.scale) for states in (windows.observations, last))
    earned = (1.0, settings.explorer_task)
    paid = [own * task + (weight * extra if also else 0) for own, also in zip(earned, curious, strict=False)]
    rewards = jnp.stack(paid, axis=1)

    def step(before: tuple[sac.Agent, sac.Stats], given: tuple[sac.Batch, Array]) -> tuple[Any, None]:
        (agents, _), (batch, keys) = before, given

        def one(own: tuple[sac.Agent, Array, Array], shared: sac.Batch) -> tuple[sac.Agent, sac.Stats]:
            agent, rewards, key = own
            return sac.learn(agent, shared._replace(rewards=rewards), key, settings.agent)

        return side_by_side(one, (agents, batch.rewards, keys), batch._replace(rewards=())), None

    keys = jax.random.split(key, (settings.gradient_steps, len(curious)))
    nothing = sac.Stats(*[jnp.zeros(len(curious), run.deviation.dtype)] * len(sac.Stats._fields))
    given = sac.Batch(first, windows.actions, rewards, last, discounts), keys
    (agents, stats), _ = jax.lax.scan(step, (run.agents, nothing), given)  # the last stats alone are wanted
    return run._replace(agents=agents, deviation=deviation, batches=batches), Stats(stats, bonus.mean())


class Programs(NamedTuple):
    """The compiled functions of one lane; axis 0 of every argument is the run."""

    act: Any
    draw: Any
    learn: Any
    draw_and_learn: Any
    insert: Any
    seen: Any


@functools.cache
def programs(
    settings: Settings, shares: tuple[int, ...], curious: tuple[bool, ...], pay: Callable[[Any, Array], Array] | None
) -> Programs:
    """Compiled for lanes whose agents drive as many environments at most."""
    size = (settings.gradient_steps, settings.batch)
    tries = replay.TRIES if settings.memory else 1
    draw = functools.partial(
        replay.draw, shape=size, steps=settings.n_step, near_reward=settings.near_reward, tries=tries
    )
    taught = functools.partial(learn, curious=curious, settings=settings)

    def drawn_and_taught(
        run: Run, memory: replay.Replay, frozen: Any, weight: Array, key: tuple[Array, Array]
    ) -> tuple[Run, Stats]:
        windows = draw(memory, key=key[0])
        states, raw = windows.next_states, windows.bonus  # what was kept, or else what they earn now
        if raw is None:
            raw = jnp.zeros(states.shape[:-1]) if pay is None else pay(frozen, states.reshape(-1, states.shape[-1]))
        return taught(run, windows, raw.reshape(states.shape[:-1]), weight, key=key[1])

    return Programs(
        jax.jit(_keyed(functools.partial(act, shares=shares, settings=settings), 0)),
        jax.jit(_keyed(draw, 1)),
        jax.jit(_keyed(taught, 2), donate_argnums=2, compiler_options=runs.options()),
        jax.jit(_keyed(drawn_and_taught, 1, 2), donate_argnums=2, compiler_options=runs.options()),
        jax.jit(jax.vmap(replay.insert), donate_argnums=0),
        jax.jit(jax.vmap(seen)),
    )


def _keyed(function: Any, *uses: int) -> Any:
    """(seeds, vector step, …) -> the function of every run with keys from these and the use alone: nothing to save."""

    def one(seed: Array, t: Array, *rest: Any) -> Any:
        keys = [jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), t), use) for use in uses]
        return function(*rest, key=keys[0] if len(keys) == 1 else tuple(keys))

    return lambda seeds, t, *rest: jax.vmap(one, in_axes=(0, None, *[0] * len(rest)))(seeds, t, *rest)


class Lane:
    """Runs that are one program: on an accelerator all of a method, on a CPU every run by itself.

    On a CPU the bits of a run then do not depend on the others, and lanes use as many cores as there are.
    """

    def __init__(
        self, seeds: Sequence[int], shape: replay.Shape, shares: tuple[int, ...], curious: tuple[bool, ...],
        settings: Settings, pay: Callable[[Any, Array], Array] | None = None,
    ) -> None:  # fmt: skip
        self.seeds, self.shares, self.curious = np.asarray(seeds, np.uint32), shares, curious
        self.programs = programs(settings, shares, curious, pay)
        make = functools.partial(sac.init, obs_dim=shape.obs_dim, action_dim=shape.action_dim, settings=settings.agent)
        generators = [[np.random.default_rng([seed, i, 0]) for i in range(len(curious))] for seed in seeds]
        agents = runs.stack([runs.stack([make(rng) for rng in both]) for both in generators])
        nothing = np.zeros((len(seeds), shape.obs_dim), np.float32)
        self.run = Run(
            agents, Scale(nothing, nothing + 1, nothing[:, 0]), nothing[:, 0], nothing[:, 0].astype(np.int32)
        )
        self.weight = np.zeros(len(seeds), np.float32)  # of the bonus for who is curious
        self.replay = replay.empty(len(seeds), shape)
        self.windows: Any = None
        self.inside = False  # whether the bonus is paid inside the program
        self.frozen: Any = None  # what `pay` pays by, new after every update of the bonus
        self.stats: Stats | None = None

    def act(self, observations: Floats, explores: NDArray[np.bool_], t: int) -> Array:
        """(runs, envs, d) -> (runs, envs, a), not waited for."""
        return self.programs.act(self.seeds, t, self.run, observations, explores)

    def draw(self, t: int) -> Array:
        """Draw windows for all gradient steps of this vector step -> the states to be paid, (runs, states, d)."""
        self.windows = self.programs.draw(self.seeds, t, self.replay)
        states = self.windows.next_states
        return states.reshape(len(self.seeds), -1, states.shape[-1])

    def learn(self, raw: Floats, t: int) -> None:
        """Begin to learn from the windows drawn last, whose states earn (runs, states)."""
        paid = raw.reshape(self.windows.rewards.shape)
        self.run, self.stats = self.programs.learn(self.seeds, t, self.run, self.windows, paid, self.weight)

    def draw_and_learn(self, t: int) -> None:
        """`draw` and `learn` as one program that pays by `frozen`; a bonus that pays nothing needs none."""
        given = (self.run, self.replay, self.frozen, self.weight)
        self.run, self.stats = self.programs.draw_and_learn(self.seeds, t, *given)

    def keep(self, step: replay.Transition) -> None:
        """Remember what happened in one vector step, (runs, envs, …)."""
        self.replay = self.programs.insert(self.replay, step)

    def numbers(self, run: int) -> dict[str, float]:
        """Of the last gradient step: the exploiter's by their names, the explorer's with `explorer_` before them."""
        if self.stats is None:
            return {"bonus_mean": 0.0, "bonus_deviation": 0.0}
        named = self.stats.agents._asdict()
        named["policy_entropy"] = named.pop("entropy")  # `entropy` is PPO's
        bonus = {"bonus_mean": self.stats.bonus, "bonus_deviation": self.run.deviation}
        return {name: float(np.asarray(values)[run]) for name, values in bonus.items()} | {
            prefix + name: float(value)
            for name, values in named.items()
            for prefix, value in zip(("", "explorer_"), np.asarray(values)[run], strict=False)
        }

    def see(self, observations: Floats) -> None:
        """Let the scale follow (runs, …, d) new observations."""
        self.run = self.run._replace(scale=self.programs.seen(self.run.scale, observations))
