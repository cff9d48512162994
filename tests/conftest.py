"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT.parent / "shared" / "golden"

# shared machines stall now and then: a slow example is no failure, and what failed once is printed to repeat
settings.register_profile(
    "delta_core", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("delta_core")


@pytest.fixture(scope="session")
def golden() -> Path:
    """Return the folder of the conformance corpus; skip where it is not beside the project."""
    if not (GOLDEN / "manifest.json").exists():
        pytest.skip(f"no conformance corpus at {GOLDEN}")
    return GOLDEN
