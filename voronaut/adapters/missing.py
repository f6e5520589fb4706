"""What to say when the library of an adapter is not installed."""

from collections.abc import Collection


def missing(error: ModuleNotFoundError, modules: Collection[str], package: str, extra: str) -> ImportError:
    """An error with the pip line if one of `modules` itself is missing; otherwise the error as it is."""
    if (error.name or "").partition(".")[0] not in modules:
        return error
    return ImportError(f"{package} is missing. Install it with: pip install 'voronaut[{extra}]'")
