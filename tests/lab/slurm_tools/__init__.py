"""Stand-ins for pyxis, enroot and Apptainer: their command lines and refusals, a real root file system.

An image is a small file that names the layers below it, where the real one holds them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[3]
REGISTRY: Final = "LAB_REGISTRY"
"""Names the folder that stands for all registries: each image is a file there, named by its digest."""

_PROGRAMS: Final = {"srun": "pyxis", "enroot": "enroot", "apptainer": "apptainer"}


def install_tools(folder: Path) -> Path:
    """Put them into a folder, which has to come first on PATH."""
    folder.mkdir()
    for name, module in _PROGRAMS.items():
        program = folder / name
        program.write_text(
            f"#!{sys.executable} -B\nimport sys\nsys.path.insert(0, {str(REPOSITORY)!r})\n"
            f"from tests.lab.slurm_tools.{module} import main\nsys.exit(main(sys.argv[1:]))\n",
            encoding="utf-8",
        )
        program.chmod(0o755)
    return folder


def write_image(
    file: Path, layers: Sequence[Path], env: Mapping[str, str], entrypoint: Sequence[str] = ()
) -> None:
    """An image of these layers, the first on top."""
    content = {"layers": [str(layer) for layer in layers], "env": dict(env), "entrypoint": list(entrypoint)}
    file.write_text(json.dumps(content), encoding="utf-8")
