"""The Triton programs and their launchers. Only what has found a GPU with Triton imports these.

Triton has its own LLVM and lets any other that the process shares with everybody stand in for it. PyOpenGL shares
Mesa's, which a picture of an environment loads (MUJOCO_GL=egl), and `import triton` after that ends in a segmentation
fault. So it is told here to look into itself first.
"""

import ctypes
import os
import sys


def import_triton() -> None:
    """`import triton`, also where another LLVM is in the way; what libraries share is left alone where none is."""
    flags = sys.getdlopenflags()
    if hasattr(os, "RTLD_DEEPBIND") and hasattr(ctypes.CDLL(None), "LLVMAddSymbol"):
        sys.setdlopenflags(flags | os.RTLD_DEEPBIND)
    try:
        import triton  # noqa: F401
    finally:
        sys.setdlopenflags(flags)


import_triton()
