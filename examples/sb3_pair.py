"""SAC with an explorer beside it on MountainCarContinuous. Run: python examples/sb3_pair.py [--seed N] [--alone]

Every push costs and the goal is far, so that it pays to stand still. The pair's explorer is paid for new states and
reaches the goal; the exploiter, paid by the task alone, learns from what both have seen. SAC has its default settings
with --default (some minutes), else a cooler start and normalised observations (a minute or two).
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
parser.add_argument("--steps", type=int, help="60,000, with --default 200,000")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--default", action="store_true", help="SAC's default settings")
parser.add_argument("--alone", action="store_true", help="SAC without a pair, for comparison")
options = parser.parse_args()

torch.set_num_threads(1)
env = make_vec_env("MountainCarContinuous-v0", n_envs=16, seed=options.seed)
test = make_vec_env("MountainCarContinuous-v0", n_envs=5, seed=10_000 + options.seed)
settings, steps = {"seed": options.seed, "device": "cpu"}, options.steps or (200_000 if options.default else 60_000)
if not options.default:
    env, test = VecNormalize(env, norm_reward=False), VecNormalize(test, training=False, norm_reward=False)
    settings["ent_coef"] = "auto_0.1"  # a temperature of 0.1 at first, not 1
judge = EvalCallback(test, eval_freq=10_000 // 16)
if options.alone:
    model = SAC("MlpPolicy", env, **settings).learn(steps, callback=judge)
else:
    model = Pair(SAC, "MlpPolicy", env, vn.KME, **settings).learn(steps, callback=judge).exploiter
print(f"Return over 20 episodes: {evaluate_policy(model, test, 20)[0]:.1f} (solved from 90).")
