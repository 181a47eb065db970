"""Run by every Python that a program of `troupe run-as` starts: `databricks.air`, `pyspark.ml.torch` and `azure.ai.ml` are as in the program.

Packages below others' roots cannot stand on the import path themselves: what looks whether `pyspark` is installed would find it. Nothing
is imported here until a program asks for one of them; then the environment's own sitecustomize has run.
"""
import importlib.machinery
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_CLAIMS = {"databricks": ("databricks.air",), "pyspark": ("pyspark.ml.torch", "pyspark.ml.deepspeed"), "azure": ("azure.ai.ml", "azure.identity")}


class _AtFirstUse:
    """Installs what Troupe stands in for when one of its modules is first asked for."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """None, so that the finders that are then there answer."""
        if any(each.startswith(f"{name}.") or name == each or name.startswith(f"{each}.") for each in tuple(_wanted)):
            _wanted.clear()  # it stays among the finders: an import in another thread would miss the one behind it
            from troupe import stand_ins

            stand_ins.install_named()
            for finder in list(sys.meta_path):
                found = finder.find_spec(name, path, target)
                if found is not None:
                    return found
        return None


_names = os.environ.get("TROUPE_STAND_INS", "").split(",")
_wanted = [claim for name, claims in _CLAIMS.items() if name in _names for claim in claims]
if _wanted:
    sys.meta_path.insert(0, _AtFirstUse)
_own = importlib.machinery.PathFinder.find_spec("sitecustomize", [each for each in sys.path if os.path.abspath(each or ".") != _HERE])
if _own is not None and _own.loader is not None:
    _own.loader.exec_module(sys.modules[__name__])
