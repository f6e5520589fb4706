"""`BonusCallback`: the bonus in the model's log, its file beside the model's checkpoints, its progress kept."""

import math
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import unwrap_vec_wrapper

from voronaut.adapters.sb3.env import BonusVecEnv
from voronaut.helpers import npz


class BonusCallback(BaseCallback):
    """Logs `bonus/paid` (per step), `bonus/extrinsic_return`, `bonus/scale` and the bonus's metrics (`bonus/entropy`).

    Args:
        save_freq: calls between files, as CheckpointCallback counts them; 0 saves none.
        save_path: folder of the files, named as CheckpointCallback names its own: prefix_bonus_1000_steps.npz.
        name_prefix: CheckpointCallback's.
    """

    def __init__(
        self, save_freq: int = 0, save_path: npz.Where | None = None, name_prefix: str = "rl_model", verbose: int = 0
    ) -> None:
        super().__init__(verbose)
        if save_freq and save_path is None:
            raise ValueError(f"save_freq={save_freq} needs a folder: pass save_path=.")
        self.save_freq, self.name_prefix = save_freq, name_prefix
        self.save_path = None if save_path is None else Path(save_path)
        self._logged = -1

    def _init_callback(self) -> None:
        found = unwrap_vec_wrapper(self.training_env, BonusVecEnv)
        if found is None:
            raise ValueError("BonusCallback found no bonus: give the model BonusVecEnv(env, bonus) as its environment.")
        self.bonus_env: Any = found
        if self.save_path is not None:
            self.save_path.mkdir(parents=True, exist_ok=True)

    def _on_training_start(self) -> None:
        self._total = int(self.locals["total_timesteps"])
        self._tell_progress()

    def _on_step(self) -> bool:
        env, log = self.bonus_env, self.logger
        self._tell_progress()
        log.record_mean("bonus/paid", self._paid())
        for info in self.locals["infos"]:
            if "extrinsic_return" in info:
                log.record_mean("bonus/extrinsic_return", info["extrinsic_return"])
        if env.payer.updates != self._logged:  # metrics cost more than a step and change only with updates
            self._logged = env.payer.updates
            self._log_metrics()
        if self.save_freq and self.n_calls % self.save_freq == 0:
            self._save()
        return True

    def _log_metrics(self) -> None:
        self.logger.record("bonus/scale", self.bonus_env.payer.weight())
        for name, value in self.bonus_env.bonus.metrics().items():
            if not math.isnan(value):
                self.logger.record(f"bonus/{name}", value)

    def _paid(self) -> float:
        """Mean over the environments, or over the batch that the replay buffer paid last."""
        if self.bonus_env.pays:
            return float(self.bonus_env.last_bonus.mean())
        return float(getattr(getattr(self.model, "replay_buffer", None), "last_bonus", 0.0))

    def _save(self) -> None:
        assert self.save_path is not None
        path = self.save_path / f"{self.name_prefix}_bonus_{self.num_timesteps}_steps.npz"
        self.bonus_env.save(path)
        if self.verbose >= 2:
            print(f"Saving bonus to {path}")

    def _tell_progress(self) -> None:
        self.bonus_env.payer.progress = min(1.0, self.num_timesteps / self._total)
