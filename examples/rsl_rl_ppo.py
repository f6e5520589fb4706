"""PPO of rsl_rl alone and with a KME bonus, many points in a square. Run: python examples/rsl_rl_ppo.py [--envs N]

Points start in one corner and only the opposite one pays, which random steps do not reach.
"""

import argparse

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

import voronaut as vn
from voronaut.adapters.rsl_rl import add_bonus

parser = argparse.ArgumentParser()
parser.add_argument("--envs", type=int, default=256)
parser.add_argument("--iterations", type=int, default=100)
parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
options = parser.parse_args()
START = -0.95


class Square(VecEnv):
    """50 steps of at most 0.1 a side, which is 2 wide; 1 for every step in the opposite corner."""

    num_actions, max_episode_length, cfg = 2, 50, {}

    def __init__(self, num_envs: int, device: str) -> None:
        self.num_envs, self.device = num_envs, device
        self.place = torch.full((num_envs, 2), START, device=device)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long, device=device)
        self.seen = torch.zeros(20, 20, dtype=torch.bool, device=device)
        self.earned, self.returned = torch.zeros(num_envs, device=device), 0.0

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": self.place.clone()}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        self.place = (self.place + 0.1 * actions.clamp(-1, 1)).clamp(-1, 1)
        self.episode_length_buf += 1
        final, cell = self.get_observations(), ((self.place + 1) * 9.999).long()
        self.seen[cell[:, 0], cell[:, 1]] = True
        rewards, dones = (self.place > 0.9).all(dim=1).float(), self.episode_length_buf >= 50
        self.earned += rewards
        if dones.any():
            self.returned = float(self.earned[dones].mean())
            self.earned[dones] = 0
        self.place = torch.where(dones[:, None], START, self.place)
        self.episode_length_buf = torch.where(dones, 0, self.episode_length_buf)
        return self.get_observations(), rewards, dones, {"time_outs": dones, "final_obs": final}


net = {"class_name": "MLPModel", "hidden_dims": [64, 64], "activation": "elu"}
normal = {"class_name": "GaussianDistribution", "init_std": 0.5, "std_type": "scalar"}
groups = {"actor": ["policy"], "critic": ["policy"]}
ppo = {"class_name": "PPO", "schedule": "fixed", "learning_rate": 1e-3, "entropy_coef": 0.0}
settings = {"num_steps_per_env": 25, "save_interval": 50, "obs_groups": groups}
for bonus in (vn.NoBonus, vn.KME):
    torch.manual_seed(0)
    env = Square(options.envs, options.device)
    networks = {"actor": {**net, "distribution_cfg": dict(normal)}, "critic": dict(net)}
    runner = OnPolicyRunner(env, {**settings, "algorithm": dict(ppo), **networks}, device=options.device)
    add_bonus(runner, bonus)  # the one line
    runner.learn(options.iterations)
    print(f"{bonus.__name__}: return {env.returned:.1f} at the end, {env.seen.float().mean():.2f} of the square seen")
