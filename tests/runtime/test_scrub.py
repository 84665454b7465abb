"""No secret survives in a printed line."""

from __future__ import annotations

import pytest
from azcp_runtime import console
from azcp_runtime.scrub import hide, scrub, without_secrets

KEY = "Zm9vYmFyYmF6cXV4cXV1eA=="


@pytest.mark.parametrize(
    "text",
    [
        "Max retries exceeded with url: /c?sv=2024&sig=ab%2Bcd%3D&se=1 (Caused by X)",
        "{'url': 'https://a/c?SIG=ab%2Bcd%3D'}",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=ab%2Bcd%3D;EndpointSuffix=x",
        "Authorization: SharedKey acct:ab+cd=",
        "Authorization: Bearer eyJ0.ab-cd.ef",
    ],
)
def test_signatures_keys_and_tokens_are_cut_out_and_the_rest_stays(text: str) -> None:
    cleaned = scrub(text, {})
    assert "***" in cleaned
    assert not any(part in cleaned for part in ("ab%2Bcd", "ab+cd", "eyJ0"))
    assert cleaned.split("***")[0] == text[: len(cleaned.split("***")[0])]


def test_values_of_the_environment_are_cut_out_wherever_they_stand() -> None:
    assert scrub(f"key {KEY!r} refused", {"AZURE_STORAGE_KEY": KEY}) == "key '***' refused"
    assert "sv" not in scrub("at /c?sv=1&sp=rl", {"AZCP_SAS": "sv=1&sp=rl"})


def test_a_value_that_was_hidden_is_cut_out_of_every_stream(capsys: pytest.CaptureFixture[str]) -> None:
    hide("opaque-token/1+2")
    console.install()
    print("it was opaque-token/1+2 or opaque-token%2F1%2B2")
    assert capsys.readouterr().out == "it was *** or ***\n"


def test_a_short_value_is_not_hidden() -> None:
    hide("rl")
    assert without_secrets("a world of rl") == "a world of rl"
