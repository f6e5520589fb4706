"""SAC of RLlib whose replay pays old states what they are worth now. Run: python examples/rllib_sac.py [--steps N]"""

import argparse

from ray.rllib.algorithms.sac import SACConfig

import voronaut as vn
from voronaut.adapters.rllib import add_bonus, bonus_of

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--task", default="MountainCarContinuous-v0")
parser.add_argument("--runners", type=int, default=1, help="processes that act; 0: act in this process")
parser.add_argument("--scale", type=float, default=1.0, help="weight of the bonus beside the task's reward")
options = parser.parse_args()

config = (
    SACConfig()
    .environment(options.task)
    .env_runners(num_env_runners=options.runners, num_envs_per_env_runner=8)
    .training(
        actor_lr=3e-4,
        critic_lr=3e-4,
        alpha_lr=3e-4,
        initial_alpha=0.1,
        train_batch_size_per_learner=256,
        num_steps_sampled_before_learning_starts=256,
        replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": 200_000},
    )
    .reporting(min_sample_timesteps_per_iteration=512)
)
config = add_bonus(config, vn.KME, scale=options.scale)  # the one line
algorithm = config.build_algo()
steps = 0
while steps < options.steps:
    result = algorithm.train()
    steps = result["num_env_steps_sampled_lifetime"]
    returns = result["env_runners"].get("episode_return_mean", float("nan"))
    print(f"{steps:.0f} steps: return {returns:.2f}, bonus paid in the last batch {result['bonus']['paid']:.3f}")
print(f"The bonus has seen {bonus_of(algorithm).metrics()['states']:.0f} states.")
algorithm.stop()
