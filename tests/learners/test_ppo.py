"""PPO ≡ Stable-Baselines3's, in float64; runs do not know of each other; degenerate cases first."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from voronaut.learners import networks, ppo, runs

gym = pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3.common.buffers import RolloutBuffer  # noqa: E402
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.logger import Logger  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

OBS, ACTIONS, CHOICES = 5, 3, 4
SMALL = ppo.Settings(envs=2, rollout=64, minibatch=16, epochs=2)
pytestmark = pytest.mark.usefixtures("quick_compilation")


def generators(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def choosing(runs, size, seed=0):
    """The same with choices for actions."""
    data, rng = batch(runs, size, seed), np.random.default_rng(seed)
    chosen = rng.integers(CHOICES, size=(runs, size, 1)).astype(np.float32)
    log_probs = 0.2 * data.returns - np.log(CHOICES).astype(np.float32)
    return data._replace(actions=chosen, log_probs=log_probs)


def batch(runs, size, seed=0):
    """A batch in which ratios, advantages and returns are of the order of one. Actions are exact in float32."""
    rng = np.random.default_rng(seed)
    shapes = [(OBS,), (ACTIONS,), (), (), ()]
    leaves = [rng.normal(size=(runs, size, *shape)).astype(np.float32) for shape in shapes]
    leaves[2] = 0.2 * leaves[2] - 0.5 * (leaves[1] ** 2).sum(axis=-1) - 0.5 * ACTIONS * ppo.LOG_2PI
    return ppo.Batch(*leaves)


def widened(tree):
    return jax.tree.map(lambda leaf: leaf.astype(np.float64) if leaf.dtype == np.float32 else leaf, tree)


def picked(tree, run):
    return jax.tree.map(lambda leaf: leaf[run : run + 1], tree)


def distance(a, b):
    return max(np.abs(x - y).max(initial=0) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


# ---- Stable-Baselines3 -----------------------------------------------------------------------------------------------


class Scripted(gym.Env):
    """Observations from a generator; episodes end by termination or truncation as the script says. Keeps a diary."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (OBS,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (ACTIONS,), np.float32)

    def __init__(self, script="", seed=0):
        self.script, self.rng, self.diary = script, np.random.default_rng(seed), []

    def observe(self):
        self.last = self.rng.normal(size=OBS).astype(np.float32)
        return self.last

    def reset(self, *, seed=None, options=None):
        return self.observe(), {}

    def step(self, action):
        event = self.script[len(self.diary) % len(self.script)]
        before, reward = self.last, float(self.rng.normal())
        after, terminated, truncated = self.observe(), event in "TB", event in "LB"
        self.diary.append((before, reward, after, terminated, truncated))
        return after, reward, terminated, truncated, {}


class Choosing(Scripted):
    action_space = gym.spaces.Discrete(CHOICES)


class Silent(BaseCallback):
    def _on_step(self):
        return True


def sb3_ppo(envs=None, **options):
    model = sb3.PPO("MlpPolicy", DummyVecEnv(envs or [Scripted]), device="cpu", seed=1, **options)
    model.set_logger(Logger(None, []))
    with torch.no_grad():
        if hasattr(model.policy, "log_std"):
            model.policy.log_std.copy_(torch.linspace(-0.5, 0.3, ACTIONS))
        else:
            model.policy.action_net.weight.mul_(50)  # choices that are not all as likely
    return model


def params_of(policy, attribute="data"):
    """SB3's parameters, or their gradients, as one run of ours."""

    def read(parameter):
        return getattr(parameter, attribute).numpy()[None].copy()

    def layers(body, head):
        return tuple(networks.Layer(read(m.weight).swapaxes(1, 2), read(m.bias)) for m in (body[0], body[2], head))

    body = policy.mlp_extractor
    value = layers(body.value_net, policy.value_net)
    spread = read(policy.log_std) if hasattr(policy, "log_std") else np.zeros((1, 0), value[0].bias.dtype)
    return ppo.Params(layers(body.policy_net, policy.action_net), value, spread)


def agent_of(policy):
    params = params_of(policy)
    zeros = jax.tree.map(np.zeros_like, params)
    return ppo.Agent(params, zeros, zeros, np.zeros(1, np.int32))


def trained_by_sb3(data, settings, max_grad_norm=0.5, env=Scripted):
    """SB3's own `train` in float64 on our batch: the agent before, the orders it drew, and the model after."""
    size = data.advantages.shape[1]
    options = {"n_steps": size, "batch_size": settings.minibatch, "n_epochs": settings.epochs}
    model = sb3_ppo([env], max_grad_norm=max_grad_norm, ent_coef=settings.entropy_coef, **options)
    model.policy.double()
    model.policy.extract_features = lambda obs, *_: obs  # SB3 would cast observations to float32 here
    before = agent_of(model.policy)
    buffer = model.rollout_buffer
    for name in ("observations", "actions", "log_probs", "advantages", "returns"):
        setattr(buffer, name, np.asarray(getattr(data, name)[0], np.float64))
    buffer.values = buffer.returns - buffer.advantages
    buffer.full = buffer.generator_ready = True
    np.random.seed(3)  # noqa: NPY002 - SB3 shuffles with the global generator
    orders = np.stack([np.random.permutation(size) for _ in range(settings.epochs)])[None]  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    model.train()
    return before, orders.astype(np.int32), model


# ---- degenerate cases ------------------------------------------------------------------------------------------------


def test_a_ratio_at_the_edge_is_not_clipped():
    """Before the first step every ratio is 1: with no room at all, none of them is beyond it."""
    settings = ppo.Settings(envs=2, rollout=64, clip=0.0)
    [agent] = [picked(ppo.init(generators(0), OBS, ACTIONS, settings), 0)]
    params, data = (jax.tree.map(lambda leaf: leaf[0], tree) for tree in (agent.params, batch(1, 64)))
    log_probs, _ = ppo._gaussian(params, data.observations, data.actions)
    _, stats = ppo.minibatch_loss(params, data._replace(log_probs=log_probs), settings)
    assert stats.clip_fraction == 0


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_nothing_is_explained_of_returns_that_do_not_vary(spread):
    settings, data = ppo.Settings(envs=2, rollout=64, minibatch=16, epochs=1), batch(1, 64)
    agent, orders = ppo.init(generators(0), OBS, ACTIONS, settings), ppo.draw_orders(generators(0), 64, settings)
    _, stats = ppo.learn(agent, data._replace(returns=1 + spread * data.returns), orders, settings)
    assert np.isfinite(stats.explained_variance[0]) == (spread > 0)
    assert np.isnan(stats.explained_variance[0]) == (spread == 0)


def test_one_step_of_one_environment():
    settings = ppo.Settings(envs=1, rollout=1, epochs=1)
    rngs = generators(0)
    agent = ppo.init(rngs, OBS, ACTIONS, settings)
    new, stats = ppo.learn(agent, batch(1, 1), ppo.draw_orders(rngs, 1, settings), settings)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(new))
    assert np.isnan(stats.explained_variance[0]) and new.step[0] == 1


def test_gae_of_one_step_and_of_nothing_but_ends():
    rewards = np.array([[[2.0, 3.0]]])
    no, yes = np.zeros((1, 1, 2), bool), np.ones((1, 1, 2), bool)
    advantages, returns = ppo.gae(rewards, rewards * 10, rewards * 100, no, no, ppo.Settings())
    np.testing.assert_allclose(advantages, rewards + 0.99 * rewards * 100 - rewards * 10)
    np.testing.assert_allclose(returns, advantages + rewards * 10)
    many = np.random.default_rng(0).normal(size=(2, 7, 3))
    yes = np.ones(many.shape, bool)
    np.testing.assert_allclose(ppo.gae(many, many * 2, many * 9, yes, ~yes, SMALL)[0], many - many * 2)
    bootstrapped = many + 0.99 * many * 9 - many * 2
    np.testing.assert_allclose(ppo.gae(many, many * 2, many * 9, ~yes, yes, SMALL)[0], bootstrapped)


def test_a_constant_advantage_is_survived():
    data = batch(1, 64)._replace(advantages=np.ones((1, 64), np.float32))
    rngs = generators(0)
    agent = ppo.init(rngs, OBS, ACTIONS, SMALL)
    new, _ = ppo.learn(agent, data, ppo.draw_orders(rngs, 64, SMALL), SMALL)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(new))


@pytest.mark.parametrize("widest", [np.inf, 1.0, 0.5])
def test_noise_grows_with_an_entropy_bonus_as_far_as_it_may(widest):
    settings = dataclasses.replace(SMALL, entropy_coef=10.0, learning_rate=1e-2, max_std=widest)
    rngs = generators(0)
    agent = ppo.init(rngs, OBS, ACTIONS, settings)
    new, _ = ppo.learn(agent, batch(1, 64), ppo.draw_orders(rngs, 64, settings), settings)
    spread = np.exp(new.params.log_std)
    assert (spread > 1).all() if widest == np.inf else np.allclose(spread, widest)


def test_an_entropy_bonus_that_falls_is_as_large_as_it_is_told_run_by_run():
    settings = dataclasses.replace(SMALL, entropy_coef=0.5, entropy_falls=True)

    def spread(settings, unpaid):
        agent, rngs = ppo.init(generators(0, 0), OBS, ACTIONS, settings), generators(1, 1)
        data = jax.tree.map(lambda leaf: np.concatenate([leaf, leaf]), batch(1, 64))
        return ppo.learn(agent, data, ppo.draw_orders(rngs, 64, settings), settings, unpaid)[0].params.log_std

    full, none = spread(settings, None)[0], spread(dataclasses.replace(settings, entropy_coef=0.0), None)[0]
    np.testing.assert_allclose(spread(settings, np.float32([1, 0])), [full, none], rtol=1e-6)
    assert (full > none).all()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="multiple of envs"):
        ppo.Settings(envs=3, rollout=16)
    with pytest.raises(ValueError, match="max_std must be above 0; got -1"):
        ppo.Settings(max_std=-1)
    rngs = generators(0)
    agent = ppo.init(rngs, OBS, ACTIONS, SMALL)
    with pytest.raises(ValueError, match="draw_orders"):
        ppo.learn(agent, batch(1, 64), ppo.draw_orders(rngs, 32, SMALL), SMALL)


# ---- equal to Stable-Baselines3 --------------------------------------------------------------------------------------


KINDS = pytest.mark.parametrize(("made", "env"), [(batch, Scripted), (choosing, Choosing)], ids=["Box", "Discrete"])


@KINDS
def test_loss_and_gradient_equal_sb3(made, env):
    settings = ppo.Settings(envs=1, rollout=96, minibatch=96, epochs=1, entropy_coef=0.01)
    data = widened(made(1, 96))
    before, _, model = trained_by_sb3(data, settings, max_grad_norm=1e9, env=env)
    with jax.enable_x64(True):
        one = functools.partial(jax.tree.map, lambda leaf: leaf[0])
        graded = jax.jit(jax.value_and_grad(functools.partial(ppo.minibatch_loss, settings=settings), has_aux=True))
        (loss, _), gradient = jax.device_get(graded(one(before.params), one(data)))
    assert loss == pytest.approx(model.logger.name_to_value["train/loss"], abs=1e-12)
    assert distance(gradient, one(params_of(model.policy, "grad"))) < 1e-12


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
@pytest.mark.parametrize("size", [128, 100], ids=["whole minibatches", "shorter last minibatch"])
@KINDS
def test_parameters_after_learning_equal_sb3(size, made, env):
    settings = ppo.Settings(envs=1, rollout=size, minibatch=32, epochs=3)
    data = widened(made(1, size))
    before, orders, model = trained_by_sb3(data, settings, env=env)
    with jax.enable_x64(True):
        after, stats = ppo.learn(before, data, orders, settings)
    assert distance(before.params, after.params) > 1e-3
    assert distance(after.params, params_of(model.policy)) < 1e-11
    logged = model.logger.name_to_value
    names = {"policy_loss": "policy_gradient_loss", "value_loss": "value_loss", "approx_kl": "approx_kl"}
    names |= {"clip_fraction": "clip_fraction", "explained_variance": "explained_variance"}
    for ours, theirs in names.items():
        assert getattr(stats, ours)[0] == pytest.approx(logged["train/" + theirs], abs=1e-6), ours
    assert stats.entropy[0] == pytest.approx(-logged["train/entropy_loss"], abs=1e-9)


def test_gae_equals_sb3_buffer():
    steps, envs = 50, 4
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, steps, envs))
    last, done = rng.normal(size=envs), rng.random((steps, envs)) < 0.1
    buffer = RolloutBuffer(steps, Scripted.observation_space, Scripted.action_space, "cpu", 0.95, 0.99, envs)
    buffer.rewards, buffer.values, buffer.advantages = rewards, values, np.zeros_like(values)
    buffer.episode_starts = np.concatenate([np.zeros((1, envs)), done[:-1]])
    buffer.compute_returns_and_advantage(torch.tensor(last), done[-1])
    following = np.concatenate([values[1:], last[None]])
    ours = ppo.gae(rewards[None], values[None], following[None], done[None], np.zeros_like(done)[None], ppo.Settings())
    np.testing.assert_allclose(ours[0][0], buffer.advantages, atol=1e-12)
    np.testing.assert_allclose(ours[1][0], buffer.returns, atol=1e-12)


def test_gae_by_hand():
    settings = ppo.Settings(discount=0.5, gae_lambda=0.5)
    rewards, values, following = (np.array(x)[None, :, None] for x in ([1.0, 2.0], [10.0, 20.0], [20.0, 30.0]))
    no, first = np.zeros((1, 2, 1), bool), np.array([True, False])[None, :, None]
    hand = functools.partial(ppo.gae, rewards, values, settings=settings)
    going_on = hand(following, terminated=no, truncated=no)
    np.testing.assert_array_equal(going_on[0].ravel(), [1 + 0.25 * -3, -3])
    np.testing.assert_array_equal(going_on[1].ravel(), [10.25, 17])
    np.testing.assert_array_equal(hand(following, terminated=first, truncated=no)[0].ravel(), [-9, -3])
    final = np.array([40.0, 30.0])[None, :, None]
    np.testing.assert_array_equal(hand(final, terminated=no, truncated=first)[0].ravel(), [11, -3])
    np.testing.assert_array_equal(hand(final, terminated=first, truncated=first)[0].ravel(), [-9, -3])


def test_a_rollout_with_both_kinds_of_ends_equals_sb3_collect_rollouts():
    scripts = ["....L", "..T", "......B", ".L.T"]  # L: time limit, T: terminated, B: both at once
    envs = [functools.partial(Scripted, script, seed) for seed, script in enumerate(scripts)]
    model = sb3_ppo(envs, n_steps=20, batch_size=20)
    _, callback = model._setup_learn(80, Silent())
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 20)
    columns = zip(*(zip(*env.unwrapped.diary, strict=True) for env in model.env.envs), strict=True)
    states, rewards, next_states, terminated, truncated = (np.stack(c, axis=1)[None] for c in columns)
    params, buffer = params_of(model.policy), model.rollout_buffer
    values, next_values = ppo.values(params, states), ppo.values(params, next_states)
    advantages, returns = ppo.gae(rewards, values, next_values, terminated, truncated, ppo.Settings())
    np.testing.assert_array_equal(states[0], buffer.observations)
    np.testing.assert_allclose(values[0], buffer.values, atol=1e-6)
    np.testing.assert_allclose(advantages[0], buffer.advantages, atol=1e-5)
    np.testing.assert_allclose(returns[0], buffer.returns, atol=1e-5)


def test_acting_equals_sb3():
    policy = sb3_ppo().policy
    rng = np.random.default_rng(0)
    states = rng.normal(size=(1, 16, OBS)).astype(np.float32)
    noise = rng.normal(size=(1, 16, ACTIONS)).astype(np.float32)
    params = params_of(policy)
    actions = ppo.act(params, states, noise)
    value, log_prob, _ = policy.evaluate_actions(torch.tensor(states[0]), torch.tensor(actions[0]))
    np.testing.assert_allclose(ppo.log_probs(params, noise)[0], log_prob.detach().numpy(), atol=1e-5)
    np.testing.assert_allclose(ppo.values(params, states)[0], value.detach().numpy()[:, 0], atol=1e-6)
    mean = policy.predict(states[0], deterministic=True)[0]
    np.testing.assert_allclose(np.clip(ppo.act(params, states, 0.0)[0], -1, 1), mean, atol=1e-6)
    assert actions.dtype == np.float32


def test_choosing_equals_sb3():
    policy, rng = sb3_ppo([Choosing]).policy, np.random.default_rng(0)
    states = rng.normal(size=(1, 16, OBS)).astype(np.float32)
    params = params_of(policy)
    likeliest = ppo.act(params, states, 0.0)
    np.testing.assert_array_equal(likeliest[0, :, 0], policy.predict(states[0], deterministic=True)[0])
    _, log_prob, _ = policy.evaluate_actions(torch.tensor(states[0]), torch.tensor(likeliest[0, :, 0]))
    np.testing.assert_allclose(ppo.log_choices(params, states, likeliest)[0], log_prob.detach().numpy(), atol=1e-5)


def test_choices_come_as_often_as_their_probabilities():
    params = params_of(sb3_ppo([Choosing]).policy)
    settings = ppo.Settings(envs=20_000, rollout=20_000)
    noise = ppo.draw_noise(generators(0), 1, settings, CHOICES)
    states = np.ones((1, 20_000, OBS), np.float32)
    drawn = ppo.act(params, states, noise[:, 0])
    assert drawn.shape == (1, 20_000, 1) and drawn.dtype == np.float32
    every = np.arange(CHOICES, dtype=np.float32)[None, :, None]
    wanted = 20_000 * np.exp(ppo.log_choices(params, states[:, :CHOICES], every)[0])
    assert wanted.sum() == pytest.approx(20_000, rel=1e-5) and np.ptp(wanted) > 500
    assert (np.abs(np.bincount(drawn.ravel().astype(int)) - wanted) < 5 * np.sqrt(wanted)).all()


@pytest.mark.parametrize("obs_dim", [3, 17, 67, 80])
def test_init_has_the_gains_of_sb3(obs_dim):
    agent = ppo.init(generators(0), obs_dim, ACTIONS, ppo.Settings())
    for layers, head_gain in ((agent.params.policy, 0.01), (agent.params.value, 1.0)):
        for layer, gain in zip(layers, (2**0.5, 2**0.5, head_gain), strict=True):
            np.testing.assert_allclose(np.linalg.svd(layer.weight[0])[1], gain, rtol=1e-5)
            assert not layer.bias.any()
    assert not agent.params.log_std.any()


def test_sb3_has_those_gains():
    params = params_of(sb3_ppo().policy)
    for layer, gain in zip((*params.policy, params.value[-1]), (2**0.5, 2**0.5, 0.01, 1.0), strict=True):
        np.testing.assert_allclose(np.linalg.svd(layer.weight[0])[1], gain, rtol=1e-5)


# ---- runs side by side -----------------------------------------------------------------------------------------------


def one_rollout(seeds):
    """Everything random and everything learned in one rollout of these seeds."""
    rngs = generators(*seeds)
    agent = ppo.init(rngs, OBS, ACTIONS, SMALL)
    noise = ppo.draw_noise(rngs, ACTIONS, SMALL)
    data = ppo.Batch(*(np.concatenate(x) for x in zip(*(batch(1, 64, seed) for seed in seeds), strict=True)))
    actions = ppo.act(agent.params, data.observations[:, :8], noise[:, 0, :1])
    orders = ppo.draw_orders(rngs, 64, SMALL)
    return noise, actions, ppo.values(agent.params, data.observations), ppo.learn(agent, data, orders, SMALL)


def test_a_run_alone_equals_the_run_in_a_stack_bit_for_bit():
    together = one_rollout([5, 6, 7])
    for run, seed in enumerate([5, 6, 7]):
        alone = one_rollout([seed])
        jax.tree.map(np.testing.assert_array_equal, picked(together, run), alone)


def test_the_same_seeds_give_the_same_bits_and_others_do_not():
    jax.tree.map(np.testing.assert_array_equal, one_rollout([1, 2]), one_rollout([1, 2]))
    assert distance(one_rollout([1])[3][0].params, one_rollout([2])[3][0].params) > 0.1


def test_the_vmapped_program_of_accelerators_equals_the_single_one():
    rngs = generators(5, 6, 7)
    agent, data = ppo.init(rngs, OBS, ACTIONS, SMALL), batch(3, 64)
    orders = ppo.draw_orders(rngs, 64, SMALL)
    vmapped = jax.device_get(runs.program(ppo.learn_run, SMALL, True)(agent, data, orders))
    assert distance(vmapped, ppo.learn(agent, data, orders, SMALL)) < 1e-5


def test_orders_are_permutations_that_differ():
    orders = ppo.draw_orders(generators(0, 1), 50, SMALL)
    assert orders.shape == (2, 2, 50) and (np.sort(orders, axis=-1) == np.arange(50)).all()
    assert len({order.tobytes() for order in orders.reshape(4, 50)}) == 4


def test_learning_finds_the_rewarded_action():
    """One-step episodes that pay for being near 0.5: the mean action goes there."""
    settings = ppo.Settings(envs=16, rollout=512, learning_rate=3e-3, epochs=4)
    rngs = generators(0, 1)
    agent = ppo.init(rngs, OBS, ACTIONS, settings)
    ends = np.ones((2, 32, 16), bool)
    for _ in range(12):
        noise = ppo.draw_noise(rngs, ACTIONS, settings)
        states = np.stack([rng.normal(size=(512, OBS)).astype(np.float32) for rng in rngs])
        actions = ppo.act(agent.params, states, noise.reshape(2, 512, ACTIONS))
        rewards = -((actions - 0.5) ** 2).sum(axis=-1).reshape(ends.shape)
        values = ppo.values(agent.params, states).reshape(ends.shape)
        advantages, returns = (x.reshape(2, 512) for x in ppo.gae(rewards, values, values, ends, ~ends, settings))
        log_probs = ppo.log_probs(agent.params, noise).reshape(2, 512)
        data = ppo.Batch(states, actions, log_probs, advantages, returns)
        agent, stats = ppo.learn(agent, data, ppo.draw_orders(rngs, 512, settings), settings)
    assert np.abs(ppo.act(agent.params, states, 0.0).mean(axis=1) - 0.5).max() < 0.1
    assert (agent.params.log_std < -0.1).all() and all(np.isfinite(s).all() for s in stats)
