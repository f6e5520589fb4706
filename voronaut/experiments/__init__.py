"""The paper's experiments, one file per figure: the sweep as data, run(), plot()."""
