"""RND and batch RE3 in plain torch at the paper's sizes: what `voronaut bench gpu` holds KME against."""

from typing import Any

import torch
from torch import Tensor, nn

BLOCK = 4096  # states whose distances to all others are held at once


def gaussian(size: int, dim: int, device: str) -> Tensor:
    """Standard normal states (size, dim)."""
    return torch.randn(size, dim, device=device, generator=torch.Generator(device).manual_seed(1))


def encoder(dim: int, hidden: int, features: int, device: str) -> Any:
    """dim → hidden → hidden → features with ReLU between."""
    torch.manual_seed(0)
    layers = (nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, features))
    return nn.Sequential(*layers).to(device)


class RND:
    """Random network distillation (Burda et al. 2018): a predictor learns a fixed random target."""

    def __init__(self, dim: int, device: str, *, hidden: int, features: int) -> None:
        self.target, self.predictor = (encoder(dim, hidden, features, device) for _ in range(2))
        self.target.requires_grad_(False)
        self.adam = torch.optim.Adam(self.predictor.parameters(), lr=1e-4)

    @torch.no_grad()
    def rewards(self, states: Tensor) -> Tensor:
        """(n, d) -> (n,): squared prediction errors."""
        error: Tensor = self.predictor(states) - self.target(states)
        return error.square().mean(dim=1)

    def update(self, states: Tensor, batch: int, fraction: float) -> None:
        """One pass over a random share of the states, `batch` per Adam step."""
        order = torch.randperm(len(states), device=states.device)[: max(1, int(fraction * len(states)))]
        for part in torch.split(order, batch):
            rows = states[part]
            error = (self.predictor(rows) - self.target(rows)).square().mean()
            self.adam.zero_grad()
            error.backward()
            self.adam.step()


@torch.no_grad()
def neighbours(net: Any, states: Tensor, k: int) -> Tensor:
    """RE3 (Seo et al. 2021): log of 1 + distance to the k-th nearest encoded state of the batch, by blocks."""
    codes: Tensor = net(states)
    parts = [
        torch.cdist(part, codes).topk(k + 1, dim=1, largest=False).values[:, -1] for part in torch.split(codes, BLOCK)
    ]
    return torch.log1p(torch.cat(parts))
