"""KME inside one jitted program: PPO in a JAX maze, runs with and without the bonus side by side.

Run: python examples/jax_in_jit.py [--iterations N] [--envs N] [--seeds N]
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np

import voronaut.jax as vj

MAZE = """
################
#    #    #    #
#    #    #    #
#         #    #
#    #    #    #
#    #    #    #
## #### #### ###
#    #    #    #
#    #    #    #
#    #         #
#    #    #    #
#    #    #    #
### ##### ### ##
#    #    #    #
#             G#
################
"""
GRID = np.array([list(row) for row in MAZE.strip().split("\n")])
WALL, GOAL = jnp.asarray(GRID == "#"), jnp.asarray(GRID == "G")
SIZE, FREE = len(GRID), int((GRID != "#").sum())
START, LIMIT, STRIDE = jnp.array([1.5, 1.5]), 100, 0.5
STEPS, EPOCHS, PARTS, GAMMA, LAM, RATE = 100, 4, 4, 0.99, 0.95, 3e-3


def observe(position):
    return 2 * position / SIZE - 1


def step(position, action):
    """Where the action leads to (walls stop it), and the sparse reward."""
    there = position + STRIDE * jnp.clip(action, -1, 1)
    cell = there.astype(int)
    there = jnp.where(WALL[cell[0], cell[1]], position, there)
    cell = there.astype(int)
    return there, GOAL[cell[0], cell[1]].astype(float)


def network(key, out):
    keys, sizes = jax.random.split(key, 3), (2, 64, 64, out)
    return [
        (jax.random.normal(k, (a, b)) * (2 / a) ** 0.5 * (0.05 if b == out else 1), jnp.zeros(b))
        for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def forward(layers, x):
    for weights, bias in layers[:-1]:
        x = jnp.tanh(x @ weights + bias)
    return x @ layers[-1][0] + layers[-1][1]


def log_prob(nets, obs, action):
    return (
        -0.5 * ((action - forward(nets["policy"], obs)) ** 2 / jnp.exp(2 * nets["spread"])).sum(-1)
        - nets["spread"].sum()
    )


def rollout(nets, start, key):
    """All environments for STEPS steps; `led_to` is the true next state, also where an episode ended."""

    def one(now, key):
        position, time = now
        obs = observe(position)
        action = forward(nets["policy"], obs) + jnp.exp(nets["spread"]) * jax.random.normal(key, position.shape)
        led_to, reward = jax.vmap(step)(position, action)
        end = time + 1 >= LIMIT
        kept = {"obs": obs, "action": action, "led_to": led_to, "reward": reward, "end": end}
        return (jnp.where(end[:, None], START, led_to), jnp.where(end, 0, time + 1)), kept

    return jax.lax.scan(one, start, jax.random.split(key, STEPS))


def advantages(nets, data, reward):
    """GAE; an episode's end is a time limit, so the value of the final state stands for what would have followed."""
    value, later = (forward(nets["value"], x)[..., 0] for x in (data["obs"], observe(data["led_to"])))

    def back(after, now):
        reward, value, later, end = now
        gained = reward + GAMMA * later - value + GAMMA * LAM * jnp.where(end, 0, after)
        return gained, gained

    return jax.lax.scan(back, jnp.zeros_like(value[0]), (reward, value, later, data["end"]), reverse=True)[1], value


def loss(nets, batch):
    ratio = jnp.exp(log_prob(nets, batch["obs"], batch["action"]) - batch["log_prob"])
    gain = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-8)
    clipped = jnp.minimum(ratio * gain, jnp.clip(ratio, 0.8, 1.2) * gain).mean()
    return ((forward(nets["value"], batch["obs"])[..., 0] - batch["target"]) ** 2).mean() - clipped


def learn(learner, data, key):
    """PPO's epochs over minibatches, with Adam."""
    flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in data.items()}

    def descend(learner, rows):
        nets, mean, square, count = learner
        slope = jax.grad(loss)(nets, {name: x[rows] for name, x in flat.items()})
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, square, slope)
        rate = RATE * (1 - 0.999 ** (count + 1)) ** 0.5 / (1 - 0.9 ** (count + 1))
        nets = jax.tree.map(lambda p, m, s: p - rate * m / (s**0.5 + 1e-8), nets, mean, square)
        return (nets, mean, square, count + 1), None

    orders = jnp.argsort(jax.random.uniform(key, (EPOCHS, len(flat["end"]))))
    return jax.lax.scan(descend, learner, orders.reshape(EPOCHS * PARTS, -1))[0]


def train(scale, seed, *, iterations, envs):
    """One run: every rollout, reward, gradient step and cluster update in one program."""
    key, policy, critic = jax.random.split(jax.random.key(seed), 3)
    nets = {"policy": network(policy, 2), "value": network(critic, 1), "spread": jnp.full(2, -0.5)}
    zeros = jax.tree.map(jnp.zeros_like, nets)
    kme = vj.init(dim=2, clusters=100, init="data")
    places = jnp.broadcast_to(START, (envs, 2)), jnp.arange(envs) * LIMIT // envs

    def iteration(now, key):
        learner, kme, places, visited = now
        walk, fit, shuffle = jax.random.split(key, 3)
        places, data = rollout(learner[0], places, walk)
        bonus = vj.rewards(kme, data["led_to"])  # against the clusters as they are
        data["advantage"], value = advantages(learner[0], data, data["reward"] + scale * bonus)
        data |= {"target": data["advantage"] + value, "log_prob": log_prob(learner[0], data["obs"], data["action"])}
        learner = learn(learner, data, fit)
        kme = vj.update(kme, data["led_to"], shuffle)  # once per rollout
        cell = data["led_to"].astype(int)
        visited = visited.at[cell[..., 0], cell[..., 1]].set(True)
        return (learner, kme, places, visited), (visited.sum(), data["reward"].mean())

    start = (nets, zeros, zeros, 0), kme, places, jnp.zeros((SIZE, SIZE), bool)
    (_, kme, _, visited), (cells, reward) = jax.lax.scan(iteration, start, jax.random.split(key, iterations))
    return {"cells": cells[-1], "reward": reward[-1], "visited": visited, "kme": vj.metrics(kme)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    scales, seeds = jnp.repeat(jnp.array([0.0, 1.0]), options.seeds), jnp.tile(jnp.arange(options.seeds), 2)
    run = functools.partial(train, iterations=options.iterations, envs=options.envs)
    result = jax.jit(jax.vmap(run))(scales, seeds)  # all runs, one program
    cells = np.asarray(result["cells"]).reshape(2, -1)
    for name, counts in zip(("PPO", "PPO + KME"), cells, strict=True):
        print(f"{name:9} visited {counts.mean():5.1f} of {FREE} cells on average ({', '.join(map(str, counts))})")
    print(
        f"mean gap of the clusters with the bonus: {np.asarray(result['kme']['gap_mean'])[options.seeds :].mean():.2f}"
    )


if __name__ == "__main__":
    main()
