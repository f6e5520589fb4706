"""PPO of Stable-Baselines3 with a KME bonus on a sparse task. Run: python examples/sb3_ppo.py [--steps N] [--task T]"""

import argparse

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import voronaut as vn
from voronaut.sb3 import BonusCallback, BonusVecEnv

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2_000_000)
parser.add_argument("--task", default="voronaut/CheetahRunSparse-v0")
parser.add_argument("--rollout", type=int, default=1024, help="vector steps per rollout")
options = parser.parse_args()

assert vn.tasks  # registers the sparse tasks with Gymnasium
env = make_vec_env(options.task, n_envs=16, seed=0)
env = BonusVecEnv(env, vn.KME(dim=env.observation_space.shape[0]), scale=0.01, update_every=options.rollout)
model = PPO("MlpPolicy", env, n_steps=options.rollout, batch_size=64, device="cpu", seed=0, verbose=1)
model.learn(options.steps, callback=BonusCallback())
print(
    f"The bonus has seen {env.bonus.metrics()['states']:.0f} states; their entropy is {env.bonus.entropy():.1f} nats."
)
