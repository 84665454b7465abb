"""`azcp-kit generate sbatch` and `import` as they are typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KIT = Path(sys.prefix, "bin", "azcp-kit")
EXAMPLES = Path(__file__).parents[2] / "examples" / "slurm"


def kit(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command among the examples."""
    return subprocess.run(
        [KIT, *words], capture_output=True, text=True, timeout=60, check=False, cwd=EXAMPLES
    )


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("sbatch", "-f", "job.toml", "--container", "pyxis"), "pyxis.sbatch"),
        (("sbatch", "-f", "job-none.toml", "--container", "none", "--launch", "pmix"), "pmix.sbatch"),
        (("import", "-f", "job.toml", "--container", "enroot"), "import.sh"),
    ],
)
def test_a_script_is_all_that_standard_output_gets(words: tuple[str, ...], file: str) -> None:
    done = kit("generate", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (EXAMPLES / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("sbatch", "-f", "job.toml"),
            "--container is missing, and is none of pyxis, apptainer, enroot, none",
        ),
        (("sbatch", "-f", "job.toml", "--container", "docker"), "--container docker is none of"),
        (
            ("sbatch", "-f", "job.toml", "--container", "none", "--launch", "pmi2"),
            "--launch pmi2 is none of auto, pmix",
        ),
        (("import", "-f", "job.toml", "--container", "none"), "has no image to import"),
        (("import", "-f", "job.toml", "--container", "pyxis", "--launch", "pmix"), "--launch is for sbatch"),
        (("mpijob", "-f", "job.toml", "--container", "pyxis"), "--container is for"),
        (
            ("sbatch", "-f", "job.toml", "--container", "none"),
            "slurm.images: is set, but there is no container",
        ),
    ],
)
def test_what_cannot_be_meant_is_told_and_nothing_is_printed(words: tuple[str, ...], told: str) -> None:
    done = kit("generate", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
