"""The Triton programs and their launchers. Only what has found a GPU with Triton imports these."""
