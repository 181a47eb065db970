"""The fixtures of tests/e2e, for tests of AI Runtime's names."""

from e2e_conftest import *  # noqa: F403
