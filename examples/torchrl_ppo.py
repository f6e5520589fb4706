"""PPO of TorchRL with a KME bonus added to the reward. Run: python examples/torchrl_ppo.py [--steps N] [--task ID]"""

import argparse

import torch
from tensordict.nn import TensorDictModule as Module
from torch.nn import Linear, Sequential, Tanh
from torchrl.collectors import Collector
from torchrl.envs import DoubleToFloat, GymEnv, RewardSum, SerialEnv, TransformedEnv
from torchrl.modules import NormalParamExtractor, ProbabilisticActor, TanhNormal
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import voronaut as vn
from voronaut.adapters.torchrl_env import BonusTransform

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200_000)
parser.add_argument("--task", default="MountainCarContinuous-v0")
options = parser.parse_args()
envs, rollout = 8, 2048
env = TransformedEnv(SerialEnv(envs, lambda: TransformedEnv(GymEnv(options.task), DoubleToFloat())), RewardSum())
size, actions = env.observation_spec["observation"].shape[-1], env.action_spec.shape[-1]
env.append_transform(BonusTransform(vn.KME(dim=size), update_every=rollout // envs, add_to_reward=True))
body = Sequential(Linear(size, 64), Tanh(), Linear(64, 2 * actions), NormalParamExtractor())
head = Module(body, in_keys=["observation"], out_keys=["loc", "scale"])
actor = ProbabilisticActor(head, in_keys=["loc", "scale"], distribution_class=TanhNormal, return_log_prob=True)
critic = Module(Sequential(Linear(size, 64), Tanh(), Linear(64, 1)), in_keys=["observation"], out_keys=["state_value"])
advantage, loss = GAE(gamma=0.99, lmbda=0.95, value_network=critic), ClipPPOLoss(actor, critic, entropy_coeff=0.0)
optimizer = torch.optim.Adam(loss.parameters(), lr=3e-4)
for data in Collector(env, actor, frames_per_batch=rollout, total_frames=options.steps):
    advantage(data)
    for batch in (flat[torch.randperm(len(flat))[:256]] for flat in [data.reshape(-1)] * 40):
        optimizer.zero_grad()
        sum(value for name, value in loss(batch).items() if name.startswith("loss_")).backward()
        optimizer.step()
    print(f"bonus {data['next', 'intrinsic_reward'].mean():.4f}, reward {data['next', 'extrinsic_reward'].mean():.3f}")
