"""python -m voronaut."""

import sys

from voronaut.cli import main

sys.exit(main())
