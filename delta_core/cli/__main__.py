"""``python -m delta_core.cli``: the program if its script is not on PATH."""

from __future__ import annotations

import sys

from delta_core.cli.app import main

sys.exit(main())
