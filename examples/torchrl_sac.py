"""SAC of TorchRL whose replay pays old states what they are worth now. Run: python examples/torchrl_sac.py [--steps N]

The goal of MountainCarContinuous is far and every push costs, so that it pays to stand still; the bonus makes it pay
to see new places.
"""

import argparse

import torch
from tensordict.nn import TensorDictModule as Module
from torch.nn import Linear, ReLU, Sequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import Compose, DoubleToFloat, GymEnv, RewardSum, SerialEnv, TransformedEnv
from torchrl.modules import MLP, NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import SACLoss, SoftUpdate

import voronaut as vn
from voronaut.adapters.torchrl_env import BonusReplayTransform, BonusTransform

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60_000)
parser.add_argument("--task", default="MountainCarContinuous-v0")
parser.add_argument("--scale", type=float, default=1.0, help="weight of the bonus beside the task's reward")
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
torch.manual_seed(options.seed)
torch.set_num_threads(1)

envs = 8
recorder = BonusTransform(vn.KME, scale=options.scale, update_every=1024 // envs)  # learns from what is new
env = TransformedEnv(SerialEnv(envs, lambda: GymEnv(options.task)), Compose(DoubleToFloat(), RewardSum(), recorder))
env.set_seed(options.seed)
size, actions = env.observation_spec["observation"].shape[-1], env.action_spec.shape[-1]

body = Sequential(Linear(size, 128), ReLU(), Linear(128, 128), ReLU(), Linear(128, 2 * actions), NormalParamExtractor())
actor = ProbabilisticActor(
    Module(body, in_keys=["observation"], out_keys=["loc", "scale"]),
    in_keys=["loc", "scale"],
    spec=env.action_spec_unbatched,
    distribution_class=TanhNormal,
    distribution_kwargs={"low": env.action_spec_unbatched.space.low, "high": env.action_spec_unbatched.space.high},
)
critic = ValueOperator(MLP(in_features=size + actions, out_features=1, num_cells=[128, 128]), ["action", "observation"])
loss = SACLoss(actor, critic, alpha_init=0.1, action_spec=env.action_spec_unbatched)
loss.make_value_estimator(gamma=0.99)
target, optimizer = SoftUpdate(loss, eps=0.995), torch.optim.Adam(loss.parameters(), lr=3e-4)

replay = TensorDictReplayBuffer(storage=LazyTensorStorage(200_000), batch_size=256)
replay.append_transform(BonusReplayTransform(recorder))  # the one line: pays when a batch is drawn
for data in Collector(env, actor, frames_per_batch=64, total_frames=options.steps, init_random_frames=1024):
    replay.extend(data.reshape(-1))
    for _ in range(8):
        batch = replay.sample()
        optimizer.zero_grad()
        sum(value for name, value in loss(batch).items() if name.startswith("loss_")).backward()
        optimizer.step()
        target.step()
    ended = data["next", "done"]
    if ended.any():
        returns, paid = data["next", "episode_reward"][ended].mean(), batch["next", "intrinsic_reward"].mean()
        print(f"{len(replay)} steps: return {returns:.1f}, bonus paid in the last batch {paid:.3f}", flush=True)
print(f"The bonus has seen {recorder.bonus.metrics()['states']:.0f} states, entropy {recorder.bonus.entropy():.2f}.")
