"""SAC whose replay buffer pays old states what they are worth now. Run: python examples/sb3_sac.py [--steps N]"""

import argparse

from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env

import voronaut as vn
from voronaut.sb3 import BonusCallback, BonusReplayBuffer, BonusVecEnv

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200_000)
parser.add_argument("--task", default="voronaut/CartpoleSwingupSparse-v0")
options = parser.parse_args()

assert vn.tasks  # registers the sparse tasks with Gymnasium
env = make_vec_env(options.task, n_envs=1, seed=0)
env = BonusVecEnv(env, vn.KME(dim=env.observation_space.shape[0]), scale=0.1, update_every=100, pay=False)
model = SAC("MlpPolicy", env, replay_buffer_class=BonusReplayBuffer, device="cpu", seed=0, verbose=1)
model.learn(options.steps, callback=BonusCallback())
print(f"The mean bonus in the last batch was {model.replay_buffer.last_bonus:.4f}.")
