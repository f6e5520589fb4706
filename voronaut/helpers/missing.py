"""What to say when a library is not installed."""

import importlib
import importlib.util
import json
from collections.abc import Collection
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import ModuleType
from urllib.parse import urlparse
from urllib.request import url2pathname


def install(package: str, extra: str) -> ImportError:
    """The error with the pip line."""
    return ImportError(f"{package} is missing. Install it with: {pip(extra)}")


def pip(extra: str) -> str:
    """The line that installs an extra: from where this copy came (there may be no release), otherwise by name."""
    root = Path(__file__).parents[2]
    if (root / "pyproject.toml").exists():
        return f"pip install -e '{root}[{extra}]'"
    with suppress(ImportError, ValueError):
        url = urlparse(
            json.loads(metadata.distribution("voronaut").read_text("direct_url.json") or "{}").get("url", "")
        )
        place = url2pathname(url.path)
        if url.scheme == "file" and Path(place).exists():
            return f"pip install '{place}[{extra}]'"
    return f"pip install 'voronaut[{extra}]'"


def missing(error: ModuleNotFoundError, modules: Collection[str], package: str, extra: str) -> ImportError:
    """An error with the pip line if one of `modules` itself is missing; otherwise the error as it is."""
    return install(package, extra) if (error.name or "").partition(".")[0] in modules else error


def require(module: str, extra: str) -> ModuleType:
    """Import what comes with an extra, or say which one."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise install(package, extra) from error


def check(*modules: str, extra: str) -> None:
    """Miss a library before work that may take a while."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise install(module, extra)
