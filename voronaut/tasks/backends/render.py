"""Pictures of MuJoCo physics, also on machines without a display."""

import contextlib
import ctypes.util
import importlib
import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEIGHT, WIDTH = 360, 480
_HELP = (
    "rendering is not possible here (MUJOCO_GL={gl}). Without a display install one of two Debian packages, "
    "libegl1 (for MUJOCO_GL=egl) or libosmesa6 (for MUJOCO_GL=osmesa, software), with apt-get install, and set the "
    "variable before Python starts, for example MUJOCO_GL=osmesa."
)


def impossible() -> RuntimeError:
    """The error that says what to install."""
    return RuntimeError(_HELP.format(gl=os.environ.get("MUJOCO_GL", "not set")))


def choose_renderer() -> None:
    """Without a display, set MUJOCO_GL to what is installed. dm_control reads it when it is first imported.

    Left alone it would settle on GLFW, which imports without a display and then cannot draw.
    """
    # Triton comes before an OpenGL library: after Mesa's LLVM its import, when torch makes an optimiser, is a crash.
    with contextlib.suppress(ImportError):
        importlib.import_module("triton")
    shown = not sys.platform.startswith("linux") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if "MUJOCO_GL" in os.environ or "dm_control._render" in sys.modules or shown:
        return
    for name, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        if ctypes.util.find_library(library):
            os.environ["MUJOCO_GL"] = name
            return
    raise impossible()


def frame(physics: Any, camera: int) -> NDArray[np.uint8]:
    """What a camera of the model sees, (height, width, 3)."""
    try:
        return np.asarray(physics.render(HEIGHT, WIDTH, camera_id=camera), np.uint8)
    except Exception as error:  # each OpenGL library fails with a class of its own
        raise impossible() from error
