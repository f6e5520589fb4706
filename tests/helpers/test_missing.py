"""The line for pip works as it stands: it names the place that this copy was installed from."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from voronaut.helpers import missing


class Installed:
    """A distribution that was installed from somewhere."""

    def __init__(self, url: str) -> None:
        self.url = url

    def read_text(self, name: str) -> str | None:
        """Its direct_url.json."""
        return json.dumps({"url": self.url}) if name == "direct_url.json" and self.url else None


def test_in_the_repository_the_repository_is_named() -> None:
    root = Path(missing.__file__).parents[2]
    assert missing.pip("sb3") == f"pip install -e '{root}[sb3]'"
    assert str(missing.install("jax", "jax")) == f"jax is missing. Install it with: pip install -e '{root}[jax]'"


@pytest.mark.parametrize("name", ["a folder", "voronaut-1.whl"])
def test_elsewhere_what_it_was_installed_from(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.setattr(missing, "__file__", str(tmp_path / "site-packages" / "voronaut" / "helpers" / "missing.py"))
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed((tmp_path / name).as_uri()))
    assert missing.pip("jax") == f"pip install '{tmp_path / name}[jax]'"


@pytest.mark.parametrize("url", ["", "file:///gone/voronaut-1.whl", "https://example.org/voronaut-1.whl"])
def test_by_name_where_that_is_not_there_any_more(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "__file__", str(tmp_path / "voronaut" / "helpers" / "missing.py"))
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(url))
    assert missing.pip("jax") == "pip install 'voronaut[jax]'"

    def unknown(_: str) -> Any:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "distribution", unknown)
    assert missing.pip("jax") == "pip install 'voronaut[jax]'"
