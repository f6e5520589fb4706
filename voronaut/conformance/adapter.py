"""`check_adapter`: what every adapter of a bonus to a training library must do."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voronaut.conformance.common import demand
from voronaut.conformance.walk import WALKS, Floats, Host, Known, Rollout, Toll, Walk, number_of, replay

Make = Callable[[Any, Sequence[Walk], float], Host]
SCALE = 0.5
ENOUGH = 20


def construction_steps_nothing(make: Make) -> None:
    """Making the adapter takes no step in the user's environments."""
    walks = [Walk(i) for i in range(WALKS)]
    make(Toll(), walks, SCALE)
    steps = [walk.steps for walk in walks]
    demand(not any(steps), f"making the adapter took {steps} steps in the user's environments: seeds and logs are off.")


def bonus_is_paid_for_the_next_state(make: Make) -> None:
    """Within an episode, each step earns the bonus of the state the action led to."""
    bonus, known = _bonus_seen(make)
    inside = ~known.ends
    wanted = SCALE * number_of(known.led_to)
    for states, what in ((known.left, "the state it left"), (np.roll(known.led_to, -1, axis=0), "a later state")):
        other = _close(bonus[:-1][inside[:-1]], SCALE * number_of(states)[:-1][inside[:-1]])
        demand(not other, f"a step is paid for {what}: actions are credited with what others found.")
    wrong = ~np.isclose(bonus[inside], wanted[inside], rtol=1e-4, atol=1e-4)
    demand(
        not wrong.any(),
        f"{wrong.mean():.0%} of the steps do not get scale × the bonus of the state they led to: "
        "actions are credited with what others found (permuted, missing, paid twice or scaled otherwise).",
    )


def bonus_is_paid_for_the_final_state(make: Make) -> None:
    """The last step of an episode earns the bonus of the true final state."""
    bonus, known = _bonus_seen(make)
    wanted = SCALE * number_of(known.led_to)
    reset = _close(bonus[known.ends], SCALE * number_of(known.reset_to)[known.ends])
    demand(not reset, "an episode's last step is paid for the reset state: ending an episode is paid as a discovery.")
    right = _close(bonus[known.ends], wanted[known.ends])
    demand(right, "an episode's last step is not paid for its final state: what ends an episode is never explored.")


def bonus_reaches_the_advantages(make: Make) -> None:
    """Change the bonus, and A_t changes by Σ (γλ)^l β b_{t+l} up to the episode's end."""
    paid, unpaid = _collect(make, Toll()), _collect(make, Toll(price=0))
    if paid.advantages is None or unpaid.advantages is None:
        demand(paid.advantages is unpaid.advantages, "advantages are there in one run and not in another.")
        return
    known = replay(len(paid.rewards))
    wanted = gae_of_bonus(SCALE * number_of(known.led_to), known.ends, paid.gamma * paid.lam)
    change = _as_array(paid.advantages) - _as_array(unpaid.advantages)
    demand(np.abs(change).max() > 0, "advantages do not know the bonus (added after they were computed?): no effect.")
    demand(
        _close(change, wanted), "advantages change by something else than the bonus: the policy learns another goal."
    )


def extrinsic_return_is_logged_apart(make: Make) -> None:
    """The returns that the host logs are the environment's, bonus or not."""
    rollout = _collect(make, Toll())
    ends = replay(len(rollout.rewards)).ends
    wanted = sorted(0.25 * Walk(i).length + 1 for i in range(WALKS) for _ in range(int(ends[:, i].sum())))
    found = sorted(float(value) for value in rollout.episode_returns)
    same = len(found) == len(wanted) and _close(np.array(found), np.array(wanted))
    demand(
        same, f"logged returns are {found}, the environment's {wanted}: learning curves show the bonus, not the task."
    )


def bonus_learns_each_state_once(make: Make) -> None:
    """After a rollout the bonus has been shown every state that was led to, final ones too, once."""
    host = _host(make, Toll())
    steps = len(host.collect().rewards)
    wanted = Toll()
    wanted.update(replay(steps).led_to)
    found = np.asarray(host.bonus.state_dict()["shown"])
    demand(found[0] > 0, "the bonus was never updated: novelty does not wear off and the agent stays where it is.")
    demand(
        found[0] == wanted.shown[0],
        f"the bonus was shown {found[0]:g} states of {wanted.shown[0]:g}: states wear off too fast or never.",
    )
    demand(_close(found, wanted.shown), "the bonus was shown other states than those led to (reset states?).")


def bonus_survives_save_and_load(make: Make) -> None:
    """The host's own save and load carry the bonus along."""
    host = _host(make, Toll())
    host.collect()
    with tempfile.TemporaryDirectory() as folder:
        host.save(Path(folder) / "saved")
        other = _host(make, Toll())
        other.load(Path(folder) / "saved")
    kept, found = host.bonus.state_dict()["shown"], other.bonus.state_dict()["shown"]
    demand(np.array_equal(kept, found), "the bonus is lost in the host's save and load: a resumed run explores afresh.")


ADAPTER_CHECKS = (
    construction_steps_nothing,
    bonus_is_paid_for_the_next_state,
    bonus_is_paid_for_the_final_state,
    bonus_reaches_the_advantages,
    extrinsic_return_is_logged_apart,
    bonus_learns_each_state_once,
    bonus_survives_save_and_load,
)


def check_adapter(make: Make) -> None:
    """All of ADAPTER_CHECKS on the adapter that `make(bonus, walks, scale)` sets up in its host library.

    `make` gets a bonus to pay with, three `Walk`s to wrap as the host's environments (a few lines: `reset`, `step`;
    actions are ignored, observations are the four numbers of the state, unnormalised) and the weight of the bonus. It
    returns a `Host`: `collect()` gives a `Rollout`, `save(path)` and `load(path)` are the host's own, `bonus` is the
    one in force. Two hosts made alike must have equal policies and values (seed them), because checks compare a run
    that is paid with one that is not. Rows that are no step of a walk (a host's reset or padding rows) are left out of
    the Rollout; a host without advantages (off-policy) leaves them None and gives the rewards its learner reads.
    """
    for check in ADAPTER_CHECKS:
        check(make)


def gae_of_bonus(bonus: Floats, ends: NDArray[np.bool_], decay: float) -> Floats:
    """D_t = b_t + γλ (1 − end_t) D_{t+1}: what a bonus adds to generalised advantage estimates (values cancel)."""
    added, later = np.zeros_like(bonus), np.zeros(bonus.shape[1])
    for t in reversed(range(len(bonus))):
        later = bonus[t] + decay * np.where(ends[t], 0.0, later)
        added[t] = later
    return added


def _host(make: Make, bonus: Toll) -> Host:
    return make(bonus, [Walk(i) for i in range(WALKS)], SCALE)


def _collect(make: Make, bonus: Toll) -> Rollout:
    rollout = _host(make, bonus).collect()
    shape = np.shape(rollout.rewards)
    usable = len(shape) == 2 and shape[0] >= ENOUGH and shape[1] == WALKS
    demand(usable, f"rewards must be (t, {WALKS}) with t at least {ENOUGH}; got {shape}. Collect a longer rollout.")
    return rollout


def _bonus_seen(make: Make) -> tuple[Floats, Known]:
    """What the bonus adds to the learner's rewards: those of a paid run less those of an unpaid one."""
    paid, unpaid = _collect(make, Toll()), _collect(make, Toll(price=0))
    return _as_array(paid.rewards) - _as_array(unpaid.rewards), replay(len(paid.rewards))


def _as_array(values: Any) -> Floats:
    return np.asarray(values, np.float64)


def _close(a: Floats, b: Floats) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-4, atol=1e-4))
