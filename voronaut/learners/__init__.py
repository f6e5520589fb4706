"""What turns experience into a policy: pure JAX functions over stacked runs, one file per learner."""

from voronaut.helpers.missing import check

check("jax", "optax", extra="train")
