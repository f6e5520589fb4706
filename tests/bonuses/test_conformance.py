"""Every check of a bonus lets an honest one pass and stops the mutants made for it."""

import pytest

from tests.bonuses import mutants
from voronaut.conformance import BONUS_CHECKS, check_bonus

MUTANTS = {
    "keeps_the_protocol": (mutants.NoMetrics, mutants.UpdatePays),
    "rewards_change_nothing": (mutants.ImpureState, mutants.ImpureStatistics, mutants.ImpureLater),
    "update_learns": (mutants.NeverLearns, mutants.SaysItDoesNotLearn),
    "gives_one_float_for_each_state": (mutants.Flat, mutants.Column, mutants.Whole, mutants.Infinite),
    "empty_batch_is_nothing": (mutants.EmptyCounts,),
    "same_seed_same_bits": (mutants.GlobalNoise, mutants.OwnNoise),
    "each_reward_is_its_rows": (mutants.Permuted, mutants.Transposed),
    "pieces_equal_the_whole": (mutants.BatchMean,),
    "novel_states_earn_more": (
        mutants.PaysLength,
        mutants.NeighboursIndex,
        mutants.LonelyInverse,
        mutants.SaysItDoesNotPay,
    ),
    "inputs_stay_untouched": (mutants.WritesInput, mutants.KeepsInput, mutants.WantsWritable),
    "bad_input_is_refused": (mutants.TakesNaN, mutants.TakesNaNInUpdate, mutants.TakesAnyDim),
    "instances_are_independent": (mutants.shared(),),
    "state_round_trip_goes_on": (mutants.ForgetsPosition, mutants.ForgetsVisits),
    "state_dict_is_a_copy": (mutants.GivesItself, mutants.KeepsGiven),
    "state_survives_a_file": (mutants.Pickles, mutants.ForgetsPosition, mutants.ForgetsVisits),
    "foreign_state_is_refused": (mutants.TakesAnyState, mutants.HalfLoads),
    "metrics_are_floats": (mutants.NestedMetrics, mutants.CountingMetrics),
    "steps_pay_and_learn": (mutants.StepsWithoutLearning, mutants.StepsBackwards, mutants.StepsAtOnce),
    "centers_can_be_drawn": (mutants.GivesItsCenters, mutants.CentersElsewhere),
    "side_by_side_each_is_alone": (mutants.SharesStates, mutants.PaysTheFirst, mutants.TeachesTheFirst),
    "tensors_are_taken_and_given": (mutants.TensorsToArrays, mutants.TensorsInHalves),
}
CHECKS = {check.__name__: check for check in BONUS_CHECKS}


def test_every_check_has_a_mutant() -> None:
    assert set(MUTANTS) == set(CHECKS)


@pytest.mark.parametrize("honest", [mutants.Honest, mutants.Lonely, mutants.Able])
def test_the_honest_pass(honest: type[mutants.Honest]) -> None:
    check_bonus(honest)


@pytest.mark.parametrize(("name", "mutant"), [(name, mutant) for name, all_ in MUTANTS.items() for mutant in all_])
def test_the_mutant_is_stopped(name: str, mutant: type[mutants.Honest]) -> None:
    with pytest.raises(AssertionError, match=r".{20,}: .{15,}"):  # what happened: what a user would suffer
        CHECKS[name](mutant)
    with pytest.raises(AssertionError):
        check_bonus(mutant)
