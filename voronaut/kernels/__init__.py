"""Kernels: balanced online k-means over (n, d) states, one package per kind of machine, tested equal to `clusters.py`.

All have the same few functions:
    prepare   clusters (k, d) made ready for any number of states, with their `gaps`
    assign    argmin_i ‖s − μ_i‖ + κ n_i for each state (Eq. 4)
    rewards   what each state would earn against the clusters as they are (Eq. 2)
    update    one pass of online k-means: the centers and counts after it (Eqs. 4 to 6)
`cpu` (numba) also walks state by state, Algorithm 1: `keep` the gaps, then `step`. Behind `xla` (JAX) are pure
functions for programs of others. `gpu` takes torch tensors and leaves them where they are.
"""
