"""Hopper, paid only beyond a distance: a task that ends when the body falls, and that nothing was tuned on."""

from typing import Any

import gymnasium

FAR = 2.0  # metres from the start; a step beyond pays 1


class Far(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays 1 for every step that ends beyond `FAR`, and nothing before."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one action."""
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, float(info["x_position"] >= FAR), terminated, truncated, info


def make(render_mode: str | None = None) -> Far:
    """Gymnasium's Hopper-v5, a thousand steps at most; where it is cannot be seen, as usual there."""
    return Far(gymnasium.make("Hopper-v5", render_mode=render_mode))
