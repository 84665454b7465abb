"""Kubernetes quantities, read and written."""

from __future__ import annotations

import pytest
from azcp_kit.quantity import quantity, quantity_bytes
from hypothesis import example, given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("1", 1), ("64Gi", 64 << 30), ("500m", 1), ("1.5Ki", 1536), ("1e3", 1000), ("2k", 2000), ("1E", 10**18)],
)
def test_a_quantity_is_a_number_of_bytes(text: str, size_bytes: int) -> None:
    assert quantity_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "Gi", "1KB", "1 Gi", "ki", "1ki", "1e", "0x1", "\u0661"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        quantity_bytes(text)


@given(st.integers(0, 1 << 60))
@example((1 << 59) + 1)
def test_what_is_written_is_read_as_no_less_and_hardly_more(size_bytes: int) -> None:
    assert size_bytes <= quantity_bytes(quantity(size_bytes)) < size_bytes + (1 << 20)
