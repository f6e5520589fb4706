"""SAC ≡ Stable-Baselines3's, in float64; targets and densities by hand; agents do not know of each other."""

import dataclasses
import functools
import itertools
import operator

import jax
import numpy as np
import optax
import pytest
from scipy import integrate, stats

from voronaut.learners import networks, sac

OBS, ACTIONS = 5, 3
SMALL = sac.Settings(width=16)
SIZE = 32  # of nearly all batches: compiling takes most of the time here
jitted = jax.jit(sac.learn, static_argnames="settings")
pytestmark = pytest.mark.usefixtures("quick_compilation")


def learn(agent, data, seed=0):
    return jitted(agent, data, jax.random.key(seed), SMALL)


def batch(seed=0, size=SIZE, actions=ACTIONS):
    """Windows of one to three steps, γ = 0.9; every fourth ends in a termination."""
    rng = np.random.default_rng(seed)
    observations, following = rng.normal(size=(2, size, OBS))
    done = np.resize([False, False, False, True], size)
    discounts = np.where(done, 0.0, 0.9 ** rng.integers(1, 4, size))
    return sac.Batch(observations, rng.uniform(-1, 1, (size, actions)), rng.normal(size=size), following, discounts)


def agent_of(seed, settings=SMALL, actions=ACTIONS):
    return sac.init(np.random.default_rng(seed), OBS, actions, settings)


def constant_actor(mean, log_std):
    """μ and log σ of one action, the same in every state."""
    return (networks.Layer(np.zeros((OBS, 2)), np.array([mean, log_std])),)


def stacked(trees):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def distance(a, b):
    return max(np.abs(x - y).max() for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


# ---- degenerate cases ------------------------------------------------------------------------------------------------

NONSENSE = [("critics", "max"), ("polyak", 1.1), ("temperature", np.nan), ("log_std", (2.0, -5.0))]
NONSENSE += [("log_std", (1.0, 1.0))]
NONSENSE += [(name, 0) for name in ("width", "depth", "learning_rate", "polyak", "temperature")]


@pytest.mark.parametrize(("name", "value"), NONSENSE)
def test_settings_refuse_nonsense(name, value):
    with pytest.raises(ValueError, match=f"{name}.*got"):
        sac.Settings(**{name: value})


def test_a_target_may_follow_at_once():
    """polyak = 1 is the largest that makes sense: the target is the critic."""
    settings = sac.Settings(width=8, depth=1, polyak=1.0)
    new, _ = sac.learn(agent_of(0, settings), batch(), jax.random.key(0), settings)
    jax.tree.map(np.testing.assert_array_equal, new.target, new.critic)


@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (2, 1, 3)])
def test_observations_of_any_shape_have_a_density_and_values_each(shape):
    """Of an action, not of a step or an environment."""
    agent, observations = agent_of(0), batch(size=8).observations[0] * np.ones((*shape, 1))
    drawn = sac.sample(agent.actor, observations, jax.random.key(0), SMALL)
    flat = (observations.reshape(-1, OBS), drawn.actions.reshape(-1, ACTIONS))
    q = sac.values(agent.critic, observations, drawn.actions, SMALL)
    np.testing.assert_allclose(q, sac.values(agent.critic, *flat, SMALL).reshape(2, *shape), rtol=1e-5)
    assert drawn.actions.shape == (*shape, ACTIONS) and drawn.log_probs.shape == shape
    mean, log_std = sac.moments(agent.actor, batch(size=8).observations[0], SMALL)
    u = np.arctanh(np.asarray(drawn.actions, np.float64))
    wanted = stats.norm.logpdf(u, mean, np.exp(log_std)) - np.log1p(-(np.tanh(u) ** 2))
    np.testing.assert_allclose(drawn.log_probs, wanted.sum(axis=-1), rtol=1e-2)


def test_states_and_actions_at_the_edge_are_survived():
    data = batch()._replace(observations=np.zeros((SIZE, OBS)), actions=np.ones((SIZE, ACTIONS)))
    new, about = learn(agent_of(0), data)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((new, about)))


def test_layer_norm_has_mean_0_and_variance_1_and_survives_a_constant():
    y = np.asarray(sac.normalised(np.random.default_rng(0).normal(3, 7, (10, 64))))
    np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-5)
    np.testing.assert_allclose(y.var(axis=-1), 1, rtol=1e-5)
    assert not np.any(sac.normalised(np.full(4, 3.0)))
    assert np.isfinite(jax.jacobian(sac.normalised)(np.full(4, 3.0))).all()


def test_init_is_that_of_the_generator_and_first_actions_and_values_are_near_0():
    agent, data = agent_of(0), batch()
    jax.tree.map(np.testing.assert_array_equal, agent, agent_of(0))
    assert distance(agent.actor, agent_of(1).actor) > 0.1
    mean, log_std = sac.moments(agent.actor, data.observations, SMALL)
    q = sac.values(agent.critic, data.observations, data.actions, SMALL)
    assert max(np.abs(x).max() for x in (mean, log_std, q)) < 0.1
    assert q.shape == (2, SIZE) and np.abs(q[0] - q[1]).max() > 1e-3
    assert np.exp(agent.log_temperature) == pytest.approx(SMALL.temperature)


# ---- equal to Stable-Baselines3 --------------------------------------------------------------------------------------


@pytest.fixture
def sb3_sac(monkeypatch):
    """A function: SB3's SAC in float64 with the choices of `settings`, which learns from `batches` and `noise`."""
    gym, torch, sb3 = map(pytest.importorskip, ("gymnasium", "torch", "stable_baselines3"))
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    class Still(gym.Env):
        observation_space = gym.spaces.Box(-np.inf, np.inf, (OBS,), np.float32)
        action_space = gym.spaces.Box(-1, 1, (ACTIONS,), np.float32)

    def sampled(data):
        dones = data.discounts[:, None] == 0
        discounts = np.where(dones, 0.9, data.discounts[:, None])  # SB3 multiplies these with 1 − dones itself
        columns = (data.observations, data.actions, data.next_observations, dones, data.rewards[:, None], discounts)
        return ReplayBufferSamples(*(torch.tensor(x, dtype=torch.float64) for x in columns))

    def make(settings, batches, noise):
        torch.set_default_dtype(torch.float64)
        options = {"tau": settings.polyak, "policy_kwargs": {"net_arch": [settings.width] * settings.depth}}
        model = sb3.SAC("MlpPolicy", Still(), settings.learning_rate, 1, device="cpu", seed=1, **options)
        model.set_logger(Logger(None, []))
        model.actor.action_dist.epsilon = 0.0  # 6. in sac.py
        for module in (model.actor, model.critic, model.critic_target):
            module.extract_features = lambda obs, *_: obs  # SB3 would cast observations to float32 here
        rows, draws = map(sampled, batches), map(torch.tensor, noise)
        model.replay_buffer.sample = lambda *_, **__: next(rows)
        monkeypatch.setattr("torch.distributions.normal._standard_normal", lambda *_, **__: next(draws))
        for name, bound in zip(("MIN", "MAX"), settings.log_std, strict=True):
            monkeypatch.setattr(f"stable_baselines3.sac.policies.LOG_STD_{name}", bound)
        return model

    before = torch.get_default_dtype()
    yield make
    torch.set_default_dtype(before)


def read(model):
    """Actor, critic, target and log temperature of SB3's model as ours."""

    def layer(*modules):
        weight, bias = ([getattr(m, name).detach().numpy() for m in modules] for name in ("weight", "bias"))
        return networks.Layer(np.concatenate(weight).T.copy(), np.concatenate(bias))

    def critics(critic):
        return stacked([tuple(map(layer, network[::2])) for network in critic.q_networks])

    actor = (*map(layer, model.actor.latent_pi[::2]), layer(model.actor.mu, model.actor.log_std))
    return actor, critics(model.critic), critics(model.critic_target), model.log_ent_coef.detach().numpy()[0].copy()


@pytest.mark.parametrize("bounds", [(-20.0, 2.0), (-0.1, 0.1)], ids=["σ of SB3", "σ often at its bounds"])
def test_five_steps_equal_sb3(sb3_sac, bounds):
    choices = {"layer_norm": False, "log_std": bounds, "temperature": 1.0, "target_entropy": -1.0, "critics": "min"}
    settings = sac.Settings(width=16, learning_rate=3e-3, polyak=0.05, **choices)
    batches = list(map(batch, range(5)))
    close = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(7), 5)
        halves = itertools.chain(*(jax.random.split(key)[::-1] for key in keys))  # SB3 draws for next states last
        model = sb3_sac(settings, batches, [np.array(jax.random.normal(key, (SIZE, ACTIONS))) for key in halves])
        actor, critic, target, log_temperature = read(model)
        states = map(optax.adam(settings.learning_rate).init, (actor, critic, log_temperature))
        agent = first = sac.Agent(actor, critic, target, log_temperature, tuple(states))
        for data, key in zip(batches, keys, strict=True):
            agent, about = jax.device_get(jitted(agent, data, key, settings))
            model.train(1)
            jax.tree.map(close, tuple(agent[:4]), read(model))
            logged = [model.logger.name_to_value["train/" + name] for name in ("critic_loss", "ent_coef")]
            close([about.critic_loss, about.temperature], logged)
    assert all(distance(a, b) > 1e-3 for a, b in zip(agent[:4], first[:4], strict=True))


# ---- without it ------------------------------------------------------------------------------------------------------


def by_hand(layers, x):
    for weight, bias in layers[:-1]:
        x = x @ weight + bias
        x = np.maximum((x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5), 0)
    return x @ layers[-1].weight + layers[-1].bias


@pytest.mark.parametrize(("critics", "together"), [("mean", np.mean), ("min", np.min)])
def test_targets_by_hand(critics, together):
    """The first window ends in a termination, the second goes on after three steps."""
    settings = dataclasses.replace(SMALL, critics=critics)
    rng, key = np.random.default_rng(0), jax.random.key(3)
    data = batch(size=2)._replace(rewards=np.array([2.0, 3.0]), discounts=np.array([0.0, 0.97**3]))
    actor, _, target = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), agent_of(0)[:3])
    with jax.enable_x64(True):
        ours = np.asarray(sac.targets(agent_of(0)._replace(actor=actor, target=target), data, 0.2, key, settings))
        noise = np.asarray(jax.random.normal(key, (2, ACTIONS)))
    mean, log_std = np.split(by_hand(actor, data.next_observations), 2, axis=1)
    std = np.exp(np.clip(log_std, -5, 2))
    u = mean + std * noise
    log_probs = (stats.norm.logpdf(u, mean, std) + 2 * np.log(np.cosh(u))).sum(axis=1)
    x = np.concatenate([data.next_observations, np.tanh(u)], axis=1)
    first, second = (by_hand(jax.tree.map(operator.itemgetter(j), target), x)[:, 0] for j in (0, 1))
    bootstrap = together([first, second], axis=0) - 0.2 * log_probs
    np.testing.assert_allclose(ours, [2.0, 3.0 + 0.97**3 * bootstrap[1]], rtol=1e-9)
    assert (abs(bootstrap) > 0.1).all() and (abs(first - second) > 0.1).all()


def test_the_density_of_actions_integrates_to_their_distribution():
    with jax.enable_x64(True):
        states, key = np.zeros((20_000, OBS)), jax.random.key(0)
        actions, log_probs = jax.device_get(sac.sample(constant_actor(0.3, -0.5), states, key, SMALL))
    order = np.argsort(actions[:, 0])
    actions, density = actions[order, 0], np.exp(log_probs)[order]
    below = stats.norm.cdf(np.arctanh(actions), 0.3, np.exp(-0.5))
    np.testing.assert_allclose(integrate.cumulative_trapezoid(density, actions, initial=0), below, atol=1e-4)


def test_the_density_is_exact_where_float32_actions_are_1():
    drawn = sac.sample(constant_actor(20.0, -20.0), np.zeros((8, OBS)), jax.random.key(0), SMALL)
    noise = np.array(jax.random.normal(jax.random.key(0), (8, 1)))[:, 0]
    exact = stats.norm.logpdf(noise) + 5 + 2 * (20 + np.exp(-5) * noise - np.log(2))  # log σ is held at −5
    assert (drawn.actions == 1).all()
    np.testing.assert_allclose(drawn.log_probs, exact, rtol=1e-6)


@pytest.mark.parametrize(("log_std", "sign"), [(0.0, -1), (-3.0, 1)], ids=["too random", "not random enough"])
def test_the_temperature_moves_toward_the_target_entropy(log_std, sign):
    agent = agent_of(0)
    agent.actor[-1].bias[ACTIONS:] = log_std
    new, about = learn(agent, batch())
    assert sign * (SMALL.target_entropy * ACTIONS - about.entropy) > 1
    assert new.log_temperature - agent.log_temperature == pytest.approx(sign * SMALL.learning_rate, rel=1e-2)


def test_vmapped_agents_equal_single_ones():
    agents, batches = [agent_of(seed) for seed in range(3)], [batch(seed) for seed in range(3)]
    keys = jax.vmap(jax.random.key)(np.arange(3))
    side_by_side = jax.jit(jax.vmap(functools.partial(sac.learn, settings=SMALL)))
    together = side_by_side(stacked(agents), stacked(batches), keys)
    for i, (agent, data) in enumerate(zip(agents, batches, strict=True)):
        alone = learn(agent, data, seed=i)
        assert distance(jax.tree.map(operator.itemgetter(i), together), alone) < 1e-5


def test_bfloat16_rounds_hidden_layers_and_nothing_else():
    rounded = dataclasses.replace(SMALL, bfloat16=True)
    (new, about), (other, _) = (jitted(agent_of(0), batch(), jax.random.key(0), each) for each in (rounded, SMALL))
    assert all(
        leaf.dtype in (np.float32, np.int32) and np.isfinite(leaf).all() for leaf in jax.tree.leaves((new, about))
    )
    x = batch().observations.astype(np.float32)
    exact, near = (np.asarray(sac.forward(other.actor, x, each)) for each in (SMALL, rounded))
    assert 0 < abs(exact - near).max() < 0.02 * abs(exact).max()


def test_learning_finds_the_rewarded_action_and_keeps_the_target_entropy():
    """One-step episodes that pay −(a − 0.5)²: the mean action goes to 0.5, the entropy to its target."""
    settings = sac.Settings(width=32, learning_rate=3e-3)
    data = batch(size=256, actions=1)._replace(discounts=np.zeros(256))
    data = data._replace(rewards=-((data.actions[:, 0] - 0.5) ** 2))
    steps = jax.jit(functools.partial(jax.lax.scan, lambda agent, key: sac.learn(agent, data, key, settings)))
    agent, about = steps(agent_of(0, settings, actions=1), jax.random.split(jax.random.key(0), 500))
    mean, _ = sac.moments(agent.actor, data.observations, settings)
    assert np.abs(np.tanh(mean) - 0.5).mean() < 0.1
    assert about.entropy[-50:].mean() == pytest.approx(settings.target_entropy, abs=0.2)
    assert about.critic_loss[-1] < 0.01 < about.critic_loss[0]
    assert about.value[-1] == pytest.approx(data.rewards.mean(), abs=0.02)
