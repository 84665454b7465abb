"""The predicted time is the slowest resource's in one pass, and agrees with what others measured."""

from __future__ import annotations

import pytest
from azcp_kit.predict import START_S, Cluster, Pipeline, Resource, busy_share, one_pass_terms, predict
from hypothesis import given
from hypothesis import strategies as st

GBPS = 1e9 / 8
rates = st.floats(min_value=1e6, max_value=1e12)
clusters = st.builds(
    Cluster, nodes=st.integers(min_value=1, max_value=4096), egress=rates, fabric=rates, disk=rates
)
sizes = st.integers(min_value=1, max_value=10**15)


def test_one_pass_takes_as_long_as_its_slowest_resource() -> None:
    forecast = predict(1000, Cluster(nodes=4, egress=100, fabric=50, disk=200)).one_pass
    assert (forecast.seconds, forecast.bound_by) == (15.0, Resource.FABRIC)


def test_two_stages_take_the_download_and_then_the_slower_of_fabric_and_disk() -> None:
    forecast = predict(1000, Cluster(nodes=4, egress=100, fabric=50, disk=40)).two_stages
    assert (forecast.seconds, forecast.bound_by) == (10 + 25, Resource.DISK)


def test_a_download_by_every_node_serves_the_data_once_per_node() -> None:
    forecast = predict(1000, Cluster(nodes=4, egress=100, fabric=50, disk=200)).every_node_downloads
    assert (forecast.seconds, forecast.egress_bytes) == (40.0, 4000)
    assert forecast.bound_by is Resource.ACCOUNT


def test_a_single_node_needs_no_fabric() -> None:
    forecast = predict(1000, Cluster(nodes=1, egress=100, fabric=0.001, disk=50)).one_pass
    assert (forecast.seconds, forecast.bound_by) == (20.0, Resource.DISK)


def test_the_two_stages_measured_on_16_nodes_are_met_within_two_percent() -> None:
    # 236 Gb/s of download, NVMe at 99 Gb/s; 47.7 s in total.
    measured = Cluster(nodes=16, egress=236.03 * GBPS, fabric=139.5 * GBPS, disk=99.2 * GBPS)
    assert predict(413_340_567_567, measured).two_stages.seconds == pytest.approx(47.7, rel=0.02)


@given(sizes, clusters)
def test_one_pass_is_never_slower_than_two_stages_and_serves_no_more(
    size_bytes: int, cluster: Cluster
) -> None:
    forecasts = predict(size_bytes, cluster)
    assert forecasts.one_pass.seconds <= forecasts.two_stages.seconds
    assert forecasts.one_pass.egress_bytes == forecasts.two_stages.egress_bytes == size_bytes


def test_the_slowest_waits_for_the_first_round_of_the_others_or_they_for_its_last() -> None:
    # A round of 40 bytes takes 0.4 s of the account, 0.6 of the fabric and 0.2 of the disk.
    cluster = Cluster(nodes=4, egress=100, fabric=50, disk=200)
    forecast = predict(1000, cluster, Pipeline(round_bytes=40, start_s=2.0)).one_pass
    assert forecast.seconds == pytest.approx(2.0 + 15.0 + 0.4 + 0.2)


def test_a_data_set_of_less_than_a_round_goes_through_the_resources_one_after_the_other() -> None:
    cluster = Cluster(nodes=4, egress=100, fabric=50, disk=200)
    assert predict(20, cluster, Pipeline(round_bytes=10**6)).one_pass.seconds == pytest.approx(
        0.2 + 0.3 + 0.1
    )


@given(sizes, sizes, clusters)
def test_rounds_never_make_one_pass_slower_than_everything_one_after_the_other(
    size_bytes: int, round_bytes: int, cluster: Cluster
) -> None:
    terms = one_pass_terms(size_bytes, cluster, Pipeline(round_bytes))
    in_turn_s = sum(terms.spans_s.values())
    assert max(terms.spans_s.values()) + terms.rounds_s <= in_turn_s * (1 + 1e-9)


def test_two_equal_resources_and_four_slots_are_each_busy_four_fifths_of_the_time() -> None:
    assert busy_share((3.0, 3.0, 0.0), 4) == pytest.approx(4 / 5)


def test_a_resource_that_is_far_slower_than_the_others_never_waits() -> None:
    assert busy_share((100.0, 1.0, 1.0), 4) == pytest.approx(1.0, abs=1e-3)
    assert busy_share((0.0, 0.0, 0.0), 4) == 1.0


def test_without_slots_the_slowest_is_busy_all_the_time() -> None:
    assert busy_share((3.0, 3.0, 3.0), 0) == 1.0


@given(st.lists(rates, min_size=1, max_size=4), st.integers(min_value=1, max_value=16))
def test_more_slots_keep_the_slowest_busier(demands_s: list[float], slots: int) -> None:
    assert busy_share(demands_s, slots) <= busy_share(demands_s, slots + 1) * (1 + 1e-9) <= 1 + 1e-6


def test_the_measured_times_of_shaped_clusters_are_met_within_15_percent() -> None:
    # 64 Mb/s from the account, chunks of 256 KiB; fabric in Mb/s, nodes, MiB, slots, seconds.
    runs = [(48, 2, 128, 8, 19.83), (48, 4, 128, 4, 22.14), (48, 8, 128, 4, 29.52)]
    runs += [(64, 2, 192, 8, 27.68), (64, 4, 192, 6, 32.47), (64, 8, 192, 4, 32.74)]
    for fabric, nodes, mib, slots, seconds in runs:
        payload = 0.993e6 / 8  # of a megabit, in bytes
        cluster = Cluster(nodes, 64 * payload, fabric * payload, 1e10)
        forecast = predict(mib << 20, cluster, Pipeline(nodes << 18, slots, START_S)).one_pass
        assert forecast.seconds == pytest.approx(seconds, rel=0.15)
