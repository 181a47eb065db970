"""What every test of the Python side stands on."""

import signal

# A shell that runs this in the background ignores SIGINT for it and for every process below: tests of
# Ctrl-C would then wait for ever for what cannot come.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """What looks for a violation of a property says so in pytest's report: scripts/verdict.py gives it no second run."""
    for item in items:
        function = getattr(item, "obj", None)
        if item.get_closest_marker("property") or getattr(function, "is_hypothesis_test", False):
            item.user_properties.append(("property", "1"))
