"""SAC with an explorer beside it on MountainCarContinuous. Run: python examples/sb3_pair.py [--seed N] [--alone]

Every push costs and the goal is far, so that it pays to stand still. The pair's explorer is paid for new states and
reaches the goal; the exploiter, paid by the task alone, learns from what both have seen.
"""

import argparse

import torch
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

import voronaut as vn
from voronaut.sb3 import Pair

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40_000)
parser.add_argument("--gradient_steps", type=int, default=4, help="after every step of the 16 environments")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--alone", action="store_true", help="SAC without a pair, for comparison")
options = parser.parse_args()

torch.set_num_threads(1)
env = VecNormalize(make_vec_env("MountainCarContinuous-v0", n_envs=16, seed=options.seed), norm_reward=False)
test = make_vec_env("MountainCarContinuous-v0", n_envs=5, seed=10_000 + options.seed)
test = VecNormalize(test, training=False, norm_reward=False)  # EvalCallback keeps its statistics those of env
settings = {"ent_coef": "auto_0.1", "n_steps": 3, "policy_kwargs": {"net_arch": [64, 64]}, "device": "cpu"}
settings |= {"gradient_steps": options.gradient_steps, "seed": options.seed}
judge = EvalCallback(test, eval_freq=5000 // 16)
if options.alone:
    model = SAC("MlpPolicy", env, **settings).learn(options.steps, callback=judge)
else:
    model = Pair(SAC, "MlpPolicy", env, vn.KME, **settings).learn(options.steps, callback=judge).exploiter
print(f"Return over 20 episodes: {evaluate_policy(model, test, 20)[0]:.1f} (solved from 90).")
