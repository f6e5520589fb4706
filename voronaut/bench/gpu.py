"""`voronaut bench gpu`: states per second of KME on tensors of a GPU, beside what the device can do at best.

The floor counts what no exact method can leave out: one product of states and clusters (2kd flops per state), reading
each state and writing its reward once (4d + 4 bytes). Its time is the larger of both, at rates measured in the same
run: of copies for bytes, and for flops that of float32 matrix products, or of TF32 ones divided by three, which is how
tensor cores reach float32's accuracy. The second is the faster one, so it is the harder judge; both are shown.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from voronaut import presets
from voronaut.bench import measure
from voronaut.helpers import machine

DEVICE = "cuda"
CLUSTERS, DIMS = 300, (17, 67)
SIZES = tuple(1 << e for e in (14, 16, 18, 20, 22, 24))
WIDE = ((1024, 67), (4096, 17), (4096, 256))
WIDE_STATES, UPDATE_STATES, ROLLOUTS = 1 << 16, 1 << 17, (1 << 14, 1 << 17)
FIRST_STATES = 4096
MATRIX, COPY = 8192, 1 << 28
ENCODER, FEATURES, RE3_FEATURES, NEIGHBORS, BATCH, FRACTION = 1024, 512, 50, 3, 256, 0.25
SECONDS = 0.4  # for each number
# What a KME clusters; the first is one clustering, by whose cost that of views is judged.
MEMORIES: dict[str, dict[str, Any]] = {
    "the paper's, 300 clusters": dict(presets.paper().kme),
    "the whole state, 300 clusters": {"views": 1},
    "views of two, 64 clusters each": {"view_dim": 2},
    "views of one, 32 clusters each": {"view_dim": 1},
}
MEMORY_STATES = 1 << 18


def seconds(call: Callable[[], Any], budget: float | None = None) -> float:
    """The fastest of several calls, by the device's own clock, after one to warm up."""
    import torch

    call()
    best, started, budget = float("inf"), time.perf_counter(), SECONDS if budget is None else budget
    for _ in range(20):
        if DEVICE == "cuda":
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()
            first.record()
            call()
            last.record()
            torch.cuda.synchronize()
            best = min(best, first.elapsed_time(last) * 1e-3)
        else:
            before = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - before)
        if time.perf_counter() - started > budget:
            break
    return best


def ceilings() -> dict[str, float]:
    """Flops per second of float32 and of TF32 matrix products, and bytes per second of copies."""
    import torch

    a, b = (torch.randn(MATRIX, MATRIX, device=DEVICE) for _ in range(2))
    flops, matmul = 2.0 * MATRIX**3, torch.backends.cuda.matmul
    matmul.allow_tf32 = False
    exact = flops / seconds(lambda: a @ b)
    matmul.allow_tf32 = True
    quick = flops / seconds(lambda: a @ b)
    matmul.allow_tf32 = False
    source = torch.empty(COPY, device=DEVICE)
    target = torch.empty_like(source)
    return {"float32": exact, "tf32": quick, "copy": 8.0 * COPY / seconds(lambda: target.copy_(source))}


def floor(clusters: int, dim: int, rates: dict[str, float], *, tensor_cores: bool) -> float:
    """Seconds per state that cannot be gone below."""
    rate = rates["tf32"] / 3 if tensor_cores else rates["float32"]
    return max(2.0 * clusters * dim / rate, (4.0 * dim + 4) / rates["copy"])


def settled(clusters: int, dim: int) -> tuple[Any, Any, Any]:
    """Centers, counts and rules after a few rollouts of Gaussian states."""
    import torch

    from voronaut.kernels import gpu as kernel
    from voronaut.kernels.rules import Rules

    rules, draw = Rules(0.05, 1e-4), torch.Generator(DEVICE).manual_seed(0)
    centers = torch.randn(clusters, dim, generator=draw, device=DEVICE)
    counts = torch.ones(clusters, dtype=torch.int64, device=DEVICE)
    for _ in range(4):
        states = torch.randn(ROLLOUTS[0], dim, generator=draw, device=DEVICE)
        good = torch.full((), len(states), dtype=torch.int64, device=DEVICE)
        centers, counts = kernel.update(centers, counts, states, good, rules)
    return centers, counts, rules


def pay(clusters: int, dim: int, sizes: tuple[int, ...], rates: dict[str, float]) -> list[dict[str, float]]:
    """Rewards against frozen clusters, per number of states."""
    import torch

    from voronaut.kernels import gpu as kernel

    centers, counts, rules = settled(clusters, dim)
    view, shift, rows = kernel.prepare(centers, counts, rules), torch.zeros(dim, device=DEVICE), []
    everything = torch.randn(max(sizes), dim, device=DEVICE)
    for size in sizes:
        states = everything[:size]
        took = seconds(partial(kernel.rewards, view, states, shift)) / size
        rows.append({"clusters": clusters, "dim": dim, "states": size, "M states/s": 1e-6 / took,
                     "of the float32 floor": floor(clusters, dim, rates, tensor_cores=False) / took,
                     "of the 3xTF32 floor": floor(clusters, dim, rates, tensor_cores=True) / took})  # fmt: skip
    return rows


def learn(clusters: int, dim: int, size: int) -> dict[str, float]:
    """The update of settled clusters, and from zeros, where states hang on each other; making clusters ready."""
    import torch

    from voronaut.kernels import gpu as kernel

    centers, counts, rules = settled(clusters, dim)
    states, good = torch.randn(size, dim, device=DEVICE), torch.full((), size, dtype=torch.int64, device=DEVICE)
    took = seconds(lambda: kernel.update(centers, counts, states, good, rules)) / size
    few, zeros, ones = good.clamp(max=FIRST_STATES), torch.zeros_like(centers), torch.ones_like(counts)
    start = states[:FIRST_STATES]
    first = seconds(lambda: kernel.update(zeros, ones, start, few, rules)) / len(start)
    ready = seconds(lambda: kernel.prepare(centers, counts, rules))
    return {"clusters": clusters, "dim": dim, "states": size, "M states/s": 1e-6 / took,
            f"first {FIRST_STATES} from zeros, M states/s": 1e-6 / first, "prepare µs": ready * 1e6}  # fmt: skip


def rivals(dim: int, size: int) -> dict[str, float]:
    """Milliseconds per rollout of `size` states: KME through its public face, RND and batch RE3 in plain torch."""
    import voronaut as vn
    from voronaut.bench import gpu_rivals

    kme, states = vn.KME(dim, **presets.paper().kme), gpu_rivals.gaussian(size, dim, DEVICE)
    rnd = gpu_rivals.RND(dim, DEVICE, hidden=ENCODER, features=FEATURES)
    re3 = gpu_rivals.encoder(dim, ENCODER, RE3_FEATURES, DEVICE)
    kme.update(states)  # clusters that have learned something, as in training
    work = {
        "KME rewards": lambda: kme.rewards(states),
        "KME update": lambda: kme.update(states),
        "RND rewards": lambda: rnd.rewards(states),
        "RND update": lambda: rnd.update(states, BATCH, FRACTION),
        "RE3 rewards": lambda: gpu_rivals.neighbours(re3, states, NEIGHBORS),
    }
    return {"dim": dim, "states": size, **{f"{name}, ms": seconds(call) * 1e3 for name, call in work.items()}}


def memory(name: str, dim: int, size: int) -> dict[str, Any]:
    """`vn.KME` with one of `MEMORIES` through its public face: rewards and update of a rollout of `size` states."""
    import torch

    import voronaut as vn

    kme, states = vn.KME(dim, seed=0, **MEMORIES[name]), torch.randn(size, dim, device=DEVICE)
    for _ in range(4):
        kme.update(states)
    paid, learned = seconds(lambda: kme.rewards(states)), seconds(lambda: kme.update(states))
    return {"memory": name, "dim": dim, "states": size, "rewards, ms": paid * 1e3, "update, ms": learned * 1e3}


def attempt(rows: list[Any], call: Callable[[], Any]) -> None:
    """Add what `call` finds; where the device has no room, say so and go on."""
    import torch

    try:
        found = call()
        rows.extend(found if isinstance(found, list) else [found])
    except torch.OutOfMemoryError as error:
        print(f"left out: {error}")


def run(folder: Path) -> str:
    """Measure, keep tables and a plot in `folder`, and return the tables."""
    import torch

    if DEVICE == "cuda" and not torch.cuda.is_available():
        raise ValueError("bench gpu needs a CUDA device, and torch sees none. Without one: voronaut bench kernels.")
    rates: dict[str, float] = ceilings()
    parts: dict[str, list[Any]] = {"rewards": [], "update": [], "wide": [], "wide update": [], "memories": [],
                                    "rivals": []}  # fmt: skip
    for dim in DIMS:
        attempt(parts["rewards"], partial(pay, CLUSTERS, dim, SIZES, rates))
        attempt(parts["update"], partial(learn, CLUSTERS, dim, UPDATE_STATES))
        for size in ROLLOUTS:
            attempt(parts["rivals"], partial(rivals, dim, size))
        for name in MEMORIES:
            attempt(parts["memories"], partial(memory, name, dim, MEMORY_STATES))
    for k, dim in WIDE:
        attempt(parts["wide"], partial(pay, k, dim, (WIDE_STATES,), rates))
        attempt(parts["wide update"], partial(learn, k, dim, ROLLOUTS[0]))
    result = {"machine": {**machine.describe(), **device()}, "ceilings": rates, **parts}
    text = measure.keep(folder, "gpu", result, page(result))
    try:
        plot(result, folder / "gpu.png")
    except ImportError as error:
        text += f"\n\nno plot: {error} Draw it later with: voronaut bench gpu --draw"
    return text


def device() -> dict[str, str]:
    """Name of the device and versions of what drives it."""
    import torch

    from voronaut.kernels import gpu as kernel

    known = {"device": torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE, "cuda": str(torch.version.cuda)}
    if kernel.has_triton():
        import triton

        known["triton"] = triton.__version__
    return known


def page(result: dict[str, Any]) -> list[Any]:
    """All tables."""
    rates = result["ceilings"]
    titles = {
        "rewards": f"## Rewards, k = {CLUSTERS}",
        "update": "## Update (the exact sequence), and making clusters ready for rewards",
        "wide": "## Rewards with many clusters",
        "wide update": "## Update with many clusters",
        "memories": "## What is clustered: a rollout, milliseconds",
        "rivals": "## A rollout: KME beside RND (trained on a quarter of it) and batch RE3, milliseconds",
    }
    return [
        "# KME on a GPU",
        f"Ceilings of this device: float32 products {rates['float32'] / 1e12:.1f} Tflop/s, TF32 products "
        f"{rates['tf32'] / 1e12:.1f} Tflop/s, copies {rates['copy'] / 1e12:.2f} TB/s. The floor is the larger of "
        "2kd flops and 4d + 4 bytes per state at these.",
        *(part for name, title in titles.items() if result.get(name) for part in (title, result[name])),
    ]


def redraw(folder: Path) -> str:
    """The plot and the tables, from the kept numbers alone."""
    path = folder / "gpu.json"
    if not path.exists():
        raise ValueError(f"there is no {path}; measure first, on a machine with a GPU: voronaut bench gpu.")
    result = json.loads(path.read_text())
    measure.keep(folder, "gpu", result, page(result))
    plot(result, folder / "gpu.png")
    return str(folder / "gpu.png")


def plot(result: dict[str, Any], path: Path) -> None:
    """Rewards per second against the number of states, with both floors; and what a rollout costs."""
    from voronaut.helpers.plotting import COLORS, figure

    with figure(path, 2, (11, 4.2)) as (left, right):
        for dim, color in zip(DIMS, (COLORS["kme"], COLORS["none"]), strict=False):
            rows = [row for row in result["rewards"] if row["dim"] == dim]
            x, y = [row["states"] for row in rows], [row["M states/s"] for row in rows]
            left.loglog(x, y, "o-", color=color, label=f"d = {dim}")
            for name, style in (("of the float32 floor", "--"), ("of the 3xTF32 floor", ":")):
                left.axhline(
                    y[-1] / rows[-1][name], color=color, linestyle=style, linewidth=1, label=f"{name[7:]}, d = {dim}"
                )
        left.set(xlabel="states", ylabel="million rewards per second")
        left.legend(fontsize=8)
        names = [name for name in result["rivals"][0] if name.endswith("ms")]
        for i, row in enumerate(result["rivals"]):
            places = [place + 0.2 * i for place in range(len(names))]
            right.bar(places, [row[n] for n in names], 0.18, label=f"d = {row['dim']}, {row['states']} states")
        right.set(yscale="log", ylabel="milliseconds per rollout")
        right.set_xticks([p + 0.3 for p in range(len(names))], [n[:-4].replace(" ", "\n") for n in names])
        right.legend(fontsize=8)
