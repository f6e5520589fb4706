"""What must be true before any test module is imported."""

import os
from pathlib import Path

# Triton reads this once, when it is first imported, and torch may import it before the tests of the kernels do.
os.environ.setdefault("TRITON_INTERPRET", "0" if Path("/dev/nvidiactl").exists() else "1")
