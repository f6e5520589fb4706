"""A 2-D maze: a point walks, thin walls stop it, and reward waits at the far end of the way. NumPy and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voronaut.tasks.base import Array, State, Step, bounded, check_fits, env_seeds

MAZE = """
+--+--+--+--+
|          G|
+  +--+--+--+
|        |  |
+--+--+  +  +
|  |        |
+  +  +--+--+
|S          |
+--+--+--+--+
"""
SPEED = 0.2  # cells per step and axis, at most
MARGIN = 0.04  # how close to a wall the point gets
EPISODE_STEPS = 200
SPREAD = 0.05  # of the starting points


class Plan(NamedTuple):
    """A maze as numbers; x counts cells to the right of the start's middle, y cells above it."""

    low: NDArray[np.float64]  # (2, rows, columns): how far left (0) or down (1) one gets from a cell; -inf: no wall
    high: NDArray[np.float64]  # the same to the right and up
    progress: NDArray[np.float32]  # (rows, columns): 1 at the goal, 0 at the cell with the longest way to it
    origin: tuple[int, int]  # (column, row) of the start


def read_plan(text: str) -> Plan:
    """A maze drawn with +, -- and |, S at the start and G at the goal, row 0 at the bottom."""
    lines = text.strip("\n").splitlines()[::-1]
    rows, columns = len(lines) // 2, len(lines[0]) // 3
    inside = [[lines[2 * r + 1][3 * c + 1 : 3 * c + 3] for c in range(columns)] for r in range(rows)]
    spots = {mark: (c, r) for r in range(rows) for c in range(columns) for mark in "SG" if mark in inside[r][c]}
    upright = np.array([[lines[2 * r + 1][3 * c] == "|" for c in range(columns + 1)] for r in range(rows)])
    level = np.array([[lines[2 * r][3 * c + 1] == "-" for c in range(columns)] for r in range(rows + 1)])
    left = np.arange(columns)[None] - 0.5 - spots["S"][0]
    below = np.arange(rows)[:, None] - 0.5 - spots["S"][1]
    low = [np.where(upright[:, :-1], left + MARGIN, -np.inf), np.where(level[:-1], below + MARGIN, -np.inf)]
    high = [np.where(upright[:, 1:], left + 1 - MARGIN, np.inf), np.where(level[1:], below + 1 - MARGIN, np.inf)]
    way = _distances(upright, level, spots["G"])
    return Plan(np.array(low), np.array(high), (1 - way / way.max()).astype(np.float32), spots["S"])


def _distances(upright: NDArray[np.bool_], level: NDArray[np.bool_], goal: tuple[int, int]) -> NDArray[np.float64]:
    """Cells on the shortest way to the goal from every cell (rows, columns)."""
    way = np.full((upright.shape[0], level.shape[1]), np.inf)
    way[goal[1], goal[0]] = 0
    for _ in range(way.size):
        for wall, near, far in ((upright[:, 1:-1], way[:, :-1], way[:, 1:]), (level[1:-1], way[:-1], way[1:])):
            np.copyto(near, np.minimum(near, far + 1), where=~wall)
            np.copyto(far, np.minimum(far, near + 1), where=~wall)
    if not np.isfinite(way).all():
        raise ValueError("some cells of the maze have no way to the goal. Open a wall.")
    return way


class MazeTask:
    """Points in the maze. State and observation: (x, y), in cells from the start. Action: the step, (x, y) in [-1, 1].

    The dense reward is the progress along the way to the goal's cell, the reward 1 inside it and 0 elsewhere.
    Nothing ends an episode but its step limit.
    """

    resumes_exactly = True
    obs_dim = action_dim = 2
    choices = 0

    def __init__(
        self, seeds: Sequence[int], envs_per_seed: int = 16, *, episode_steps: float | None = None, text: str = MAZE
    ) -> None:
        self.plan = read_plan(text)
        self._corner = np.array(self.plan.origin) + 0.5
        self._limit = episode_steps or EPISODE_STEPS
        self.reseed(seeds, envs_per_seed)
        self.action_low, self.action_high = -np.ones(2), np.ones(2)
        self._obs: Array | None = None

    def reseed(self, seeds: Sequence[int], envs_per_seed: int) -> None:
        """Start the random numbers of every environment anew; the next reset uses them."""
        self._seeds = np.array(env_seeds(seeds, envs_per_seed), np.int64)
        self.num_envs = len(self._seeds)
        self._episodes, self._steps = np.zeros((2, self.num_envs), np.int64)
        self._at = np.zeros((self.num_envs, 2))

    def reset(self) -> Array:
        """Start a new episode everywhere -> obs (n, d)."""
        self._restart(np.arange(self.num_envs))
        self._obs = self._at.astype(np.float32)
        return self._obs

    def step(self, actions: Any) -> Step:
        """Clip the actions (n, 2) to the bounds and take them, x first, then y; episodes that end start anew."""
        if self._obs is None:
            raise RuntimeError("the task has not started: call reset() before step().")
        moves = SPEED * bounded(actions, self.action_low, self.action_high, self.num_envs)
        for axis in (0, 1):
            row, column = self._cells()
            wall = self.plan.low[axis, row, column], self.plan.high[axis, row, column]
            self._at[:, axis] = np.minimum(np.maximum(self._at[:, axis] + moves[:, axis], wall[0]), wall[1])
        dense = self.plan.progress[self._cells()]
        self._steps += 1
        truncated = self._steps >= self._limit
        next_states = self._obs = self._at.astype(np.float32)
        if truncated.any():
            self._restart(np.flatnonzero(truncated))
            self._obs = self._at.astype(np.float32)
        rewards = (dense == 1).astype(np.float32)
        return Step(self._obs, next_states, rewards, dense, np.zeros_like(truncated), truncated)

    def state_dict(self) -> State:
        """Where every point is, in which episode and at which step of it."""
        if self._obs is None:
            raise RuntimeError("the task has not started: call reset() before state_dict().")
        return {"at": self._at.copy(), "episodes": self._episodes.copy(), "steps": self._steps.copy()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> Array:
        """Go on exactly from `state_dict` -> the observations to act on."""
        check_fits(state, {"at": self._at, "episodes": self._episodes, "steps": self._steps})
        self._at, self._episodes, self._steps = (np.array(state[key]) for key in ("at", "episodes", "steps"))
        self._obs = self._at.astype(np.float32)
        return self._obs

    def render(self, index: int = 0) -> NDArray[np.uint8]:
        """A picture (height, width, 3) of one environment."""
        return picture(self.plan, self._at[index])

    def close(self) -> None:
        """Nothing to free."""

    def _cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(row, column) of every point."""
        cell = (self._at + self._corner).astype(np.int64)
        return cell[:, 1], cell[:, 0]

    def _restart(self, indices: NDArray[np.intp]) -> None:
        """New starting points, from each environment's seed and number of episodes alone: no random state to save."""
        for index in indices:
            rng = np.random.default_rng([self._seeds[index], self._episodes[index]])
            self._at[index] = rng.uniform(-SPREAD, SPREAD, 2)
        self._episodes[indices] += 1
        self._steps[indices] = 0


def walls(plan: Plan) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Both ends of every piece of wall, in the states' coordinates."""
    rows, columns = plan.progress.shape
    lines = []
    for row, column in np.ndindex(rows, columns):
        x, y = column - 0.5 - plan.origin[0], row - 0.5 - plan.origin[1]
        if np.isfinite(plan.low[0, row, column]):
            lines.append(((x, y), (x, y + 1)))
        if np.isfinite(plan.low[1, row, column]):
            lines.append(((x, y), (x + 1, y)))
        if column == columns - 1:
            lines.append(((x + 1, y), (x + 1, y + 1)))
        if row == rows - 1:
            lines.append(((x, y + 1), (x + 1, y + 1)))
    return lines


def picture(plan: Plan, at: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The maze from above (height, width, 3): walls black, goal green, the point blue."""
    (rows, columns), size = plan.progress.shape, 64  # pixels of a cell
    canvas = np.full((rows * size, columns * size, 3), 255, np.uint8)

    def pixel(x: float, y: float) -> tuple[int, int]:
        return round((y + 0.5 + plan.origin[1]) * size), round((x + 0.5 + plan.origin[0]) * size)

    for row, column in zip(*np.nonzero(plan.progress == 1), strict=True):
        canvas[row * size : (row + 1) * size, column * size : (column + 1) * size] = (204, 232, 214)
    for (x0, y0), (x1, y1) in walls(plan):
        (top, left), (bottom, right) = pixel(x0, y0), pixel(x1, y1)
        canvas[max(top - 2, 0) : bottom + 2, max(left - 2, 0) : right + 2] = (40, 40, 40)
    y, x = pixel(*at)
    canvas[max(y - 5, 0) : y + 6, max(x - 5, 0) : x + 6] = (59, 111, 182)
    return canvas[::-1]
