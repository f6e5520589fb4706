"""PPO with KME on MiniGrid's DoorKey: key, door, goal. Run: python examples/minigrid_ppo.py [--steps N] [--alone]

Needs `pip install minigrid`. The agent and the bonus see the same: the 7×7 cells in front of the agent.
"""

import argparse

import gymnasium
import minigrid
import torch
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import voronaut as vn
from voronaut.sb3 import BonusVecEnv

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=600_000)
parser.add_argument("--task", default="MiniGrid-DoorKey-8x8-v0")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--alone", action="store_true", help="PPO without a bonus, for comparison")
options = parser.parse_args()
assert minigrid  # registers the tasks


def make() -> gymnasium.Env:
    return gymnasium.wrappers.FlattenObservation(ImgObsWrapper(gymnasium.make(options.task)))


torch.set_num_threads(1)
env = make_vec_env(make, n_envs=16, seed=options.seed)
if not options.alone:
    env = BonusVecEnv(env, vn.KME, update_every=128)  # the one line
model = PPO("MlpPolicy", env, n_steps=128, batch_size=256, n_epochs=4, ent_coef=0.01, seed=options.seed, device="cpu")
model.learn(options.steps, log_interval=20)
returns = [episode["r"] for episode in model.ep_info_buffer]
print(f"Mean return of the last {len(returns)} episodes: {sum(returns) / max(len(returns), 1):.2f} (at most 1).")
