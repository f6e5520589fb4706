"""What to say when a library is not installed."""

import importlib.util
from collections.abc import Collection


def install(package: str, extra: str) -> ImportError:
    """The error with the pip line."""
    return ImportError(f"{package} is missing. Install it with: pip install 'voronaut[{extra}]'")


def missing(error: ModuleNotFoundError, modules: Collection[str], package: str, extra: str) -> ImportError:
    """An error with the pip line if one of `modules` itself is missing; otherwise the error as it is."""
    return install(package, extra) if (error.name or "").partition(".")[0] in modules else error


def check(*modules: str, extra: str) -> None:
    """Miss a library before work that may take a while."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise install(module, extra)
