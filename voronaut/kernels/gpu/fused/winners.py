"""argmin_j ‖s − μ_j‖ + κ n_j (Eq. 4): the Triton program that finds the winners of states, and its launcher.

Distances come from products on tensor cores (three rounds of float16, in units that give it room: about as exact as
float32) or, in float64, from differences. A winner that is within the rounding of the runner-up is in doubt and decided
later, from differences.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from voronaut.kernels.gpu.fused.shared import (
    edge,
    lowest,
    product,
    put_off,
    some_columns,
    some_rows,
    state_column,
    states_tile,
)
from voronaut.kernels.gpu.prepared import Prepared
from voronaut.kernels.gpu.tiles import Tiles, depth

LONGEST_ROW = 2**23  # numbers from one state to the next: within a tile 32 bits count them


class Batch(NamedTuple):
    """States on their way through the four programs."""

    states: Tensor  # (n, d)
    shift: Tensor  # (d,) what is subtracted from states
    paid: Tensor  # (n,)
    winners: Tensor  # (n,) int32: −1 where in doubt, −2 for a bad state, −3 − i for i to be paid over all clusters
    hard: Tensor  # (n,) int32: states to be paid over all clusters
    again: Tensor  # (n,) int32: states to be done again from differences
    many: Tensor  # (2,) int32: how many of each


def batch_of(p: Prepared, states: Tensor, shift: Tensor) -> Batch:
    """Room for what the programs tell each other: 16 bytes per state, 20 in float64."""
    if states.stride(1) != 1 or states.stride(0) > LONGEST_ROW:
        states = states.contiguous()
    winners, hard, again = torch.empty(3, len(states), dtype=torch.int32, device=states.device).unbind()
    paid, many = torch.empty_like(winners, dtype=p.gap.dtype), winners.new_zeros(2)
    # Tensor cores have no float64: what is hard then goes straight to the list of what is done from differences.
    hard = hard if p.gap.dtype == torch.float32 else again
    return Batch(states, shift.to(p.middle.dtype), paid, winners, hard, again, many)


def first_number(batch: Batch) -> Tensor:
    """Where the length of `batch.hard` stands."""
    return batch.many[1:] if batch.hard is batch.again else batch.many


def rounding(deep: int) -> float:
    """Bound on the error of ‖s‖² + ‖μ‖² − 2 s·μ in units of (‖s‖ + ‖μ‖)².

    Sums begin with −½‖μ‖², so that they are at most half of the unit; norms and the last sums round like float32.
    """
    return product_rounding(deep) + 5 * 2.0**-23


def product_rounding(deep: int) -> float:
    """Bound on the error of s·μ in units of ‖s‖‖μ‖.

    Three products of 11-bit halves leave out 3·2⁻²²; each of their 3D/8 partial sums may be truncated by 2⁻²³; and
    what float16 cannot tell from zero is at most 2⁻²⁵ units in each dimension, of norms of at least a half.
    """
    return 2.0**-23 * (3 * deep / 8 + 6 + math.sqrt(deep))


def register_limit(t: Tiles) -> dict[str, int]:
    """What only NVIDIA's compiler understands."""
    return {} if t.registers is None or torch.version.hip else {"maxnreg": t.registers}


def code(blocks: int) -> int:
    """A power of two, so that each block has a number below it."""
    return 1 << max(1, (blocks - 1).bit_length())


def find_winners(p: Prepared, batch: Batch, t: Tiles) -> None:
    """Each state's cluster. OUT: winners, hard, again, many; paid where the state is bad."""
    (n, d), (width, whole), lists = batch.states.shape, p.rows.shape, p.lists
    deep = depth(d)
    assign_kernel[(-(-n // t.states),)](
        batch.states, batch.paid, batch.winners, batch.hard, batch.again, first_number(batch), batch.shift, p.middle,
        p.high, p.low, p.edges, p.columns, p.norms, p.weight, lists.keys, p.scalars, rounding(deep.sums), n,
        stride=batch.states.stride(0), d=d, WIDTH=width, D=whole, DC=deep.first, DT=deep.tail, DP=deep.product,
        E=deep.edge, BN=t.states, BK=t.clusters, CODE=code(width // t.clusters), T=lists.keys.shape[1] - 1,
        FULL=n >= t.states, PRECISION=t.precision, num_warps=t.warps, num_stages=t.stages, **register_limit(t),
    )  # fmt: skip


@triton.jit
def assign_kernel(
    X, OUT, WIN, LIST, AGAIN, NUMBER, SHIFT, MIDDLE, HIGH, LOW, EDGES, CT, NORM, WEIGHT, KEYS, SCALAR, rounding,
    n, stride: tl.constexpr, d: tl.constexpr,
    WIDTH: tl.constexpr, D: tl.constexpr, DC: tl.constexpr, DT: tl.constexpr, DP: tl.constexpr, E: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, CODE: tl.constexpr, T: tl.constexpr, FULL: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The cluster of each state of a tile (Eq. 4).

    OUT: WIN (n,); OUT (n,) for bad states; LIST (n,), states to be paid over all clusters; AGAIN (n,), states in
    doubt; NUMBER (2,), how many.
    """
    X, first, off, inside, mine = some_rows(X, n, stride, BN, FULL)
    rows = first + tl.arange(0, BN)
    if PRECISION == "direct":
        ok = good_rows(X, off, inside, SHIFT, tl.load(SCALAR + 3), d, CT)
        least, chosen = assign_direct(X, off, ok, SHIFT, CT, WEIGHT, d, WIDTH, BN, BK, 1)
        sure = ok
    else:
        x = states_tile(X, off, inside, SHIFT, MIDDLE, 0, d, DC, NORM)
        least, chosen, ok, doubt = assign_product(
            x, X, off, inside, SHIFT, MIDDLE, HIGH, LOW, EDGES, NORM, WEIGHT, SCALAR, rounding, d,
            WIDTH, D, DC, DT, DP, E, BN, BK, CODE,
        )  # fmt: skip
        put_off(AGAIN, NUMBER + 1, rows, doubt & mine)
        sure = ok & (doubt == 0)
    sure = sure & mine
    i = tl.where(sure, chosen, 0)
    far = sure & beyond_lists(least, i, WEIGHT, KEYS, SCALAR, T)
    if tl.sum(far.to(tl.int32), 0) * 3 > BN:  # the lists would serve too few of this tile
        far = sure
    put_off(LIST, NUMBER, rows, far)
    tl.store(OUT + rows, tl.zeros((BN,), OUT.dtype.element_ty), mask=mine & (ok == 0))
    tl.store(WIN + rows, tl.where(ok, tl.where(sure, tl.where(far, -3 - i, i), -1), -2), mask=mine)


@triton.jit
def assign_product(
    x, X, off, ok, SHIFT, MIDDLE, HIGH, LOW, EDGES, NORM, WEIGHT, SCALAR, rounding, d,
    WIDTH: tl.constexpr, D: tl.constexpr, DC: tl.constexpr, DT: tl.constexpr, DP: tl.constexpr, E: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, CODE: tl.constexpr,
):  # fmt: skip
    """`assign_direct` by ‖s‖² + ‖μ‖² − 2 s·μ; also which rows are good, and which winners are in doubt."""
    limit, radius, heaviest = tl.load(SCALAR + 3), tl.load(SCALAR + 4), tl.load(SCALAR + 5)
    unit, inverse = tl.load(SCALAR + 6), tl.load(SCALAR + 7)
    x = or_nan(x, limit, inverse)
    norm = tl.sum(x * x, 1)
    for p in tl.range(DC, DP, DT, num_stages=1):
        rest = or_nan(states_tile(X, off, ok, SHIFT, MIDDLE, p, d, DT, NORM), limit, inverse)
        norm += tl.sum(rest * rest, 1)
    e0 = or_nan(edge_column(X, off, ok, SHIFT, MIDDLE, 0, d, DP, NORM), limit, inverse)
    e1 = or_nan(edge_column(X, off, ok, SHIFT, MIDDLE, 1, d, DP, NORM), limit, inverse)
    e2 = or_nan(edge_column(X, off, ok, SHIFT, MIDDLE, 2, d, DP, NORM), limit, inverse)
    norm += e0 * e0 + e1 * e1 + e2 * e2
    ok = ok & (norm >= 0.0)  # which NaN is not: one sum tells of every dimension
    # The first block apart: what is used outside the loop too stays in registers, and is not loaded for every block.
    best = with_block(
        block_values(
            x, X, off, ok, SHIFT, MIDDLE, HIGH, LOW, EDGES, NORM, WEIGHT, norm, e0, e1, e2, unit, inverse, 0, d,
            WIDTH, D, DC, DT, DP, E, BN, BK,
        ), 0, CODE,
    )  # fmt: skip
    second = tl.full((BN, BK), 2147483647, tl.int32)
    if (WIDTH // BK) % 2 == 0:
        key = with_block(
            block_values(
                x, X, off, ok, SHIFT, MIDDLE, HIGH, LOW, EDGES, NORM, WEIGHT, norm, e0, e1, e2, unit, inverse, BK, d,
                WIDTH, D, DC, DT, DP, E, BN, BK,
            ), 1, CODE,
        )  # fmt: skip
        second, best = tl.maximum(best, key), tl.minimum(best, key)
    for start in range(BK + BK * (1 - (WIDTH // BK) % 2), WIDTH, 2 * BK):
        one = with_block(
            block_values(
                x, X, off, ok, SHIFT, MIDDLE, HIGH, LOW, EDGES, NORM, WEIGHT, norm, e0, e1, e2, unit, inverse, start, d,
                WIDTH, D, DC, DT, DP, E, BN, BK,
            ), start // BK, CODE,
        )  # fmt: skip
        two = with_block(
            block_values(
                x, X, off, ok, SHIFT, MIDDLE, HIGH, LOW, EDGES, NORM, WEIGHT, norm, e0, e1, e2, unit, inverse,
                start + BK, d, WIDTH, D, DC, DT, DP, E, BN, BK,
            ), start // BK + 1, CODE,
        )  # fmt: skip
        less = tl.minimum(one, two)
        second = tl.minimum(tl.minimum(second, tl.maximum(one, two)), tl.maximum(best, less))
        best = tl.minimum(best, less)
    least, chosen, runner, blunt = least_two(best, second, BK, CODE)
    reach = tl.sqrt(norm) + radius * inverse
    slack = rounding * reach * reach  # of a square
    error = unit * (slack / tl.maximum((least - heaviest) * inverse, tl.sqrt(slack) + 1e-30)) + blunt
    sure = (runner - least > 2.0 * error) & (norm <= 1073741824.0)  # beyond 2¹⁵ units float16 has no room
    return least, chosen, ok, ok & (sure == 0)


@triton.jit
def least_two(best, second, BK: tl.constexpr, CODE: tl.constexpr):
    """From each lane's two least `with_block`: a row's least, its cluster, the runner-up, and what the bits cost."""
    first, lane = tl.min(best, 1), tl.arange(0, BK)[None, :]
    column = tl.min(tl.where(best == first[:, None], lane, BK), 1)
    runner = tl.minimum(tl.min(second, 1), tl.min(tl.where(lane == column[:, None], 2147483647, best), 1))
    least = (first & -CODE).to(tl.float32, bitcast=True)
    runner = (runner & -CODE).to(tl.float32, bitcast=True)
    return least, (first & (CODE - 1)) * BK + column, runner, least * (CODE * 1.1920928955078125e-07)


@triton.jit
def with_block(value, block, CODE: tl.constexpr):
    """Distances whose last bits are the number of their block of clusters: the lesser of two brings its place along."""
    return (value.to(tl.int32, bitcast=True) & -CODE) | block


@triton.jit
def block_values(
    x, X, off, ok, SHIFT, MIDDLE, HIGH, LOW, EDGES, NORM, WEIGHT, norm, e0, e1, e2, unit, inverse, start, d,
    WIDTH: tl.constexpr, D: tl.constexpr, DC: tl.constexpr, DT: tl.constexpr, DP: tl.constexpr, E: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """‖s − μ_j‖ + κ n_j for a block of clusters."""
    cols = start + tl.arange(0, BK)
    cross = tl.zeros((BN, BK), tl.float32) - 0.5 * tl.load(NORM + cols)[None, :]
    cross = edge(cross, e0, e1, e2, EDGES, cols, E, WIDTH)
    cross = products(x, X, off, ok, SHIFT, MIDDLE, HIGH, LOW, NORM, cols, cross, inverse, d, D, DC, DT, DP)
    return tl.sqrt(tl.abs(norm[:, None] - 2.0 * cross)) * unit + tl.load(WEIGHT + cols)[None, :]


@triton.jit
def products(
    x, X, off, ok, SHIFT, MIDDLE, HIGH, LOW, NORM, cols, cross, inverse, d,
    D: tl.constexpr, DC: tl.constexpr, DT: tl.constexpr, DP: tl.constexpr,
):  # fmt: skip
    """`cross` + s·μ_j over the first DP dimensions, of which `x` holds DC, in units."""
    place = cols[:, None] * D
    cross = product(x, HIGH, LOW, place + tl.arange(0, DC)[None, :], cross)
    if D <= 160:
        for q in tl.static_range(DC, DP, DT):
            part = states_tile(X, off, ok, SHIFT, MIDDLE, q, d, DT, NORM) * inverse
            cross = product(part, HIGH, LOW, place + (q + tl.arange(0, DT))[None, :], cross)
    else:  # unrolled, the parts of the centers would not fit
        for u in tl.range(DC, DP, DT, num_stages=1):
            more = states_tile(X, off, ok, SHIFT, MIDDLE, u, d, DT, NORM) * inverse
            cross = product(more, HIGH, LOW, place + (u + tl.arange(0, DT))[None, :], cross)
    return cross


@triton.jit
def edge_column(X, off, ok, SHIFT, MIDDLE, e, d, D: tl.constexpr, CT):
    """One of the dimensions that products leave out, less the reference point and the middle; zero beyond the last."""
    p = tl.minimum(D + e, d - 1)
    return tl.where(ok & (D + e < d), state_column(X, off, ok, SHIFT, MIDDLE, p, CT), 0.0)


@triton.jit
def or_nan(x, limit, inverse):
    """x in units; no number where it is not finite, or so large that its square overflows."""
    return tl.where(tl.abs(x) <= limit, x * inverse, float("nan"))


@triton.jit
def good_rows(X, off, ok, SHIFT, limit, d, CT):
    """Which rows are finite and not so large that their squares overflow."""
    for p in range(d):
        ok = ok & (tl.abs(state_column(X, off, ok, SHIFT, None, p, CT)) <= limit)
    return ok


@triton.jit
def assign_direct(
    X, off, ok, SHIFT, CT, WEIGHT, d, WIDTH: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, U: tl.constexpr
):
    """argmin_j ‖s − μ_j‖ + κ n_j, the lowest index on a tie (Eq. 4), from differences."""
    best = tl.full((BN, BK), float("inf"), CT.dtype.element_ty)
    where = tl.zeros((BN, BK), tl.int32)
    for start in range(0, WIDTH, BK):
        cols = tl.minimum(start + tl.arange(0, BK), WIDTH - 1)
        square = squares(X, off, ok, SHIFT, CT, cols, d, WIDTH, BN, BK, U)
        value = tl.sqrt(square) + tl.load(WEIGHT + cols)[None, :]
        better = value < best
        best = tl.where(better, value, best)
        where = tl.where(better, cols[None, :], where)
    return lowest(best, where)


@triton.jit
def squares(X, off, ok, SHIFT, CT, cols, d, WIDTH: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, U: tl.constexpr):
    """‖s − μ_j‖² of a tile, from differences."""
    total = tl.zeros((BN, BK), CT.dtype.element_ty)
    for p in range(0, d, U):
        states, centers = some_columns(X, off, ok, SHIFT, CT, p, cols, d, WIDTH, U)
        for u in tl.static_range(U):
            difference = tl.where(p + u < d, states[u][:, None] - centers[u][None, :], 0.0)
            total += difference * difference
    return total


@triton.jit
def beyond_lists(least, i, WEIGHT, KEYS, SCALAR, T: tl.constexpr):
    """Whether the short lists of the winners are likely not to reach. Either answer is right, one of them is faster."""
    m = tl.load(SCALAR) * (least - tl.load(WEIGHT + i))
    return tl.load(KEYS + i * (T + 1) + T) < m
