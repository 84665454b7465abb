"""What is known of each VM size holds together, and is found under the names that people write."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tomllib

import pytest
from azcp_kit.spec.sku import DEFAULT_SKU, SKUS, Sku, find_sku, load_skus
from azcp_runtime.contract import UsageError
from hypothesis import given
from hypothesis import strategies as st

H100 = "Standard_ND96isr_H100_v5"

each_size = pytest.mark.parametrize("sku", load_skus().values(), ids=lambda sku: sku.name)


def cpus_of(mask: str) -> frozenset[int]:
    bits = int(mask, 16)
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def test_the_sizes_are_those_of_azure() -> None:
    assert set(load_skus()) == {
        "Standard_ND96isr_H100_v5",
        "Standard_ND96isr_H200_v5",
        "Standard_ND96asr_v4",
        "Standard_ND96amsr_A100_v4",
        "Standard_ND96isr_MI300X_v5",
        "Standard_ND128isr_NDR_GB200_v6",
        "Standard_ND128isr_GB300_v6",
        "Standard_ND128isrG5_GB300_v6",
    }


@each_size
def test_its_masks_are_one_per_gpu_and_cover_the_cpus_evenly(sku: Sku) -> None:
    sets = [cpus_of(mask) for mask in sku.task_masks]
    if not sets:
        return
    assert len(sets) == sku.gpus
    assert frozenset().union(*sets) == frozenset(range(sku.cpus))
    for one, other in itertools.combinations(sets, 2):
        assert one == other or not one & other
    assert all(len(one) == sets.count(one) * sku.cpus // sku.gpus for one in sets)


@each_size
def test_no_mask_crosses_a_numa_node(sku: Sku) -> None:
    nodes = [set(node.cpus) for node in sku.numa]
    for mask in sku.task_masks:
        assert any(cpus_of(mask) <= node for node in nodes)


@each_size
def test_its_numa_nodes_share_the_cpus_out(sku: Sku) -> None:
    cpus = [cpu for node in sku.numa for cpu in node.cpus]
    assert sorted(cpus) in ([], list(range(sku.cpus)))
    assert len({len(node.cpus) for node in sku.numa}) <= 1


@each_size
def test_its_numa_nodes_share_the_hcas_out(sku: Sku) -> None:
    hcas = sorted(hca for node in sku.numa for hca in node.hcas)
    assert hcas in ([], list(range(sku.hcas)))
    assert len({len(node.hcas) for node in sku.numa}) <= 1


@each_size
def test_masks_are_known_only_where_the_numa_nodes_are(sku: Sku) -> None:
    assert not sku.task_masks or all(node.cpus for node in sku.numa)


@each_size
def test_the_task_of_a_gpu_is_on_the_node_of_its_hca(sku: Sku) -> None:
    # In each of these machines GPU i and HCA i are on one PCIe switch.
    for at, mask in enumerate(sku.task_masks):
        (node,) = [node for node in sku.numa if at in node.hcas]
        assert cpus_of(mask) <= set(node.cpus)


@each_size
def test_its_architecture_and_pages_belong_together(sku: Sku) -> None:
    assert (sku.arch, sku.page_kib) in (("amd64", (4,)), ("arm64", (4, 64)))


@each_size
def test_its_gpus_are_asked_for_by_their_makers_name(sku: Sku) -> None:
    maker = sku.gpu_model.split()[0].lower()
    assert sku.gpu_resource == f"{maker}.com/gpu"
    assert sku.gpus == sku.hcas


@each_size
def test_a_pod_leaves_what_the_kernel_and_the_kubelet_take(sku: Sku) -> None:
    assert sku.headroom_gib >= sku.memory_gib / 64 + 5 + 5
    assert 0 < sku.shm_gib < sku.pod_memory_gib < sku.memory_gib


@each_size
def test_its_disks_are_of_a_size_that_is_made(sku: Sku) -> None:
    if sku.nvme_disks:
        assert 3000 < sku.nvme_gib / sku.nvme_disks <= 3584


@each_size
def test_it_is_found_in_any_case_with_and_without_its_prefix(sku: Sku) -> None:
    short = sku.name.removeprefix("Standard_")
    for name in (sku.name, short, sku.name.lower(), short.upper(), f"STANDARD_{short}"):
        assert find_sku(name) is sku


def test_an_a100_size_has_the_masks_that_its_topology_file_says() -> None:
    # Tasks 0 to 7 as Azure's own validation of NDv4 binds them.
    nodes = [min(cpus_of(mask)) // 24 for mask in find_sku("ND96asr_v4").task_masks]
    assert nodes == [1, 1, 0, 0, 3, 3, 2, 2]


def test_what_is_proposed_is_known() -> None:
    assert find_sku(DEFAULT_SKU).name == DEFAULT_SKU


def test_a_name_that_is_nearly_right_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match="'ND96isr_H100_v4' is no VM size") as failure:
        find_sku("ND96isr_H100_v4")
    assert failure.value.remedy.startswith(f"did you mean {H100}, ")


def test_a_part_of_a_name_is_told_the_names_that_have_it() -> None:
    with pytest.raises(UsageError) as failure:
        find_sku("GB300")
    assert failure.value.remedy == "did you mean Standard_ND128isr_GB300_v6, Standard_ND128isrG5_GB300_v6?"


@pytest.mark.parametrize("name", ["", "Standard_", "toaster"])
def test_a_name_that_is_far_off_is_told_all(name: str) -> None:
    with pytest.raises(UsageError) as failure:
        find_sku(name)
    assert failure.value.remedy == f"known are {', '.join(load_skus())}"


def test_a_name_is_shown_on_one_line() -> None:
    with pytest.raises(UsageError, match=r"'h100\\n\\x1b' is no VM size"):
        find_sku("h100\n\x1b")


@given(st.text())
def test_any_other_text_is_a_usage_error(name: str) -> None:
    if name.lower().removeprefix("standard_") not in {
        n.lower().removeprefix("standard_") for n in load_skus()
    }:
        with pytest.raises(UsageError):
            find_sku(name)


def test_no_key_is_unread() -> None:
    keys = {key for table in tomllib.loads(SKUS.read_text(encoding="utf-8")).values() for key in table}
    assert {key.replace("-", "_") for key in keys} <= set(Sku.__dataclass_fields__)


def test_the_file_is_read_when_it_is_asked_for_and_once() -> None:
    program = (
        "import sys; from azcp_kit.spec import sku; assert 'tomllib' not in sys.modules;"
        "assert sku.load_skus() is sku.load_skus(); assert 'difflib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
