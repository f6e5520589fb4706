"""Which sources made a result: the same answer under every Python, and another one when the code changes."""

from pathlib import Path

import pytest

from voronaut.experiments import entropy_accuracy, entropy_sources, entropy_units, jobs

KEPT = Path(__file__).parents[2] / "results" / "entropy"
SOURCE = '''"""What it does."""
def f(x, y):  # why
    if x:
        return f"{x:.{y}f} {{kept}} {'a' + 'b'!r}"  # 3.12 cuts this into many tokens, 3.11 does not
    return (x +
            y)
'''
WORDS = [
    '"""What it does."""', "<end>",
    "def", "f", "(", "x", ",", "y", ")", ":", "<end>", "<in>",
    "if", "x", ":", "<end>", "<in>",
    "return", "f\"{x:.{y}f} {{kept}} {'a' + 'b'!r}\"", "<end>", "<out>",
    "return", "(", "x", "+", "y", ")", "<end>", "<out>",
]  # fmt: skip


def test_an_f_string_is_one_word_under_every_python() -> None:
    assert entropy_sources.words(SOURCE) == WORDS


def test_layout_and_comments_do_not_count() -> None:
    told = entropy_sources.words("def f(x, y):\n    return x + y\n")
    assert told == entropy_sources.words("# first\n\ndef f(x,  y):  # why\n\n  return x+y\n\n")


@pytest.mark.parametrize(
    "changed",
    ["def f(x, y):\n    return x - y\n", "def f(x, y):\n    return xy\n", "def f(x, y):\n    return 'x + y'\n"],
)
def test_a_change_of_the_code_counts(changed: str) -> None:
    assert entropy_sources.words(changed) != entropy_sources.words("def f(x, y):\n    return x + y\n")


def test_what_belongs_to_a_block_counts() -> None:
    inside, outside = "if x:\n    a()\n    b()\n", "if x:\n    a()\nb()\n"
    assert entropy_sources.words(inside) != entropy_sources.words(outside)


def test_docstrings_do_not_count_and_other_strings_do() -> None:
    told = entropy_sources.spoken(entropy_sources.words('"""One."""\ndef f():\n    r"""Two."""\n    return "three"\n'))
    assert told == ["<end>", "def", "f", "(", ")", ":", "<end>", "<in>", "<end>", "return", '"three"', "<end>", "<out>"]


def test_the_digits_are_of_the_words(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text(SOURCE)
    two.write_text(SOURCE.replace("# why", "# because").replace("What it does.", "What it is."))
    same = entropy_sources.fingerprint([one])
    assert same == entropy_sources.fingerprint([two]) == "6b252aa2"  # seen with 3.11, 3.12 and 3.13
    two.write_text(SOURCE.replace("x +", "x -"))
    assert entropy_sources.fingerprint([two]) != same != entropy_sources.fingerprint([one, one])


def test_all_kept_errors_are_of_the_estimator_as_it_is() -> None:
    """Fails when the estimator has changed: then measure again (`voronaut reproduce entropy`)."""
    found = jobs.collect([*entropy_accuracy.jobs(), *entropy_units.jobs()], KEPT)
    assert len([name for name in found if "estimator" in found[name]]) == 280 + 117
    assert entropy_accuracy.stale(found) == []
