"""PPO of RLlib with a KME bonus, on one machine or many. Run: python examples/rllib_ppo.py [--alone] [--learners N]"""

import argparse

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import MeanStdFilter

import voronaut as vn
from voronaut.adapters.rllib import add_bonus, bonus_of

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60_000)
parser.add_argument("--alone", action="store_true", help="without a bonus, for comparison")
parser.add_argument("--learners", type=int, default=0, help="0: learn in this process")
parser.add_argument("--runners", type=int, default=0, help="processes that act; 0: act in this process")
parser.add_argument("--batch", type=int, default=2048, help="environment steps per iteration and learner")
options = parser.parse_args()

runners = {"num_env_runners": options.runners, "num_envs_per_env_runner": 8}
standardise = {"env_to_module_connector": lambda env, spaces, device: MeanStdFilter()}  # observations in deviations
learning = {"train_batch_size_per_learner": options.batch, "minibatch_size": 128, "num_epochs": 10, "lr": 3e-4}
config = (
    PPOConfig()
    .environment("MountainCarContinuous-v0")
    .env_runners(**runners, **standardise)
    .learners(num_learners=options.learners)
    .training(**learning)
    .fault_tolerance(restart_failed_env_runners=True)
    .debugging(seed=0)
)
config = add_bonus(config, vn.NoBonus(2) if options.alone else vn.KME(2))  # the one line
algorithm, steps = config.build_algo(), 0
while steps < options.steps:
    result = algorithm.train()
    steps = result["num_env_steps_sampled_lifetime"]
    paid, returns = result["learners"]["__all_modules__"]["bonus"]["paid"], result["env_runners"]
    print(f"{steps:.0f} steps: return {returns.get('episode_return_mean', float('nan')):.1f}, bonus {paid:.3f}")
print(f"The bonus has seen {bonus_of(algorithm).metrics()['states']:.0f} states.")
algorithm.stop()
