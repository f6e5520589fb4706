"""A bonus in the training loops people already have; each module knows one library and nothing of the algorithm.

`voronaut.adapters.sb3` (also `voronaut.sb3`), `voronaut.adapters.gymnasium_env`, `voronaut.adapters.torchrl_env`,
`voronaut.adapters.rsl_rl`, `voronaut.adapters.rllib`.
"""
