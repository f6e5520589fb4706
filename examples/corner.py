"""A task for the examples beside this file: it pays in a far corner, which steps taken at random do not reach."""

from typing import Any

import gymnasium
import numpy as np


class Corner(gymnasium.Env):
    """From one corner of a square, 2 wide, 50 steps of at most 0.1 a side; 1 for every step in the opposite corner."""

    observation_space = action_space = gymnasium.spaces.Box(-1, 1, (2,))

    def __init__(self, config: Any = None) -> None:
        """RLlib passes a config."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        self.place, self.steps = np.full(2, -0.95, np.float32), 0
        return self.place, {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.place, self.steps = np.clip(self.place + 0.1 * action, -1, 1).astype(np.float32), self.steps + 1
        return self.place, float(self.place.min() > 0.8), False, self.steps == 50, {}
