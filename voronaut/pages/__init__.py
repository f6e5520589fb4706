"""The computed parts of README and docs."""
