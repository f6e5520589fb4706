"""SAC with an explorer beside it on MountainCarContinuous. Run: python examples/sb3_pair.py [--seed N] [--alone]

Every push costs and the goal is far, so that it pays to stand still. The pair's explorer is paid for new states and
reaches the goal; the exploiter, paid by the task alone, learns from what both have seen. A few minutes on a core.
"""

import argparse

import torch
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import voronaut as vn
from voronaut.sb3 import Pair

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=20_000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--alone", action="store_true", help="SAC without a pair, for comparison")
options = parser.parse_args()

torch.set_num_threads(1)
env = make_vec_env("MountainCarContinuous-v0", n_envs=4, seed=options.seed)
test = make_vec_env("MountainCarContinuous-v0", n_envs=5, seed=10_000 + options.seed)
judge = EvalCallback(test, eval_freq=500)
if options.alone:
    model = SAC("MlpPolicy", env, seed=options.seed, device="cpu").learn(options.steps, callback=judge)
else:
    pair = Pair(SAC, "MlpPolicy", env, vn.KME, seed=options.seed, device="cpu").learn(options.steps, callback=judge)
    model = pair.exploiter
print(f"Return over 20 episodes: {evaluate_policy(model, test, 20)[0]:.1f} (solved from 90).")
