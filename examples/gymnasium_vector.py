"""A KME bonus in any loop over Gymnasium's vector environments. Run: python examples/gymnasium_vector.py [--steps N]"""

import argparse

import gymnasium

import voronaut as vn
from voronaut.adapters.gymnasium_env import BonusVectorEnv

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2000, help="vector steps")
options = parser.parse_args()

env = gymnasium.make_vec("MountainCarContinuous-v0", num_envs=8)
env = BonusVectorEnv(env, vn.KME, scale=1.0, update_every=100)  # the one line
env.action_space.seed(0)
observations, _ = env.reset(seed=0)
for step in range(options.steps):
    actions = env.action_space.sample()  # your policy
    observations, rewards, terminated, truncated, infos = env.step(actions)  # rewards hold the bonus
    if step % 300 == 299:
        paid, own = infos["bonus"].mean(), infos["extrinsic_reward"].mean()
        print(f"step {step + 1}: bonus {paid:.2f}, own reward {own:.2f}, entropy {env.bonus.entropy():.2f} nats")
env.close()
