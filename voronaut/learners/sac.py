"""y = r + γⁿ (Q̄(s′, a′) − τ log π(a′|s′)): soft actor-critic (Haarnoja et al., 2018) as pure functions.

Semantics are Stable-Baselines3's (SB3); what differs is numbered where it stands, and 1 to 4 and 8 can be chosen back.
Nothing here knows of runs, replay or bonuses: `jax.vmap` over agents, batches and keys puts many side by side, and
observations are standardised, if at all, before they come here. The file reads in the order of a training loop:

    agent = init(rng, obs_dim, action_dim, settings)
    actions = sample(agent.actor, observations, key, settings).actions    in [−1, 1]; scale them for the environment
    agent, stats = learn(agent, Batch(…), key, settings)                  one gradient step of everything

Rewards and discounts of a batch are those of the whole n-step window: discounts are γⁿ, or 0 where the episode
terminated (a truncated one goes on from its true final state).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from voronaut.helpers.kinds import check_kinds
from voronaut.learners.networks import Array, Layer, net, side_by_side
from voronaut.learners.runs import stack

LOG_2PI = math.log(2 * math.pi)
Net = tuple[Layer, ...]


@dataclass(frozen=True)
class Settings:
    """What is chosen about the agent."""

    width: int = 256
    depth: int = 2  # hidden layers
    layer_norm: bool = True  # 1. relu(LN(x W + b)): critics do not run away where there are no data; not in SB3
    learning_rate: float = 3e-4
    polyak: float = 0.005
    log_std: tuple[float, float] = (-5.0, 2.0)  # 2. bounds; SB3's lower one is −20, with which a policy can freeze
    temperature: float = 0.1  # 3. τ at the start; SB3 has 1
    target_entropy: float = -0.5  # 4. nats per action dimension; SB3 has −1
    critics: str = "mean"  # 8. of both counts; SB3 takes the lower ("min"). docs/trials.md has what each did
    bfloat16: bool = False  # 9. hidden layers multiply in bfloat16; weights, norms and heads stay in float32

    def __post_init__(self) -> None:
        switches = {"layer_norm": self.layer_norm, "bfloat16": self.bfloat16}
        if any(not isinstance(each, bool) for each in switches.values()):
            raise ValueError(f"layer_norm and bfloat16 must be true or false; got {switches}.")
        check_kinds(self)
        sizes = min(self.width, self.depth) >= 1
        rates = self.learning_rate > 0 and 0 < self.polyak <= 1
        if self.critics not in ("mean", "min"):
            raise ValueError(f"critics must be mean (of the two) or min (the lower); got {self.critics!r}.")
        bounds = len(self.log_std) == 2 and self.log_std[0] < self.log_std[1]
        if not (sizes and rates and self.temperature > 0 and bounds):
            rule = "width and depth must be at least 1, learning_rate and temperature positive, polyak in (0, 1]"
            raise ValueError(f"{rule}, and log_std (lower, upper); got {self}. Settings() has values that work.")


class Agent(NamedTuple):
    """What changes. The two critics are stacked: axis 0 of every leaf of `critic` and `target`."""

    actor: Net
    critic: Net
    target: Net
    log_temperature: Array
    optimizer: tuple[Any, Any, Any]  # of actor, critic, log_temperature


class Batch(NamedTuple):
    """(n, …) windows: where they start, what was done there, what came of it."""

    observations: Array
    actions: Array  # in [−1, 1]
    rewards: Array  # Σ γⁱ rᵢ
    next_observations: Array
    discounts: Array  # γⁿ, 0 after a termination


class Drawn(NamedTuple):
    """Actions in [−1, 1] and their log densities."""

    actions: Array
    log_probs: Array


class Stats(NamedTuple):
    """Of one gradient step."""

    critic_loss: Array
    value: Array  # mean Q of the batch
    entropy: Array  # nats
    temperature: Array


def init(rng: np.random.Generator, obs_dim: int, action_dim: int, settings: Settings) -> Agent:
    """A new agent. 5. Weights are orthogonal (SB3: torch's own), heads of gain 0.01: first means and values near 0."""
    hidden = (settings.width,) * settings.depth
    actor = net(rng, (obs_dim, *hidden, 2 * action_dim), 0.01)
    critics = [net(rng, (obs_dim + action_dim, *hidden, 1), 0.01) for _ in range(2)]
    critic = stack(critics)
    log_temperature = np.log(np.float32(settings.temperature))
    adam = optax.adam(settings.learning_rate)
    states = (adam.init(actor), adam.init(critic), adam.init(log_temperature))
    return Agent(actor, critic, critic, log_temperature, states)


def forward(layers: Net, x: Array, settings: Settings) -> Array:
    """x ← relu(LN(x W + b)) layer by layer, (…, in) -> (…, out); the last layer is linear."""
    *hidden, head = layers
    for layer in hidden:
        x = jax.nn.relu(_hidden(layer, x, settings))
    # 7. rounded as an accelerator does by default (TF32); SB3 has full float32
    return x.astype(head.weight.dtype) @ head.weight + head.bias


def _hidden(layer: Layer, x: Array, settings: Settings) -> Array:
    """LN(x W + b)."""
    kind = jnp.bfloat16 if settings.bfloat16 else layer.weight.dtype
    y = x.astype(kind) @ layer.weight.astype(kind) + layer.bias.astype(kind)
    return normalised(y).astype(kind) if settings.layer_norm else y


def normalised(x: Array) -> Array:
    """(x − mean) / deviation over the last axis, without learned parameters, in float32 at least."""
    x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def sample(actor: Net, observations: Array, key: Array, settings: Settings) -> Drawn:
    """a = tanh(μ(s) + σ(s) ε), log π(a|s) = log N(u; μ, σ) − Σ log(1 − tanh² u)."""
    mean, log_std = moments(actor, observations, settings)
    noise = jax.random.normal(key, mean.shape, mean.dtype)
    u = mean + jnp.exp(log_std) * noise
    gaussian = -(0.5 * noise**2 + log_std + 0.5 * LOG_2PI).sum(axis=-1)
    # 6. log(1 − tanh² u), exact where tanh rounds to 1; SB3 has log(1 − tanh² u + 1e-6).
    squash = 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))
    return Drawn(jnp.tanh(u), gaussian - squash.sum(axis=-1))


def moments(actor: Net, observations: Array, settings: Settings) -> tuple[Array, Array]:
    """μ(s) and log σ(s) before the tanh; the mean action is tanh μ."""
    mean, log_std = jnp.split(forward(actor, observations, settings), 2, axis=-1)
    return mean, jnp.clip(log_std, *settings.log_std)


def values(critic: Net, observations: Array, actions: Array, settings: Settings) -> Array:
    """Q_j(s, a) of both critics, (2, n)."""
    x = jnp.concatenate([observations, actions], axis=-1)
    return side_by_side(lambda one, x: forward(one, x, settings)[..., 0], critic, x)


def both(q: Array, settings: Settings) -> Array:
    """What two critics (2, n) say together, (n,)."""
    return q.mean(axis=0) if settings.critics == "mean" else q.min(axis=0)


def learn(agent: Agent, batch: Batch, key: Array, settings: Settings) -> tuple[Agent, Stats]:
    """One gradient step of critics, actor and temperature, all with τ as it was before; the target follows."""
    critic_key, actor_key = jax.random.split(key)
    temperature = jnp.exp(agent.log_temperature)
    critic, critic_state, critic_loss, value = _critic_step(agent, batch, temperature, critic_key, settings)
    actor, actor_state, entropy = _actor_step(agent, critic, batch, temperature, actor_key, settings)
    # ∇ log τ · (H − H̄): the excess of entropy over its target lowers the temperature.
    excess = entropy - settings.target_entropy * batch.actions.shape[-1]
    log_temperature, temperature_state = _adam(agent.log_temperature, excess, agent.optimizer[2], settings)
    target = jax.tree.map(lambda old, new: old + settings.polyak * (new - old), agent.target, critic)
    after = Agent(actor, critic, target, log_temperature, (actor_state, critic_state, temperature_state))
    return after, Stats(critic_loss, value, entropy, temperature)


def targets(agent: Agent, batch: Batch, temperature: Array, key: Array, settings: Settings) -> Array:
    """y = r + γⁿ (Q̄(s′, a′) − τ log π(a′|s′)), Q̄ the mean or the minimum of both targets."""
    drawn = sample(agent.actor, batch.next_observations, key, settings)
    q = both(values(agent.target, batch.next_observations, drawn.actions, settings), settings)
    return jax.lax.stop_gradient(batch.rewards + batch.discounts * (q - temperature * drawn.log_probs))


def _critic_step(
    agent: Agent, batch: Batch, temperature: Array, key: Array, settings: Settings
) -> tuple[Net, Any, Array, Array]:
    """∇ ½ Σ_j E[(Q_j(s, a) − y)²]."""
    y = targets(agent, batch, temperature, key, settings)

    def loss(critic: Net) -> tuple[Array, Array]:
        q = values(critic, batch.observations, batch.actions, settings)
        return 0.5 * ((q - y) ** 2).mean(axis=1).sum(), q.mean()

    (critic_loss, value), gradient = jax.value_and_grad(loss, has_aux=True)(agent.critic)
    return *_adam(agent.critic, gradient, agent.optimizer[1], settings), critic_loss, value


def _actor_step(
    agent: Agent, critic: Net, batch: Batch, temperature: Array, key: Array, settings: Settings
) -> tuple[Net, Any, Array]:
    """∇ E[τ log π(a|s) − Q(s, a)], a ∼ π, with the critics after their step."""

    def loss(actor: Net) -> tuple[Array, Array]:
        drawn = sample(actor, batch.observations, key, settings)
        q = both(values(critic, batch.observations, drawn.actions, settings), settings)
        return (temperature * drawn.log_probs - q).mean(), -drawn.log_probs.mean()

    gradient, entropy = jax.grad(loss, has_aux=True)(agent.actor)
    return *_adam(agent.actor, gradient, agent.optimizer[0], settings), entropy


def _adam(params: Any, gradient: Any, state: Any, settings: Settings) -> tuple[Any, Any]:
    moves, state = optax.adam(settings.learning_rate).update(gradient, state)
    return optax.apply_updates(params, moves), state
