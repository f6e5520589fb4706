"""Result files: what goes in comes out, and what is damaged is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voronaut.experiments.common import results

CONTENT: dict[str, Any] = {
    "task": "cheetah-run", "threshold": "release", "method": "kme", "seed": 0, "scale": "0.01",
    "curve": {key: [1.0, 2.0, 3.0] for key in results.CURVES},
}  # fmt: skip


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "kme-0.json.gz"
    results.write(path, CONTENT | {"curve": CONTENT["curve"] | {"extrinsic_return": [None, 2.0, 3.0]}})
    first = path.read_bytes()
    result = results.read(path)
    np.testing.assert_array_equal(result.curve["extrinsic_return"], [np.nan, 2, 3])
    assert (result.task, result.method, result.seed, result.about["scale"]) == ("cheetah-run", "kme", 0, "0.01")
    results.write(path, CONTENT | {"curve": CONTENT["curve"] | {"extrinsic_return": [None, 2.0, 3.0]}})
    assert path.read_bytes() == first and [p.name for p in tmp_path.iterdir()] == ["kme-0.json.gz"]


def test_a_plain_json_file_will_do(tmp_path: Path) -> None:
    (tmp_path / "kme-0.json").write_text(json.dumps(CONTENT))
    assert results.read(tmp_path / "kme-0.json").seed == 0


def damage(raw: bytes) -> dict[str, bytes]:
    """One file per way in which a file can be wrong."""
    flipped = bytearray(raw)
    flipped[len(raw) // 2] ^= 0xFF
    changed = {
        "shorter": {"env_steps": [1.0]},
        "backwards": {"env_steps": [1.0, 3.0, 2.0]},
        "nested": {"env_steps": [[1.0]] * 3},
    }
    made = {name: json.dumps(CONTENT | {"curve": CONTENT["curve"] | curve}) for name, curve in changed.items()}
    made |= {"list": "[1]", "number": "3", "empty": "{}", "half": "{", "words": json.dumps(CONTENT | {"curve": "none"})}
    packed = {name: gzip.compress(text.encode()) for name, text in made.items()}
    return packed | {"cut": raw[:100], "flipped": bytes(flipped), "nothing": b"", "text": b"hello"}


def test_damage_is_named(tmp_path: Path) -> None:
    results.write(tmp_path / "kme-0.json.gz", CONTENT)
    bad = damage((tmp_path / "kme-0.json.gz").read_bytes())
    for name, raw in bad.items():
        (tmp_path / f"{name}.json.gz").write_bytes(raw)
        with pytest.raises(ValueError, match=rf"{name}\.json\.gz is not a result file, or it is damaged"):
            results.read(tmp_path / f"{name}.json.gz")


def test_every_single_flipped_byte_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "kme-0.json.gz"
    results.write(path, CONTENT)
    raw = path.read_bytes()
    for place in range(len(raw)):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 0x55]) + raw[place + 1 :])
        try:
            assert results.read(path).curve["env_steps"].tolist() == [1, 2, 3]
        except ValueError as error:
            assert "kme-0.json.gz" in str(error)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"gone\.json"):
        results.read(tmp_path / "gone.json")
