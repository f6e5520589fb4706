"""`prepared.prepare` for float32 clusters on a GPU: the same from five launches, in buffers that may be kept.

Three of them are Triton's, one program per cluster. 1. `layout_kernel` lays a center out for all that read it.
2. `survey_kernel` finds its gap, the gap were its nearest not there, and its distances. 3. `lists_kernel` makes its
short list. Sums are float64; distances and gaps pass from launch to launch as float32.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from voronaut.kernels.gpu.fused.shared import concave, split
from voronaut.kernels.gpu.prepared import EDGE, Lists, Prepared, limit_of
from voronaut.kernels.rules import LOG, Rules


def allocate(centers: Tensor, *, width: int, deep: int, length: int, log: bool) -> Prepared:
    """Room for clusters made ready, with nothing in it."""
    (k, d), new = centers.shape, centers.new_empty
    whole, long = centers.new_empty(0, dtype=torch.int32).new_empty, length + 1
    half = centers.new_empty(0, dtype=torch.float16).new_empty
    lists = Lists(whole(k, long), new(k, long))
    return Prepared(
        centers, new(d), new(width, deep), new(d, width), half(width, deep), half(width, deep), new(EDGE, width),
        new(width), new(k, width), new(width), new(width), new(width), whole(width), new(width), new(width, 4),
        lists, new(8), log,
    )  # fmt: skip


def halves(value: float) -> tuple[float, float]:
    """A number as the sum of two that float32 holds."""
    high = float(torch.tensor(value, dtype=torch.float32))
    return high, float(torch.tensor(value - high, dtype=torch.float32))


def fill(
    room: Prepared, centers: Tensor, counts: Tensor, rules: Rules, floor: Tensor | None = None, *, product: int
) -> Prepared:
    """Clusters (k, d) made ready in `room`. OUT: room."""
    (k, d), (width, deep), lists = centers.shape, room.rows.shape, room.lists
    wide = 1 << (width - 1).bit_length()
    balance, minimum = halves(rules.balance), counts.min()
    floor = torch.full((), rules.floor, dtype=torch.float64, device=centers.device) if floor is None else floor
    shadows = lists.others.new_empty(k)
    torch.mean(centers, dim=0, out=room.middle)
    most = torch.linalg.vector_norm(centers - room.middle, ord=math.inf)
    layout_kernel[(width,)](
        centers.contiguous(), counts, minimum, room.middle, most, room.rows, room.columns, room.high, room.low,
        room.edges, room.norms, room.weight, room.facts, k, d, *balance, deep, product, WIDTH=width,
        D=1 << (deep - 1).bit_length(), num_warps=1,
    )  # fmt: skip
    warps = 4 if wide <= 1024 else 8
    survey_kernel[(width,)](
        room.columns, counts, minimum, room.pairs, room.gap, room.second, room.nearest, room.facts, shadows, k, d,
        *balance, WIDTH=width, W=wide, num_warps=warps,
    )  # fmt: skip
    lists_kernel[(width,)](
        counts, minimum, floor, most, room.pairs, room.norms, room.weight, room.gap, room.second, room.nearest, shadows,
        room.before, lists.others, lists.keys, room.scalars, k, *balance, rules.step_size, limit_of(torch.float32, d),
        WIDTH=width, W=wide, T=lists.keys.shape[1] - 1, LOG=rules.objective == LOG, num_warps=warps,
    )  # fmt: skip
    return room._replace(centers=centers)


@triton.jit
def layout_kernel(
    CENTERS, COUNTS, MINIMUM, MIDDLE, MOST, ROWS, CT, HIGH, LOW, EDGES, NORM, WEIGHT, FACTS, k, d, balance_high,
    balance_low, deep, product, WIDTH: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """OUT: ROWS, HIGH, LOW (WIDTH, deep), CT (d, WIDTH), EDGES (3, WIDTH), NORM, WEIGHT (WIDTH,).

    Also the first two columns of FACTS (WIDTH, 4).
    """
    j, p = tl.program_id(0), tl.arange(0, D)
    here = p < tl.where(j < k, d, 0)
    row = tl.load(CENTERS + j * d + p, mask=here, other=0.0)
    centred = tl.where(here, row - tl.load(MIDDLE + p, mask=here, other=0.0), 0.0) / unit_of(MOST)
    high, low = split(centred)
    tl.store(ROWS + j * deep + p, row, mask=p < deep)
    tl.store(HIGH + j * deep + p, high, mask=p < deep)
    tl.store(LOW + j * deep + p, low, mask=p < deep)
    tl.store(CT + p * WIDTH + j, row, mask=p < d)
    for e in tl.static_range(3):
        tl.store(EDGES + e * WIDTH + j, tl.sum(tl.where(p == product + e, centred, 0.0), 0))
    wide = centred.to(tl.float64)
    tl.store(NORM + j, tl.sum(wide * wide, 0).to(tl.float32))
    weight = weights(COUNTS, MINIMUM, j, k, balance_high, balance_low).to(tl.float32)
    weight = tl.where(j < k, weight, float("inf"))
    tl.store(WEIGHT + j, weight)
    tl.store(FACTS + 4 * j, tl.sum(tl.where(p == product, row, 0.0), 0))
    tl.store(FACTS + 4 * j + 1, weight)


@triton.jit
def survey_kernel(
    CT, COUNTS, MINIMUM, PAIRS, GAP, SECOND, NEAREST, FACTS, SHADOWS, k, d, balance_high, balance_low,
    WIDTH: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """OUT: PAIRS (k, WIDTH), GAP, SECOND, NEAREST (WIDTH,), SHADOWS (k,): how many in its place are never worse.

    Also the last two columns of FACTS (WIDTH, 4).
    """
    i, c = tl.program_id(0), tl.arange(0, W)
    if i >= k:
        tl.store(GAP + i, 0.0)
        tl.store(SECOND + i, 0.0)
        tl.store(NEAREST + i, -1)
        tl.store(FACTS + 4 * i + 2, 0.0)
        tl.store(FACTS + 4 * i + 3, 0.0)
        return
    total = tl.zeros((W,), tl.float64)
    for p in range(d):
        other = tl.load(CT + p * WIDTH + c, mask=c < WIDTH, other=0.0).to(tl.float64)
        difference = other - tl.load(CT + p * WIDTH + i).to(tl.float64)
        total += difference * difference
    total = tl.where((c == i) | (c >= k), float("inf"), total)
    tl.store(PAIRS + i * WIDTH + c, total.to(tl.float32), mask=c < WIDTH)
    weight = weights(COUNTS, MINIMUM, c, k, balance_high, balance_low)
    own = weights(COUNTS, MINIMUM, i, k, balance_high, balance_low)
    value = tl.sqrt(total) + weight
    least = tl.min(value, 0)
    nearest = tl.min(tl.where(value == least, c, W - 1), 0)
    second = tl.min(tl.where(c == nearest, float("inf"), value), 0)
    gap, second = (least - own).to(tl.float32), (second - own).to(tl.float32)
    tl.store(GAP + i, gap)
    tl.store(SECOND + i, second)
    tl.store(NEAREST + i, nearest)
    tl.store(FACTS + 4 * i + 2, gap)
    tl.store(FACTS + 4 * i + 3, second)
    ahead = (weight < own) | ((weight == own) & (c < i))
    tl.store(SHADOWS + i, tl.sum(((total == 0.0) & ahead).to(tl.int32), 0))


@triton.jit
def lists_kernel(
    COUNTS, MINIMUM, FLOOR, MOST, PAIRS, NORM, WEIGHT, GAP, SECOND, NEAREST, SHADOWS, BEFORE, OTHERS, KEYS, SCALAR,
    k, balance_high, balance_low, alpha, limit,
    WIDTH: tl.constexpr, W: tl.constexpr, T: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """OUT: BEFORE (WIDTH,), OTHERS, KEYS (k, T + 1), SCALAR (8,)."""
    i, c = tl.program_id(0), tl.arange(0, W)
    inside, floor = c < k, tl.load(FLOOR).to(tl.float64)
    if i >= k:
        tl.store(BEFORE + i, 0.0)
        return
    if LOG:  # noqa: SIM108  # a compile-time branch
        clamp = floor
    else:
        clamp = floor * 0.0
    distance = tl.sqrt(tl.load(PAIRS + i * WIDTH + c, mask=inside, other=float("inf")).to(tl.float64))
    weight = weights(COUNTS, MINIMUM, c, k, balance_high, balance_low)
    own = weights(COUNTS, MINIMUM, i, k, balance_high, balance_low)
    gap = tl.load(GAP + c, mask=inside, other=0.0).to(tl.float64)
    second = tl.load(SECOND + c, mask=inside, other=0.0).to(tl.float64)
    follows = tl.load(NEAREST + c, mask=inside, other=-1) == i
    hides = (distance == 0.0) & ((own < weight) | ((own == weight) & (i < c)))
    hidden = tl.load(SHADOWS + c, mask=inside, other=0) > hides.to(tl.int32)
    near = tl.maximum(distance + weight - (tl.load(GAP + i).to(tl.float64) + own), 0.0)
    entry = tl.maximum(distance - (gap + weight) + ((own + balance_high) + balance_low), 0.0)
    entry = tl.where(gap > clamp, entry, float("inf"))
    # −1 and −2: `prepared`'s FOLLOWS and NEAREST.
    entry = tl.where(follows, tl.where(tl.maximum(gap, second) > clamp, -1.0, float("inf")), entry)
    key = tl.minimum(tl.where(hidden, float("inf"), near), entry)
    key = tl.where(c == tl.load(NEAREST + i), -2.0, key).to(tl.float32)
    for t in range(T + 1):
        least = tl.min(key, 0)
        place = tl.min(tl.where(key == least, c, W - 1), 0)
        follower = tl.load(NEAREST + tl.minimum(place, k - 1)) == i
        tl.store(OTHERS + i * (T + 1) + t, tl.where(place < k, 2 * place + follower.to(tl.int32), 0))
        tl.store(KEYS + i * (T + 1) + t, least)
        key = tl.where(c == place, float("inf"), key)
    tl.store(BEFORE + i, concave(tl.load(GAP + i).to(tl.float64), floor, LOG).to(tl.float32))
    if i == 0:
        tl.store(SCALAR, alpha)
        tl.store(SCALAR + 1, balance_high)
        tl.store(SCALAR + 2, floor.to(tl.float32))
        tl.store(SCALAR + 3, limit)
        unit = unit_of(MOST)
        tl.store(SCALAR + 4, tl.sqrt(tl.max(tl.load(NORM + c, mask=inside, other=0.0), 0)) * unit)
        tl.store(SCALAR + 5, tl.max(tl.load(WEIGHT + c, mask=inside, other=0.0), 0))
        tl.store(SCALAR + 6, unit)
        tl.store(SCALAR + 7, 1.0 / unit)


@triton.jit
def weights(COUNTS, MINIMUM, c, k, balance_high, balance_low):
    """κ (n_c − min n), float64; κ comes in two halves, as a number would lose its precision on the way."""
    above = (tl.load(COUNTS + tl.minimum(c, k - 1)) - tl.load(MINIMUM)).to(tl.float64)
    return above * balance_high + above * balance_low


@triton.jit
def unit_of(MOST):
    """The power of two above the largest coordinate (see `prepared`)."""
    exponent = tl.load(MOST).to(tl.int32, bitcast=True) & 0x7F800000
    return tl.maximum(exponent.to(tl.float32, bitcast=True) * 2.0, 7.888609052210118e-31)
