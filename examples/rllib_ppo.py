"""PPO of RLlib with a KME bonus, on one machine or many. Run: python examples/rllib_ppo.py [--alone] [--learners N]"""

import argparse

from corner import Corner
from ray.rllib.algorithms.ppo import PPOConfig

import voronaut as vn
from voronaut.adapters.rllib import add_bonus, bonus_of

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=99_200)
parser.add_argument("--alone", action="store_true", help="without a bonus, for comparison")
parser.add_argument("--learners", type=int, default=0, help="0: learn in this process")
parser.add_argument("--runners", type=int, default=0, help="processes that act; 0: act in this process")
parser.add_argument("--batch", type=int, default=1600, help="environment steps per iteration and learner")
options = parser.parse_args()

config = (
    PPOConfig()
    .environment(Corner, observation_space=Corner.observation_space)
    .env_runners(num_env_runners=options.runners, num_envs_per_env_runner=32)
    .learners(num_learners=options.learners)
    .training(train_batch_size_per_learner=options.batch, minibatch_size=256, num_epochs=5, lr=1e-3)
    .training(lambda_=0.95, clip_param=0.2, use_kl_loss=False)
    .rl_module(model_config={"fcnet_hiddens": [64, 64], "free_log_std": True})
    .fault_tolerance(restart_failed_env_runners=True)
    .debugging(seed=0)
)
config = add_bonus(config, vn.NoBonus if options.alone else vn.KME)  # the one line
algorithm, steps = config.build_algo(), 0
while steps < options.steps:
    result = algorithm.train()
    steps = result["num_env_steps_sampled_lifetime"]
    returns = result["env_runners"].get("episode_return_mean", float("nan"))
    paid = result["learners"]["__all_modules__"]["bonus"]["paid"]
    if algorithm.iteration % 12 == 0 or steps >= options.steps:
        print(f"steps {steps:.0f}: return {returns:.1f}, bonus {paid:.3f}", flush=True)
print(f"The bonus has seen {bonus_of(algorithm).metrics()['states']:.0f} states.")
algorithm.stop()
