"""Each library with its adapter in it, as `check_adapter` wants to see it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.adapters.worlds import WalkEnv
from voronaut.conformance import Rollout, Walk

STEPS = 24
GAMMA, LAM = 0.99, 0.95


def gae(rewards: NDArray[Any], ends: NDArray[Any]) -> NDArray[Any]:
    """Advantages of a loop without a critic (all values 0)."""
    out, later = np.zeros_like(rewards), np.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        later = rewards[t] + GAMMA * LAM * np.where(ends[t], 0, later)
        out[t] = later
    return out


class Sb3:
    """A Stable-Baselines3 model on a `BonusVecEnv`; it collects but does not train."""

    def __init__(self, bonus: Any, walks: Sequence[Walk], scale: float, *, algorithm: str = "PPO", pay: bool = True):
        import stable_baselines3 as sb3
        from stable_baselines3.common.monitor import Monitor
        from stable_baselines3.common.vec_env import DummyVecEnv

        from voronaut.sb3 import BonusReplayBuffer, BonusVecEnv

        make = [lambda walk=walk: Monitor(WalkEnv(walk)) for walk in walks]
        self.env = BonusVecEnv(DummyVecEnv(make), bonus, scale=scale, update_every=STEPS, pay=pay)
        common: dict[str, Any] = {"seed": 0, "device": "cpu", "policy_kwargs": {"net_arch": [4]}}
        if algorithm == "PPO":
            common |= {"n_steps": STEPS, "batch_size": STEPS, "gamma": GAMMA, "gae_lambda": LAM}
        else:
            common |= {"buffer_size": 1000, "learning_starts": 1000, "train_freq": STEPS}
        if not pay:
            common["replay_buffer_class"] = BonusReplayBuffer
        self.model = getattr(sb3, algorithm)("MlpPolicy", self.env, **common)

    @property
    def bonus(self) -> Any:
        return self.env.bonus

    def collect(self) -> Rollout:
        model = self.model
        _, callback = model._setup_learn(STEPS * 3, None)
        if hasattr(model, "rollout_buffer"):
            model.collect_rollouts(model.env, callback, model.rollout_buffer, STEPS)
            rewards, advantages = model.rollout_buffer.rewards, model.rollout_buffer.advantages
        else:
            model.collect_rollouts(model.env, callback, model.train_freq, model.replay_buffer, learning_starts=1000)
            rewards, advantages = self._sampled(), None
        return Rollout(rewards, [episode["r"] for episode in model.ep_info_buffer], advantages, GAMMA, LAM)

    def _sampled(self) -> NDArray[Any]:
        """Rewards (t, n) as the learner gets them: whatever comes out of the buffer, sorted by where it belongs."""
        buffer = self.model.replay_buffer
        rewards = np.full((STEPS, 3), np.nan)
        while np.isnan(rewards).any():
            batch = buffer.sample(200)
            for state, reward in zip(batch.next_observations.numpy(), batch.rewards.numpy(), strict=True):
                walk, episode, time = state[:3].astype(int)
                rewards[episode * (4 + walk) + time - 1, walk] = reward[0]
        return rewards

    def save(self, path: Path) -> None:
        self.env.save(path)

    def load(self, path: Path) -> None:
        from voronaut.sb3 import BonusVecEnv

        self.env = BonusVecEnv.load(path, self.env.venv, bonus=self.env.bonus)


class VectorLoop:
    """A hand-written loop on `BonusVectorEnv`, in one environment of three walks or three environments of one.

    Apart, because NEXT_STEP spends a step per episode on resetting: walks of unequal length would not stay abreast.
    """

    def __init__(self, bonus: Any, walks: Sequence[Walk], scale: float, *, mode: str) -> None:
        groups = [[walk] for walk in walks] if mode == "NEXT_STEP" else [walks]
        self.envs = [self._wrap(bonus, group, scale, mode) for group in groups]
        self.mode, self.returns = mode, list[float]()

    @staticmethod
    def _wrap(bonus: Any, group: Sequence[Walk], scale: float, mode: str) -> Any:
        import gymnasium as gym

        from voronaut.adapters.gymnasium_env import BonusVectorEnv

        make = [lambda walk=walk: WalkEnv(walk) for walk in group]
        envs = gym.vector.SyncVectorEnv(make, autoreset_mode=gym.vector.AutoresetMode[mode])
        return BonusVectorEnv(envs, bonus, scale=scale, update_every=1)

    @property
    def bonus(self) -> Any:
        return self.envs[0].bonus

    def collect(self) -> Rollout:
        columns = [self._collect(env) for env in self.envs]
        rewards, ends = (np.concatenate(parts, axis=1) for parts in zip(*columns, strict=True))
        return Rollout(rewards, self.returns, gae(rewards, ends), GAMMA, LAM)

    def _collect(self, env: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        env.reset(seed=0)
        rewards, ends, sums = [], [], np.zeros(env.num_envs)
        while len(rewards) < STEPS:
            _, reward, terminated, truncated, info = env.step(env.action_space.sample())
            done = terminated | truncated
            self._log(sums, info["extrinsic_reward"], done)
            if done.any() and self.mode == "DISABLED":
                env.reset(options={"reset_mask": done})
            if info["_bonus"].all():
                rewards.append(reward)
                ends.append(done)
        return np.array(rewards), np.array(ends)

    def _log(self, sums: NDArray[Any], extrinsic: NDArray[Any], done: NDArray[Any]) -> None:
        """By hand: RecordEpisodeStatistics miscounts at partial resets, and before Gymnasium 1.4 in SAME_STEP mode."""
        sums += extrinsic
        self.returns += sums[done].tolist()
        sums[done] = 0

    def save(self, path: Path) -> None:
        self.envs[0].save(path)

    def load(self, path: Path) -> None:
        self.envs[0] = type(self.envs[0]).load(path, self.envs[0].env, bonus=self.bonus)


class SingleLoop:
    """One `BonusEnv` per walk, sharing a bonus."""

    def __init__(self, bonus: Any, walks: Sequence[Walk], scale: float) -> None:
        from gymnasium.wrappers import RecordEpisodeStatistics

        from voronaut.adapters.gymnasium_env import BonusEnv

        self.envs = [BonusEnv(RecordEpisodeStatistics(WalkEnv(w)), bonus, scale=scale, update_every=8) for w in walks]

    @property
    def bonus(self) -> Any:
        return self.envs[0].bonus

    def collect(self) -> Rollout:
        rewards, ends, returns = np.zeros((STEPS, 3)), np.zeros((STEPS, 3), bool), []
        for i, env in enumerate(self.envs):
            env.reset(seed=0)
            for t in range(STEPS):
                _, rewards[t, i], terminated, truncated, info = env.step(env.action_space.sample())
                ends[t, i] = terminated or truncated
                if ends[t, i]:
                    returns.append(float(info["episode"]["r"]))
                    env.reset()
        return Rollout(rewards, returns, gae(rewards, ends), GAMMA, LAM)

    def save(self, path: Path) -> None:
        self.envs[0].save(path)

    def load(self, path: Path) -> None:
        self.envs[0] = type(self.envs[0]).load(path, self.envs[0].env, bonus=self.bonus)


class TorchRL:
    """A Collector and GAE on a `TransformedEnv` around a SerialEnv."""

    def __init__(self, bonus: Any, walks: Sequence[Walk], scale: float) -> None:
        import torch
        from tensordict.nn import TensorDictModule
        from torchrl.envs import Compose, GymWrapper, RewardSum, SerialEnv, TransformedEnv
        from torchrl.objectives.value import GAE

        from voronaut.adapters.torchrl_env import BonusTransform

        make = [lambda walk=walk: GymWrapper(WalkEnv(walk)) for walk in walks]
        pay = BonusTransform(bonus, scale=scale, update_every=STEPS, add_to_reward=True)
        self.env = TransformedEnv(SerialEnv(3, make), Compose(RewardSum(in_keys=["reward"]), pay))
        torch.manual_seed(0)
        value = TensorDictModule(torch.nn.Linear(4, 1), in_keys=["observation"], out_keys=["state_value"])
        self.advantage = GAE(gamma=GAMMA, lmbda=LAM, value_network=value, average_gae=False)
        self.pay = pay

    @property
    def bonus(self) -> Any:
        return self.pay.bonus

    def collect(self) -> Rollout:
        from torchrl.collectors import Collector

        collector = Collector(self.env, None, frames_per_batch=STEPS * 3, total_frames=STEPS * 3)
        data = self.advantage(next(iter(collector)))
        done = data["next", "done"]
        returns = data["next", "episode_reward"][done].tolist()
        rewards, advantages = (x.squeeze(-1).T.numpy() for x in (data["next", "reward"], data["advantage"]))
        return Rollout(rewards, returns, advantages, GAMMA, LAM)

    def save(self, path: Path) -> None:
        import torch

        torch.save(self.env.state_dict(), path)

    def load(self, path: Path) -> None:
        import torch

        self.env.load_state_dict(torch.load(path, weights_only=True))
