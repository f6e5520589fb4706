"""Checks that any bonus and any adapter can be held to; every failure says what a user would suffer.

    from voronaut.conformance import check_bonus, check_adapter

    def test_my_bonus():
        check_bonus(MyBonus)              # factory(dim=…, seed=…) makes a bonus

    def test_my_adapter():
        check_adapter(make)               # make(bonus, walks, scale) makes a Host

Failures are plain AssertionErrors, pytest is not needed. `BONUS_CHECKS` and `ADAPTER_CHECKS` are the same checks one by
one, for a test that names them. A bonus says in attributes what it does not promise: `learns = False` (it has no
memory), `pays = False` (its rewards are all 0), `batchwise = True` (rewards depend on the batch a state comes in).
The small protocols of `voronaut.bonuses.base` (Steps, HasCenters, SideBySide, TakesTensors) are checked where kept.
"""

from voronaut.conformance.adapter import ADAPTER_CHECKS, check_adapter
from voronaut.conformance.bonus import BONUS_CHECKS, check_bonus
from voronaut.conformance.walk import Host, Rollout, Toll, Walk

__all__ = ["ADAPTER_CHECKS", "BONUS_CHECKS", "Host", "Rollout", "Toll", "Walk", "check_adapter", "check_bonus"]
