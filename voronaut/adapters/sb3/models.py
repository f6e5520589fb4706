"""Two models of one algorithm on one environment and one replay, with what a pair chooses where the user has not."""

import copy
import inspect
from collections.abc import Mapping
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from voronaut.adapters.sb3.env import check_unpaid
from voronaut.adapters.sb3.standardised import Standardised, can_standardise

APART = 2**16  # between the seeds of the two models
TEMPERATURE = "auto_0.1"  # learned, from 0.1 on; SB3 begins at 1 and takes 7700 gradient steps, or more, to get there
WINDOW = 3  # steps of task and bonus before a critic is asked; SB3 has 1
ALONE = {"verbose": 0, "tensorboard_log": None}  # of the explorer, whose log goes into the exploiter's


def two_models(
    algorithm: Any, policy: Any, env: Any, model: Mapping[str, Any], seed: int | None, standardise: bool
) -> tuple[Any, Any]:
    """The exploiter, whose environments and random numbers are those of `seed`, and the explorer."""
    _check(algorithm, env)
    second = {**copy.deepcopy(dict(model)), **ALONE, "seed": None if seed is None else seed + APART}
    exploiter = algorithm(policy, env, seed=seed, _init_setup_model=False, **model)
    explorer = algorithm(policy, exploiter.env, _init_setup_model=False, **second)
    for each in (exploiter, explorer):
        _adjust(each, model, standardise)
    exploiter._setup_model()
    explorer.replay_buffer = exploiter.replay_buffer  # so that it makes none of its own
    explorer._setup_model()
    exploiter.set_random_seed(seed)  # the environments and what is drawn from now on are the exploiter's
    return exploiter, explorer


def _adjust(model: Any, chosen: Mapping[str, Any], standardise: bool) -> None:
    """What the pair chooses about a model that is not set up yet, where the user has not: as in `voronaut train`."""
    if standardise and can_standardise(model):
        model.policy_kwargs = {**model.policy_kwargs, "features_extractor_class": Standardised}  # a dict of the user's
    for name in ("ent_coef", "ent_coef_init"):  # where SB3 keeps it, and SBX
        if "ent_coef" not in chosen and getattr(model, name, None) == "auto":
            setattr(model, name, TEMPERATURE)
    if "n_steps" not in chosen and _takes_windows(model):
        _give_windows(model)


def _give_windows(model: Any) -> None:
    """As `n_steps` does, which would have SB3 warn whenever the model is loaded."""
    from stable_baselines3.common.buffers import NStepReplayBuffer  # in no version without n_steps

    model.replay_buffer_class = NStepReplayBuffer
    model.replay_buffer_kwargs = {**model.replay_buffer_kwargs, "n_steps": WINDOW, "gamma": model.gamma}


def _takes_windows(model: Any) -> bool:
    """Whether SB3 has n-step returns here: not for Dict observations or replays of one's own."""
    own = model.replay_buffer_class is not None or model.optimize_memory_usage
    takes = "n_steps" in inspect.signature(type(model)).parameters
    return takes and not own and not isinstance(model.observation_space, spaces.Dict)


def _check(algorithm: Any, env: Any) -> None:
    if not (isinstance(algorithm, type) and issubclass(algorithm, OffPolicyAlgorithm)):
        raise TypeError(
            f"Pair takes the class of an off-policy algorithm, such as SAC, TD3, DQN or TQC; got {algorithm!r}. "
            "For PPO and A2C wrap the environment: BonusVecEnv(env, bonus)."
        )
    check_unpaid(env)
