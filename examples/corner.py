"""A task for the examples beside this file: what pays lies behind a wall, where random steps hardly ever get."""

from typing import Any

import gymnasium
import numpy as np


class Corner(gymnasium.Env):
    """50 steps of at most 0.1 a side from the lower left corner of a square; 1 for each at x > 0.5 and y < 0.

    x and y lie between -1 and 1. At x = 0 stands a wall, open above y = 0: no single direction leads there.
    """

    observation_space = action_space = gymnasium.spaces.Box(-1, 1, (2,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        self.place, self.steps = np.full(2, -0.95, np.float32), 0
        return self.place, {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        before, self.steps = self.place, self.steps + 1
        self.place = np.clip(before + 0.1 * action, -1, 1).astype(np.float32)
        if before[0] * self.place[0] <= 0 and self.place[1] < 0:
            self.place[0] = before[0]
        return self.place, float(self.place[0] > 0.5 and self.place[1] < 0), False, self.steps == 50, {}
