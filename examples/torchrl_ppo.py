"""PPO of TorchRL with a KME bonus added to the reward. Run: python examples/torchrl_ppo.py [--alone] [--steps N]"""

import argparse

import torch
from corner import Corner
from tensordict.nn import TensorDictModule as Module
from torch.nn import Linear, Sequential, Tanh
from torchrl.collectors import Collector
from torchrl.envs import Compose, GymWrapper, RewardSum, SerialEnv, TransformedEnv
from torchrl.modules import NormalParamExtractor, ProbabilisticActor, TanhNormal
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import voronaut as vn
from voronaut.adapters.torchrl_env import BonusTransform

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=99_200)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--alone", action="store_true", help="without a bonus, for comparison")
options, envs, rollout = parser.parse_args(), 32, 1600
torch.manual_seed(options.seed)
bonus = BonusTransform(vn.NoBonus if options.alone else vn.KME, update_every=rollout // envs, add_to_reward=True)
env = TransformedEnv(SerialEnv(envs, lambda: GymWrapper(Corner())), Compose(RewardSum(), bonus))  # the one line
body = Sequential(Linear(2, 64), Tanh(), Linear(64, 64), Tanh(), Linear(64, 4), NormalParamExtractor())
head = Module(body, in_keys=["observation"], out_keys=["loc", "scale"])
actor = ProbabilisticActor(head, in_keys=["loc", "scale"], distribution_class=TanhNormal, return_log_prob=True)
value = Sequential(Linear(2, 64), Tanh(), Linear(64, 64), Tanh(), Linear(64, 1))
critic = Module(value, in_keys=["observation"], out_keys=["state_value"])
advantage, loss = GAE(gamma=0.99, lmbda=0.95, value_network=critic), ClipPPOLoss(actor, critic, entropy_coeff=0.0)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
for number, data in enumerate(Collector(env, actor, frames_per_batch=rollout, total_frames=options.steps), 1):
    flat, returns = advantage(data).reshape(-1), data["next", "episode_reward"][data["next", "done"]]
    for rows in torch.cat([torch.randperm(rollout) for _ in range(5)]).split(256):
        optimizer.zero_grad()
        sum(each for name, each in loss(flat[rows]).items() if name.startswith("loss_")).backward()
        optimizer.step()
    if number % 12 == 0 or number * rollout >= options.steps:
        print(f"steps {number * rollout}: return {returns.mean():.1f}", flush=True)
