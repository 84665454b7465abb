"""The facts of the all-reduce test fit those of the VM sizes."""

from __future__ import annotations

from azcp_kit.nccl.expected import find_figure, load_figures
from azcp_kit.nccl.sizes import load_sizes
from azcp_kit.spec import names
from azcp_kit.spec.sku import load_skus


def test_every_vm_size_has_what_the_test_needs() -> None:
    assert set(load_sizes()) == set(load_skus())
    for name, size in load_sizes().items():
        assert size.library == ("RCCL" if load_skus()[name].gpu_resource == "amd.com/gpu" else "NCCL")
        assert size.binary.startswith("/opt/")
        assert not [key for key in size.env if names.variable(key)]


def test_no_variable_names_an_hca_or_the_topology_which_differ_between_images() -> None:
    for size in load_sizes().values():
        assert not [value for value in size.env.values() if "mlx5" in value or value.startswith("/")]


def test_every_figure_is_of_a_known_size_and_has_its_source() -> None:
    for figure in load_figures():
        sku = load_skus()[figure.sku]
        assert figure.nodes > 1
        assert figure.source
        assert figure.conditions
        # A bus bandwidth above what HCAs carry is SHARP's, the tree's of two nodes, or NVLink's.
        assert 0 < figure.gbps < 3 * sku.hcas * sku.hca_gbps / 8


def test_a_rack_of_gb300_has_two_figures_by_the_way_its_ranks_talk() -> None:
    name = "Standard_ND128isr_GB300_v6"
    within = find_figure(name, ("P2P/MNNVL",))
    across = find_figure(name, ("NET/IBext_v8/GDRDMA", "P2P/MNNVL"))
    assert within
    assert across
    assert (within.gbps, across.gbps) == (937.0, 200.0)
    assert find_figure(name, ()) is None


def test_a_size_that_nobody_measured_has_none() -> None:
    assert find_figure("Standard_ND96isr_MI300X_v5", ("NET/IB",)) is None


def test_the_masks_give_each_gpu_its_cpus_and_leave_none_over() -> None:
    for sku in load_skus().values():
        if not sku.task_masks:
            continue
        masks = [int(mask, 16) for mask in sku.task_masks]
        assert len(masks) == sku.gpus
        together = 0
        for mask in masks:
            together |= mask
        assert together == (1 << sku.cpus) - 1, sku.name
        # Each CPU belongs to as many tasks as share its mask.
        assert sum(mask.bit_count() / masks.count(mask) for mask in masks) == sku.cpus
