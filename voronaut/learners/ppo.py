"""E[min(ρA, clip(ρ, 1 ± ε)A)] − c_v E[(R − V)²] + c_e H: PPO (Schulman et al., 2017), many runs side by side.

Semantics and defaults are Stable-Baselines3's; its implementation details are numbered where they stand. Axis 0 of
every array is the run; a rollout is (runs, time, environments, …). The file reads in the order of a training loop:

    rngs = [np.random.default_rng(seed) for seed in seeds]        one generator per run, nothing else is random
    agent = init(rngs, obs_dim, action_dim, settings)
    noise = draw_noise(rngs, action_dim, settings)                then, for every step t of the rollout:
    actions[:, t] = act(agent.params, observations[:, t], noise[:, t])     clip these for the environment only
    advantages, returns = gae(rewards, values(agent.params, observations), values(agent.params, next_states), …)
    agent, stats = learn(agent, Batch(…), draw_orders(rngs, size, settings), settings)

Where an action is one of so many `choices`, it is their number as a float, (…, 1): the policy's head gives logits, the
noise is Gumbel's, and `log_choices` takes the place of `log_probs`.
Between calls an agent is a tree of NumPy arrays: acting reads it as it is, and so does a checkpoint.
"""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from voronaut.helpers.kinds import check_kinds
from voronaut.learners.networks import Array, Floats, Layer, Rngs, forward, net
from voronaut.learners.runs import for_each_run, stack

BETA1, BETA2 = 0.9, 0.999
LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Settings:
    """What is chosen. The defaults are Stable-Baselines3's, with the paper's 16 environments and rollout of 16384."""

    envs: int = 16
    rollout: int = 16384  # states per run and rollout, all environments together
    minibatch: int = 64
    epochs: int = 10
    learning_rate: float = 3e-4
    discount: float = 0.99  # γ
    gae_lambda: float = 0.95  # λ
    clip: float = 0.2  # ε
    value_coef: float = 0.5
    entropy_coef: float = 0.0
    entropy_falls: bool = False  # multiplied by the share of recent episodes that the task has not paid, run by run
    max_grad_norm: float = 0.5
    adam_eps: float = 1e-5  # 1. Not Adam's usual 1e-8
    max_std: float = math.inf  # of the noise: an entropy bonus widens it without end, actions are clipped all the same
    hidden: tuple[int, ...] = (64, 64)

    def __post_init__(self) -> None:
        check_kinds(self)
        object.__setattr__(self, "hidden", tuple(self.hidden))  # a list, as JSON has it, is no key of what is compiled
        if min(self.envs, self.rollout, self.minibatch, self.epochs) < 1 or self.rollout % self.envs:
            rule = "envs, rollout, minibatch and epochs must be at least 1, and rollout a multiple of envs"
            raise ValueError(f"{rule}; got {self}. The defaults are 16 environments and a rollout of 16384.")
        if not isinstance(self.entropy_falls, bool):
            raise ValueError(f"entropy_falls must be true or false; got {self.entropy_falls!r}.")
        if not self.max_std > 0:
            raise ValueError(f"max_std must be above 0; got {self.max_std}. 1 is where the noise starts.")

    @property
    def steps(self) -> int:
        """Steps of every environment in one rollout."""
        return self.rollout // self.envs


class Params(NamedTuple):
    """2. Policy and value share nothing. 3. The spread of actions does not depend on the state."""

    policy: tuple[Layer, ...]
    value: tuple[Layer, ...]
    log_std: Array  # (runs, actions), or (runs, 0) where the head gives logits of choices


class Agent(NamedTuple):
    """What changes: parameters, and Adam's moments and step count."""

    params: Params
    first: Params
    second: Params
    step: Array  # (runs,) int32


class Batch(NamedTuple):
    """A rollout as learning sees it: (runs, states, …), the actions as they were drawn, before any clipping."""

    observations: Array
    actions: Array
    log_probs: Array
    advantages: Array
    returns: Array


class Stats(NamedTuple):
    """Means over all minibatches of `learn`, (runs,)."""

    policy_loss: Array
    value_loss: Array
    entropy: Array  # nats
    approx_kl: Array  # of the last epoch
    clip_fraction: Array
    grad_norm: Array = 0.0  # before clipping
    explained_variance: Array = 0.0  # of the returns, by the values before learning; NaN where the returns are constant


def init(rngs: Rngs, obs_dim: int, action_dim: int, settings: Settings, choices: int = 0) -> Agent:
    """4. Orthogonal weights: gain √2 in hidden layers, 0.01 in the policy's head, 1 in the value's; biases 0.

    One agent per generator, stacked. Each is the same whoever is beside it.
    """

    def one(rng: np.random.Generator) -> Agent:
        policy = net(rng, (obs_dim, *settings.hidden, choices or action_dim), 0.01)
        value = net(rng, (obs_dim, *settings.hidden, 1), 1.0)
        params = Params(policy, value, np.zeros(0 if choices else action_dim, np.float32))
        zeros = jax.tree.map(np.zeros_like, params)
        return Agent(params, zeros, zeros, np.zeros((), np.int32))

    return cast(Agent, stack([one(rng) for rng in rngs]))


def draw_noise(rngs: Rngs, action_dim: int, settings: Settings, choices: int = 0) -> Floats:
    """ε ~ N(0, I) for one rollout, (runs, steps, envs, actions), or Gumbel's for choices, from each run's generator."""
    if choices:
        lead = (settings.steps, settings.envs, choices)
        return np.stack([rng.gumbel(size=lead).astype(np.float32) for rng in rngs])
    shape = (settings.steps, settings.envs, action_dim)
    return np.stack([rng.standard_normal(shape, dtype=np.float32) for rng in rngs])


def act(params: Params, observations: Floats, noise: Floats | float) -> Floats:
    """a = μ(s) + σ ε for (runs, n, d) observations; noise 0.0 gives the mean action.

    Of choices argmax_i z_i(s) + ε_i, which is i with probability softmax(z)_i; noise 0.0 gives the likeliest.

    NumPy: 25 µs for 16 environments, 213 for 320; a jitted program takes 100 and 187, most of it for the call itself.
    """
    *hidden, head, x = *params.policy, observations
    for layer in hidden:
        x = np.tanh(x @ layer.weight + layer.bias[:, None])
    x = x @ head.weight + head.bias[:, None]
    if _chooses(params):
        return np.asarray(np.argmax(x + noise, axis=-1, keepdims=True), np.float32)
    return np.asarray(x + np.exp(params.log_std)[:, None] * noise)


def _chooses(params: Params) -> bool:
    return bool(params.log_std.shape[-1] == 0)


def log_probs(params: Params, noise: Floats) -> Floats:
    """log N(a; μ, σ) = −½ ‖ε‖² − Σ log σ − ½ dim log 2π for (runs, …, actions) noise: once per rollout."""
    log_std = params.log_std.reshape(len(noise), *[1] * (noise.ndim - 2), -1)
    return np.asarray(-(0.5 * noise**2 + log_std + 0.5 * LOG_2PI).sum(axis=-1, dtype=noise.dtype))


def log_choices(params: Params, observations: Floats, actions: Floats) -> Floats:
    """log softmax(z(s))_a for (runs, …, d) observations and (runs, …, 1) choices: once per rollout."""
    return np.asarray(for_each_run(_log_choices, None, params, observations, actions))


def values(params: Params, states: Floats) -> Floats:
    """V(s) for (runs, …, d) states: once per rollout, parameters do not change within it."""
    return np.asarray(for_each_run(_values, None, params, states))


def gae(
    rewards: Floats, values: Floats, next_values: Floats, terminated: Array, truncated: Array, settings: Settings
) -> tuple[Floats, Floats]:
    """A_t = δ_t + γλ A_{t+1} within an episode, δ_t = r_t + γ V(s_{t+1}) − V(s_t); returns (A, A + V), (runs, t, n).

    5. `next_values` are of the states that the actions led to, the true final state where an episode ended. So a
    truncated episode goes on in V, which is SB3's r_t + γ V(final), and a terminated one is worth nothing more.
    """
    delta = rewards + settings.discount * next_values * ~terminated - values
    carry = (settings.discount * settings.gae_lambda * ~(terminated | truncated)).astype(delta.dtype)
    advantages = np.empty_like(delta)
    running = np.zeros_like(delta[:, 0])
    for t in reversed(range(delta.shape[1])):
        running = advantages[:, t] = delta[:, t] + carry[:, t] * running
    return advantages, advantages + values


def draw_orders(rngs: Rngs, size: int, settings: Settings) -> NDArray[np.int32]:
    """A permutation of the batch for every run and epoch, (runs, epochs, size).

    Drawn here and not in the program: XLA's sorts took a fifth of the learning time on a CPU.
    """
    return np.stack([[rng.permutation(size).astype(np.int32) for _ in range(settings.epochs)] for rng in rngs])


def learn(
    agent: Agent, batch: Batch, orders: NDArray[np.int32], settings: Settings, unpaid: Floats | None = None
) -> tuple[Agent, Stats]:
    """All epochs over one rollout; what happens to a run does not depend on the others (see `for_each_run`).

    `unpaid` (runs,) multiplies the entropy bonus, where it falls.
    """
    runs, size = np.shape(batch.advantages)
    if orders.shape != (runs, settings.epochs, size) or len(agent.step) != runs:
        raise ValueError(
            f"agent, batch and orders must agree; got {len(agent.step)} agents, a batch of (runs, states) = "
            f"{(runs, size)} and orders {orders.shape}. Use draw_orders(rngs, {size}, settings) with {runs} generators."
        )
    given = (agent, batch, orders) if unpaid is None else (agent, batch, orders, unpaid)
    return cast(tuple[Agent, Stats], for_each_run(learn_run, settings, *given))


def _values(_: None, params: Params, states: Array) -> Array:
    # From here on one run, without the run axis.
    return forward(params.value, states, jnp.tanh)[..., 0]


def _log_choices(_: None, params: Params, observations: Array, actions: Array) -> Array:
    return _categorical(params, observations, actions)[0]


def _categorical(params: Params, observations: Array, actions: Array) -> tuple[Array, Array]:
    """log softmax(z(s))_a, and the mean entropy of the choices."""
    logs = jax.nn.log_softmax(forward(params.policy, observations, jnp.tanh))
    taken = jnp.take_along_axis(logs, actions.astype(jnp.int32), axis=-1)[..., 0]
    return taken, -(jnp.exp(logs) * logs).sum(axis=-1).mean()


def _gaussian(params: Params, observations: Array, actions: Array) -> tuple[Array, Array]:
    """log N(a; μ(s), σ), and its entropy."""
    z = (actions - forward(params.policy, observations, jnp.tanh)) * jnp.exp(-params.log_std)
    log_probs = -(0.5 * z**2 + params.log_std + 0.5 * LOG_2PI).sum(axis=1)
    return log_probs, (params.log_std + 0.5 + 0.5 * LOG_2PI).sum()


def minibatch_loss(params: Params, batch: Batch, settings: Settings, unpaid: Array = 1.0) -> tuple[Array, Stats]:
    """−E[min(ρA, clip(ρ, 1 ± ε)A)] + c_v E[(R − V)²] − c_e H over one minibatch; c_e is multiplied by `unpaid`."""
    density = _categorical if _chooses(params) else _gaussian
    log_probs, entropy = density(params, batch.observations, batch.actions)
    log_ratio = log_probs - batch.log_probs
    ratio = jnp.exp(log_ratio)
    advantages = batch.advantages
    if len(advantages) > 1:  # 6. Normalised per minibatch, with the unbiased spread; a lone one is left alone
        advantages = (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)
    clipped = jnp.clip(ratio, 1 - settings.clip, 1 + settings.clip)
    policy_loss = -jnp.minimum(advantages * ratio, advantages * clipped).mean()
    value_loss = ((batch.returns - _values(None, params, batch.observations)) ** 2).mean()  # 7. Not clipped, no ½
    approx_kl = (ratio - 1 - log_ratio).mean()  # http://joschu.net/blog/kl-approx.html; reported, never acted upon
    clip_fraction = (jnp.abs(ratio - 1) > settings.clip).mean(dtype=ratio.dtype)
    loss = policy_loss + settings.value_coef * value_loss - settings.entropy_coef * unpaid * entropy
    return loss, Stats(policy_loss, value_loss, entropy, approx_kl, clip_fraction)


def _adam(agent: Agent, gradient: Params, settings: Settings) -> Agent:
    """θ ← θ − lr m̂ / (√v̂ + eps), m and v decayed means of g and g² (Kingma & Ba, 2015)."""
    step = agent.step + 1
    time = step.astype(gradient.log_std.dtype)
    rate = settings.learning_rate / -jnp.expm1(time * math.log(BETA1))  # expm1: 1 − βᵗ would round off in float32
    root = jnp.sqrt(-jnp.expm1(time * math.log(BETA2)))
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, agent.first, gradient)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g**2, agent.second, gradient)
    move = jax.tree.map(lambda m, v: rate * m / (jnp.sqrt(v) / root + settings.adam_eps), first, second)
    params = jax.tree.map(jnp.subtract, agent.params, move)
    if math.isfinite(settings.max_std):
        params = params._replace(log_std=jnp.minimum(params.log_std, math.log(settings.max_std)))
    return Agent(params, first, second, step)


def _minibatch(settings: Settings, unpaid: Array, agent: Agent, batch: Batch) -> tuple[Agent, Stats]:
    gradient, stats = jax.grad(minibatch_loss, has_aux=True)(agent.params, batch, settings, unpaid)
    norm = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient)))
    shrink = jnp.minimum(1.0, settings.max_grad_norm / (norm + 1e-6))  # 8. One norm over all parameters
    return _adam(agent, jax.tree.map(lambda g: g * shrink, gradient), settings), stats._replace(grad_norm=norm)


def _epoch(settings: Settings, unpaid: Array, batch: Batch, agent: Agent, order: Array) -> tuple[Agent, Stats]:
    """One pass in the given order. The batch is permuted once, so that minibatches are contiguous slices."""
    step = functools.partial(_minibatch, settings, unpaid)
    size, minibatch = len(order), settings.minibatch
    whole = size - size % minibatch
    shuffled = jax.tree.map(lambda x: x[order], batch)
    many = jax.tree.map(lambda x: x[:whole].reshape(whole // minibatch, minibatch, *x.shape[1:]), shuffled)
    agent, stats = jax.lax.scan(step, agent, many)
    if whole < size:  # 9. The last minibatch may be shorter and then weighs as much as the others
        agent, last = step(agent, jax.tree.map(lambda x: x[whole:], shuffled))
        stats = jax.tree.map(jnp.append, stats, last)
    return agent, stats


def learn_run(
    settings: Settings, agent: Agent, batch: Batch, orders: Array, unpaid: Array = 1.0
) -> tuple[Agent, Stats]:
    agent, stats = jax.lax.scan(functools.partial(_epoch, settings, unpaid, batch), agent, orders)
    spread = batch.returns.var()
    explained = jnp.where(spread > 0, 1 - batch.advantages.var() / spread, jnp.nan)  # advantages = returns − values
    means = jax.tree.map(jnp.mean, stats)
    return agent, means._replace(approx_kl=stats.approx_kl[-1].mean(), explained_variance=explained)
