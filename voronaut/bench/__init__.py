"""`voronaut bench`: what things cost, as ratios to something run beside them. Results are kept in benchmarks/."""
