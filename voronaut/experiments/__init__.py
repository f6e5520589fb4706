"""The paper's experiments and those it lacks: a folder each, `common/` for what they share.

Every experiment has `reproduce(options)`: run what is missing, redraw, say what is there; `draw`: its figures, from
result files alone; and `computed`: the tables of its page. In its folder run.py, or a file per part, is what is run.
"""
