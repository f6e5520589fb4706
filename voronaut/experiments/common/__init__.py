"""What the experiments share: jobs and sweeps, result files, numbers over seeds, drawing."""
