"""What numbers were measured on."""

import datetime
import importlib.metadata
import math
import os
import platform
import sys
from pathlib import Path

from voronaut.version import __version__

PACKAGES = ("numpy", "numba", "jax", "torch", "stable-baselines3", "mujoco", "dm-control", "envpool", "ray")


def describe() -> dict[str, str]:
    """Date, hardware and versions; packages that are not installed are left out."""
    versions = {"voronaut": __version__} | {name: version for name in PACKAGES if (version := _version(name))}
    hardware = {"cpu": _cpu_name(), "cores": str(os.cpu_count())} | _accelerator()
    return {"date": datetime.date.today().isoformat(), **hardware, "python": platform.python_version(), **versions}


def brief() -> str:
    """The hardware in a few words."""
    return ", ".join(filter(None, (f"{os.cpu_count()} × {_cpu_name()}", *_accelerator().values())))


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> float:
    """Bytes of this machine; no limit where that cannot be asked, as on Windows."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _accelerator() -> dict[str, str]:
    """The accelerator that JAX uses, if it has been loaded and has one."""
    jax = sys.modules.get("jax")
    if jax is None or jax.default_backend() == "cpu":
        return {}
    return {"accelerator": str(jax.devices()[0].device_kind)}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
