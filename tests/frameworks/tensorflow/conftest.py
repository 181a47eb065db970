"""The fixtures of tests/e2e."""

from __future__ import annotations

from e2e_conftest import *
