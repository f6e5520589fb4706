"""A one-file PPO in the manner of CleanRL on Gymnasium vector environments; the bonus is one line (marked).

What pays lies behind a wall, where random steps do not get. A quarter of a minute on a free core.
Run: python examples/cleanrl_ppo.py [--alone] [--steps N] [--task ID]
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from corner import Corner
from torch import nn
from torch.distributions import Normal

import voronaut as vn
from voronaut.adapters.gymnasium_env import BonusVectorEnv

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--task", default="Corner-v0")
parser.add_argument("--envs", type=int, default=32)
parser.add_argument("--rollout", type=int, default=50, help="vector steps per rollout")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--alone", action="store_true", help="without a bonus, for comparison")
args = parser.parse_args()
GAMMA, LAM, CLIP, EPOCHS, BATCH = 0.99, 0.95, 0.2, 5, 256

gym.register("Corner-v0", Corner)
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
mode = gym.vector.AutoresetMode.SAME_STEP
envs = gym.make_vec(args.task, num_envs=args.envs, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode})
dim, actions = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
envs = BonusVectorEnv(envs, vn.NoBonus if args.alone else vn.KME, update_every=args.rollout)  # <- the bonus


def net(outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


actor, critic, log_std = net(actions), net(1), nn.Parameter(torch.zeros(actions))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters(), log_std], lr=1e-3)


def tensor(array: object) -> torch.Tensor:
    return torch.as_tensor(np.asarray(array, np.float32))


obs, returns, finished = tensor(envs.reset(seed=args.seed)[0]), np.zeros(args.envs), []
for update in range(args.steps // (args.envs * args.rollout)):
    # 1. Collect. Rewards come with the bonus, so the advantages below know it; returns are the task's own.
    rows = []
    for _ in range(args.rollout):
        with torch.no_grad():
            dist = Normal(actor(obs), log_std.exp())
            action = dist.sample()
        low, high = envs.single_action_space.low, envs.single_action_space.high
        next_obs, reward, terminated, truncated, info = envs.step(np.clip(action.numpy(), low, high))
        done = terminated | truncated
        led_to = np.array(next_obs, np.float32)  # where an episode ended, the next state is the final one
        for i in np.flatnonzero(done):
            led_to[i] = info["final_obs"][i]
        rows.append((obs, action, dist.log_prob(action).sum(-1), tensor(reward), tensor(led_to),
                     tensor(terminated), tensor(done)))  # fmt: skip
        returns += info["extrinsic_reward"]
        finished += returns[done].tolist()
        returns[done], obs = 0, tensor(next_obs)
    states, acts, log_probs, rewards, led, ends, dones = (torch.stack(column) for column in zip(*rows, strict=True))
    # 2. Advantages (GAE). Only a termination ends the value of what follows; both kinds of end cut the sum.
    with torch.no_grad():
        values, after = critic(states).squeeze(-1), critic(led).squeeze(-1)
    advantages, later = torch.zeros_like(rewards), torch.zeros(args.envs)
    for t in reversed(range(args.rollout)):
        delta = rewards[t] + GAMMA * after[t] * (1 - ends[t]) - values[t]
        later = advantages[t] = delta + GAMMA * LAM * (1 - dones[t]) * later
    targets = advantages + values
    # 3. Learn.
    flat = [x.flatten(0, 1) for x in (states, acts, log_probs, advantages, targets)]
    for _ in range(EPOCHS):
        for rows_ in np.array_split(rng.permutation(len(flat[0])), max(1, len(flat[0]) // BATCH)):
            s, a, old, adv, target = (x[rows_] for x in flat)
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            dist = Normal(actor(s), log_std.exp())
            ratio = (dist.log_prob(a).sum(-1) - old).exp()
            policy_loss = -torch.min(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv).mean()
            loss = policy_loss + 0.5 * (critic(s).squeeze(-1) - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 0.5)
            optimizer.step()
    if update % 12 == 11:
        print(f"steps {(update + 1) * args.envs * args.rollout}: return {np.mean(finished[-20:]):.1f}", flush=True)
print(f"Return of the last 20 episodes: {np.mean(finished[-20:]):.1f}")
