"""scikit-learn's own checks, and what is promised beyond them."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import voronaut as vn
from voronaut.entropy.laws import LAWS


@parametrize_with_checks([vn.KMeansEntropy(10, "mixture", random_state=0), vn.KMeansEntropy(10, "moments"),
                          vn.KMeansEntropy(10, "bound")])  # fmt: skip
def test_scikit_learn(estimator: object, check: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)  # type: ignore[operator]


def test_fit_and_partial_fit_agree_with_the_truth() -> None:
    law = LAWS["gaussian"](3)
    x = law.sample(12_000, 0)
    whole = vn.KMeansEntropy(30, random_state=0).fit(x)
    parts = vn.KMeansEntropy(30, random_state=0)
    for part in np.array_split(x, 5):
        parts.partial_fit(part)
    for estimator in (whole, parts):
        assert estimator.entropy_ == pytest.approx(law.entropy, abs=0.1)
        assert 0 < estimator.entropy_std_ < 0.05 and estimator.n_rows_ == 12_000
        assert estimator.score(law.sample(4000, 1)) == pytest.approx(-law.entropy, abs=0.1)


def test_fit_shuffles_sorted_rows() -> None:
    law = LAWS["uniform"](2)
    x = law.sample(12_000, 0)
    assert vn.KMeansEntropy(30, random_state=0).fit(x[np.argsort(x[:, 0])]).entropy_ == pytest.approx(0, abs=0.05)


def test_fit_starts_afresh_and_seeds_decide() -> None:
    x = LAWS["gaussian"](2).sample(3000, 0)
    estimator = vn.KMeansEntropy(20, random_state=3)
    first = estimator.fit(x * 100).fit(x).entropy_
    assert first == clone(estimator).fit(x).entropy_ != vn.KMeansEntropy(20, random_state=4).fit(x).entropy_


def test_bad_rows_can_be_dropped() -> None:
    x = LAWS["gaussian"](2).sample(1000, 0)
    x[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        vn.KMeansEntropy(10).fit(x)
    assert vn.KMeansEntropy(10, on_bad="drop").fit(x).n_bad_ == 1


def test_before_fit() -> None:
    with pytest.raises(NotFittedError):
        _ = vn.KMeansEntropy().entropy_
    with pytest.raises(ValueError, match="method must be one of"):
        vn.KMeansEntropy(method="guess").fit(np.eye(5))  # type: ignore[arg-type]


def test_without_scikit_learn() -> None:
    code = """
import sys
sys.modules["sklearn"] = None
from voronaut.entropy.stream import EntropyStream
try:
    import voronaut.entropy.estimator
except ImportError as error:
    assert "[entropy]" in str(error), error
else:
    raise SystemExit("imported")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
