"""PPO of RLlib with a KME bonus, on one machine or many. Run: python examples/rllib_ppo.py [--learners N]"""

import argparse

import gymnasium
from ray.rllib.algorithms.ppo import PPOConfig

import voronaut as vn
from voronaut.adapters.rllib import add_bonus, bonus_of

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200_000)
parser.add_argument("--task", default="MountainCarContinuous-v0")
parser.add_argument("--learners", type=int, default=0, help="0: learn in this process")
parser.add_argument("--runners", type=int, default=1, help="processes that act; 0: act in this process")
parser.add_argument("--batch", type=int, default=4096, help="environment steps per iteration and learner")
options = parser.parse_args()

dim = gymnasium.make(options.task).observation_space.shape[0]
config = (
    PPOConfig()
    .environment(options.task)
    .env_runners(num_env_runners=options.runners, num_envs_per_env_runner=4)
    .learners(num_learners=options.learners)
    .training(train_batch_size_per_learner=options.batch, minibatch_size=128, num_epochs=4, lr=3e-4)
    .fault_tolerance(restart_failed_env_runners=True)
)
config = add_bonus(config, vn.KME(dim=dim, init="data"), scale=0.01)  # the one line
algorithm = config.build_algo()
steps = 0
while steps < options.steps:
    result = algorithm.train()
    steps = result["num_env_steps_sampled_lifetime"]
    logged = result["learners"]["__all_modules__"]["bonus"]
    returns = result["env_runners"].get("episode_return_mean", float("nan"))
    print(f"{steps:.0f} steps: return {returns:.2f}, bonus {logged['paid']:.5f}, entropy {logged['entropy']:.2f} nats")
print(f"The bonus has seen {bonus_of(algorithm).metrics()['states']:.0f} states.")
algorithm.stop()
