"""How much memory and how many CPUs a rank may take, where groups limit them."""

from __future__ import annotations

import math
from pathlib import Path

from azcp_runtime.machine import available_memory, cpu_quota

MIB = 1 << 20


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_dot_", ".")).write_text(text)


def test_the_tightest_group_above_the_process_decides(tmp_path: Path) -> None:
    group(tmp_path / "job", memory_dot_max=str(100 * MIB), memory_dot_current=str(60 * MIB))
    group(tmp_path / "job" / "step", memory_dot_max=str(80 * MIB), memory_dot_current=str(10 * MIB))
    assert available_memory("0::/job/step\n", tmp_path) == 40 * MIB


def test_clean_page_cache_counts_as_free(tmp_path: Path) -> None:
    group(
        tmp_path / "pod",
        memory_dot_max=str(100 * MIB),
        memory_dot_current=str(99 * MIB),
        memory_dot_stat=f"anon {5 * MIB}\ninactive_file {90 * MIB}\n",
    )
    assert available_memory("0::/pod\n", tmp_path) == 91 * MIB


def test_the_first_version_of_control_groups_is_read_too(tmp_path: Path) -> None:
    group(
        tmp_path / "memory" / "job",
        memory_dot_limit_in_bytes=str(50 * MIB),
        memory_dot_usage_in_bytes=str(20 * MIB),
        memory_dot_stat=f"total_inactive_file {MIB}\n",
    )
    assert available_memory("5:cpu,cpuacct:/job\n4:memory:/job\n", tmp_path) == 31 * MIB


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    group(tmp_path / "free", memory_dot_max="max", memory_dot_current="5")
    assert available_memory("0::/free\n", tmp_path) > 100 * MIB
    assert available_memory("0::/not/there\n", tmp_path) > 100 * MIB


def test_the_smallest_quota_of_cpus_above_the_process_decides(tmp_path: Path) -> None:
    group(tmp_path / "pod", cpu_dot_max="800000 100000\n")
    group(tmp_path / "pod" / "step", cpu_dot_max="max 100000\n")
    assert cpu_quota("0::/pod/step\n", tmp_path) == 8.0
    assert cpu_quota("0::/elsewhere\n", tmp_path) == math.inf
    assert cpu_quota("4:cpu:/pod\n", tmp_path) == math.inf
