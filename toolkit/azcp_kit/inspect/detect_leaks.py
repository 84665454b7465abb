"""Variables of the image's ENV that a foreign MPI or Python would obey, and what each of them does to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from azcp_kit.inspect.facts import EnvLeak

# The first that fits speaks. Each was seen to break a second Open MPI, or is read by a library that it loads
_EFFECTS: Final = (
    (r"LD_LIBRARY_PATH", "libraries there are loaded in place of those a program was built with"),
    (r"LD_PRELOAD", "is loaded into every program, whatever it was built with"),
    (r"LD_.*", "changes how every program finds its libraries"),
    (r"OPAL_PREFIX", "any Open MPI looks for its plugins and help texts below it"),
    (r"OMPI_MCA_(pml|btl|mtl|osc)", "chooses the transport of any Open MPI"),
    (r"OMPI_MCA_(plm|ras|rmaps|orte|routed|oob).*", "chooses how any Open MPI starts its ranks"),
    (r"OMPI_MCA_.*", "sets a parameter of any Open MPI"),
    (r"(OMPI|OPAL|ORTE)_.*", "is read by any Open MPI"),
    (r"PMIX_INSTALL_PREFIX", "any PMIx looks for its plugins below it"),
    (r"PMIX_MCA_.*", "sets a parameter of any PMIx, which starts the ranks"),
    (r"(PMIX|PMI|PRTE)_.*", "is read by the launcher and taken for a job that runs already"),
    (r"UCX_(TLS|NET_DEVICES)", "chooses the transports or devices of any UCX"),
    (r"(UCX|UCC|HCOLL)_.*", "sets a parameter of any UCX, UCC or HCOLL"),
    (r"FI_.*", "sets a parameter of any libfabric"),
    (r"(MPI_HOME|MPI_ROOT|HPCX_.*|I_MPI_.*)", "names another MPI, which tools then take"),
    (r"MPI4PY_.*", "chooses the MPI library that mpi4py loads"),
    (r"(SLURM|PBS)_.*", "makes mpirun believe that it is inside a batch job"),
    (r"PYTHONHOME", "any Python looks for its standard library below it"),
    (r"PYTHONPATH", "modules there are imported in place of a Python's own"),
    (r"PYTHON.*", "changes how any Python starts"),
    (r"PIP_.*", "changes what any pip installs"),
    (r"(VIRTUAL_ENV|CONDA_.*)", "names another Python, which tools then take"),
)
_PATTERNS: Final = tuple((re.compile(pattern), effect) for pattern, effect in _EFFECTS)


def detect_leaks(env: Mapping[str, str]) -> tuple[EnvLeak, ...]:
    """What would leak, in the order of the ENV; a variable that is empty is still obeyed by some."""
    leaks = ((name, value, _effect(name)) for name, value in env.items())
    return tuple(EnvLeak(name, value, effect) for name, value, effect in leaks if effect)


def _effect(name: str) -> str:
    return next((effect for pattern, effect in _PATTERNS if pattern.fullmatch(name)), "")
