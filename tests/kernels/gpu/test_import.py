"""Triton's compiler beside another LLVM in the same process."""

import subprocess
import sys
from glob import glob

import pytest

from tests.kernels.gpu.there import needs_triton

FOUND = glob("/usr/lib/*/libLLVM-*.so.*") + glob("/usr/lib*/libLLVM.so.*") + glob("/usr/lib/*/libLLVM.so.*")
SCRIPT = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)  # as PyOpenGL loads Mesa, which brings its LLVM along
flags = sys.getdlopenflags()
from voronaut.kernels.gpu.fused import update
assert sys.getdlopenflags() == flags
"""


@needs_triton
@pytest.mark.skipif(not FOUND, reason="no LLVM of the system's here: apt-get install libgl1-mesa-dri")
def test_triton_is_imported_after_a_picture_was_drawn() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, FOUND[0]], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
