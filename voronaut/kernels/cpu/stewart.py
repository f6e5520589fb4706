"""‖μ̃ − μ_j‖² = α‖s − μ_j‖² + (1 − α)‖μ_i − μ_j‖² − α(1 − α)‖s − μ_i‖² (Stewart): rewards over all clusters.

The identity gives the distances from the moved center μ̃ = α s + (1 − α) μ_i without a second pass over the dimensions.
For the few states to which the short lists of `gaps` do not reach.
"""

import numpy as np

from voronaut.kernels.compiled import compiled, inlined
from voronaut.kernels.cpu.distances import Floats, Scratch, concave, highest, lowest, squared_distances
from voronaut.kernels.cpu.gaps import Geometry
from voronaut.kernels.rules import Rules

# Stewart's identity subtracts; below this share of what it subtracts from, distances are formed directly instead.
CANCELS = 0.05
# From this many followers on, all gap candidates are formed at once: one vector loop instead of that many scalar ones.
MANY = 16


@compiled
def direct_distance(centers: Floats, state: Floats, i: int, j: int, alpha: float) -> float:
    """‖α s + (1 − α) μ_i − μ_j‖ without any identity."""
    total = 0.0
    for p in range(centers.shape[0]):
        difference = alpha * (state[p] - centers[p, i]) + (centers[p, i] - centers[p, j])
        total += difference * difference
    return np.sqrt(total)  # type: ignore[no-any-return]


@compiled
def moved_distance(
    centers: Floats, state: Floats, from_state: Floats, row: Floats, i: int, j: int, alpha: float
) -> float:
    """√(α‖s−μ_j‖² + (1−α)‖μ_i−μ_j‖² − α(1−α)‖s−μ_i‖²) = ‖μ̃ − μ_j‖ (Stewart), directly where that cancels."""
    whole = alpha * from_state[j] + (1 - alpha) * row[j]
    square = whole - alpha * (1 - alpha) * from_state[i]
    if square < CANCELS * whole:
        return direct_distance(centers, state, i, j, alpha)
    return np.sqrt(square)  # type: ignore[no-any-return]


@compiled
def own_gap(
    centers: Floats, state: Floats, from_state: Floats, row: Floats, weight: Floats, i: int, j: int, alpha: float
) -> float:
    """min_{l≠i} ‖μ̃ − μ_l‖ + κ n_l, given the best candidate j; all are measured directly if j's distance cancels."""
    whole = alpha * from_state[j] + (1 - alpha) * row[j]
    if whole - alpha * (1 - alpha) * from_state[i] >= CANCELS * whole:
        return moved_distance(centers, state, from_state, row, i, j, alpha) + weight[j]  # type: ignore[no-any-return]
    least: float = np.inf
    for other in range(row.shape[0]):
        if other != i and weight[other] < least:
            least = min(least, direct_distance(centers, state, i, other, alpha) + weight[other])
    return least


@inlined
def bound_moved(
    i: int, cut: float, alpha: float, after: float, squared: Floats, between: Floats, weight: Floats, reach: Floats,
    value: Floats, excess: Floats,
) -> None:  # fmt: skip
    """Lower bounds of ‖μ̃ − μ_j‖ + κ n_j for all j, and by how much j's reach exceeds ‖μ̃ − μ_j‖ at most.

    `squared` holds ‖s − μ_j‖² or less, `cut` is α(1 − α)‖s − μ_i‖². OUT: value, excess (width,).
    """
    of = weight.dtype.type  # numbers of the arrays' own precision: a float64 here would quarter float32's speed
    a, b, less, zero = of(alpha), of(1 - alpha), of(1 - 2e-6 if weight.itemsize == 4 else 1 - 4e-15), of(0)
    gone, lifted = of(cut), of(after)
    for j in range(weight.shape[0]):
        bound = a * max(squared[j], zero) + b * between[i, j]
        moved = np.sqrt(max(bound * less - gone, zero))
        value[j] = moved + weight[j]
        excess[j] = reach[j] - lifted - moved


@compiled
def survey_moved(row: Floats, weight: Floats, i: int, alpha: float, after: float, room: Scratch) -> None:
    """Gap candidates ‖μ̃ − μ_j‖ + κ (ñ_i − n_j) of all j at once, and by how much Stewart's identity cancels for each.

    OUT: room.moved, room.excess (positive: to be measured directly).
    """
    of = weight.dtype.type
    a, b, lift, zero, least = of(alpha), of(1 - alpha), of(after), of(0), of(CANCELS)
    cut = a * b * room.squared[i]
    for j in range(row.shape[0]):
        whole = a * room.squared[j] + b * row[j]
        room.moved[j] = np.sqrt(max(whole - cut, zero)) + (lift - weight[j])
        room.excess[j] = least * whole - (whole - cut)


@compiled
def stewart_reward(
    state: Floats, i: int, centers: Floats, weight: Floats, shape: Geometry, rules: Rules,
    reach: Floats, worth: Floats, room: Scratch,
) -> float:  # fmt: skip
    """Σ f(gaps after) − Σ f(gaps before) for a state that cluster i wins (Eq. 2). OUT: room.

    Only the winner, its followers and the few clusters it comes close to can change. Followers are taken out of `reach`
    for the time being because they are handled apart.
    """
    alpha, row, after = rules.step_size, shape.squared[i], weight[i] + rules.balance
    squared_distances(centers, state, room.squared)
    followers = shape.followers[shape.starts[i] : shape.starts[i + 1]]
    for j in followers:
        reach[j] = -np.inf
    one = weight.dtype.type
    cut = one(alpha) * one(1 - alpha) * room.squared[i]
    bound_moved(i, cut, alpha, after, room.squared, shape.squared, weight, reach, room.value, room.excess)
    best = own_gap(centers, state, room.squared, row, weight, i, lowest(room.value_bits, room.order), alpha)
    total = concave(best - after, rules) - worth[i]
    if highest(room.excess_bits) > 0:
        for j in range(reach.shape[0]):
            if room.excess[j] > 0:
                gap = moved_distance(centers, state, room.squared, row, i, j, alpha) + after - weight[j]
                if gap < shape.gap[j]:
                    total += concave(gap, rules) - worth[j]
    many = followers.shape[0] > MANY
    if many:
        survey_moved(row, weight, i, alpha, after, room)
    for j in followers:
        gap = float(room.moved[j])
        if not many or room.excess[j] > 0:
            gap = moved_distance(centers, state, room.squared, row, i, j, alpha) + after - weight[j]
        total += concave(min(gap, shape.second[j]), rules) - worth[j]
        reach[j] = shape.gap[j] + weight[j]
    return total  # type: ignore[no-any-return]
