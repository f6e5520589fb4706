"""The computed parts of README and docs: tables, what the parameters do, and the figures of the idea."""
