"""The proof of an image: what counts as unchanged, what the self test answers, how the result is told."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import replace

import pytest
from azcp_kit.inspect.detect_parent import describe_parent
from azcp_kit.inspect.facts import Account, Identity
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.verify.base import begins_with, check_layers_below, closest
from azcp_kit.verify.commands import has_grown
from azcp_kit.verify.config import added_secrets, compare_config
from azcp_kit.verify.container import Ended
from azcp_kit.verify.layers import Stack
from azcp_kit.verify.prove import parse_manifest
from azcp_kit.verify.self_test import Runner, checks_of, runners
from azcp_kit.verify.table import print_verification
from azcp_kit.verify.verification import Check, Outcome, Verification, judged, ok
from azcp_runtime.contract import ExitCode, VerifyError
from azcp_runtime.contract.selftest import Subject
from rich.console import Console

CONFIG: Mapping[str, object] = {
    "Env": ["PATH=/bin", "HF_TOKEN=hf_0123456789abcdef0123"],
    "User": "1000",
    "Entrypoint": ["/entry", "--flag"],
    "Cmd": None,
    "WorkingDir": "/home",
    "Labels": {"team": "vision"},
    "Volumes": {"/data": {}},
    "Hostname": "builder",
}
SIGNATURE = "sig=" + "Ab1%2B" * 12


def image(layers: str, config: Mapping[str, object] = CONFIG, reference: str = "x") -> StoredImage:
    """An image with a layer for each letter."""
    identity = Identity(reference, f"sha256:{layers}", (), 1, tuple(layers), "linux", "amd64", "")
    return StoredImage(identity, config)


def failures(checks: tuple[Check, ...]) -> dict[str, str]:
    return {check.name: check.found for check in checks if check.outcome is Outcome.FAIL}


def verification(*checks: Check) -> Verification:
    return Verification("team/train:1", "sha256:1", "team/base:1", 2**20, 2, checks)


@pytest.mark.parametrize(
    ("change", "check", "found"),
    [
        ({"Env": [*CONFIG["Env"], "A=1"]}, "base ENV", "A is set"),  # type: ignore[misc]
        ({"Env": ["PATH=/bin"]}, "base ENV", "HF_TOKEN is gone"),
        ({"Env": ["PATH=/bin", "HF_TOKEN=hf_other"]}, "base ENV", "HF_TOKEN has another value"),
        ({"User": None}, "base USER", "User is not set, was 1000"),
        ({"Entrypoint": ["/entry"]}, "base ENTRYPOINT and CMD", "Entrypoint is /entry, was /entry --flag"),
        ({"Cmd": ["sh"]}, "base ENTRYPOINT and CMD", "Cmd is sh, was not set"),
        ({"Shell": ["/bin/bash", "-c"]}, "base ENTRYPOINT and CMD", "Shell is /bin/bash -c, was not set"),
        ({"StopSignal": "SIGINT"}, "base ENTRYPOINT and CMD", "StopSignal is SIGINT, was not set"),
        ({"WorkingDir": "/"}, "base WORKDIR", "WorkingDir is /, was /home"),
        (
            {"Healthcheck": {"Test": ["NONE"]}},
            "base HEALTHCHECK",
            "Healthcheck is {'Test': ['NONE']}, was not set",
        ),
        ({"Volumes": {}}, "base VOLUME and EXPOSE", "Volumes is not set, was {'/data': {}}"),
        (
            {"ExposedPorts": {"22/tcp": {}}},
            "base VOLUME and EXPOSE",
            "ExposedPorts is {'22/tcp': {}}, was not set",
        ),
        ({"OnBuild": ["RUN x"]}, "base ONBUILD", "OnBuild is RUN x, was not set"),
        ({"Labels": {"team": "speech"}}, "base LABEL", "team has another value"),
    ],
)
def test_each_change_of_the_config_fails_its_own_check(
    change: Mapping[str, object], check: str, found: str
) -> None:
    assert failures(compare_config({**CONFIG, **change}, CONFIG)) == {check: found}


def test_what_builders_leave_out_or_add_is_no_change() -> None:
    now = {name: value for name, value in CONFIG.items() if name not in ("Cmd", "Hostname")}
    assert (
        failures(
            compare_config({**now, "OnBuild": [], "Labels": {"team": "vision", "io.azcp.x": "1"}}, CONFIG)
        )
        == {}
    )


def test_a_working_folder_that_is_the_default_may_be_written_out() -> None:
    assert failures(compare_config({"WorkingDir": "/"}, {"WorkingDir": ""})) == {}


def test_no_value_that_may_be_secret_is_told() -> None:
    changed = {
        "Env": ["HF_TOKEN=hf_anotherTokenOfTheTeam00"],
        "Cmd": ["run", "--url", f"https://x/?{SIGNATURE}"],
    }
    told = str(compare_config(changed, CONFIG))
    assert "anotherToken" not in told
    assert "Ab1" not in told


def test_control_characters_of_an_image_do_not_reach_the_terminal() -> None:
    changed = {**CONFIG, "User": "\x1b[31m", "Env": [*CONFIG["Env"], "\x1bA=1"]}  # type: ignore[misc]
    assert str(failures(compare_config(changed, CONFIG))).isprintable()


def test_a_secret_that_the_base_has_already_is_not_ours() -> None:
    assert added_secrets(CONFIG, CONFIG) == ()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"Env": ["API_KEY=abc"]}, ("Env API_KEY",)),
        ({"Env": [f"SOURCE=https://x/?{SIGNATURE}"]}, ("Env SOURCE",)),
        ({"Env": ["HF_TOKEN=hf_other"]}, ("Env HF_TOKEN",)),
        ({"Labels": {"io.azcp.token": "x"}}, ("Labels io.azcp.token",)),
        ({"Cmd": ["curl", f"https://x/?{SIGNATURE}"]}, ("Cmd",)),
    ],
)
def test_a_secret_in_the_config_is_told_by_its_name(
    change: Mapping[str, object], found: tuple[str, ...]
) -> None:
    assert added_secrets(change, CONFIG) == found


def test_the_base_is_the_image_with_the_most_of_the_layers() -> None:
    candidates = [image("a"), image("ab"), image("abcd"), image("ax"), image("")]
    assert closest(image("abcd"), candidates) == candidates[1]


def test_of_two_with_the_same_layers_the_base_is_the_one_whose_config_is_more_alike() -> None:
    candidates = [image("ab", {"User": "root"}, "parent"), image("ab", CONFIG, "base")]
    assert closest(image("abc", {**CONFIG, "Cmd": ["sh"]}), candidates) == candidates[1]


def test_the_same_layers_under_another_architecture_are_no_base() -> None:
    other = image("ab")
    other = StoredImage(replace(other.identity, arch="arm64"), other.config)
    assert closest(image("abc"), [other]) is None


def test_an_image_without_a_base_here_has_none() -> None:
    assert closest(image("abc"), [image("b"), image("abc")]) is None


def test_layers_that_are_not_the_bases_fail() -> None:
    assert begins_with(image("abc"), image("ab"))
    assert check_layers_below(image("abc"), image("ab")).outcome is Outcome.OK
    assert check_layers_below(image("xbc"), image("ab")).outcome is Outcome.FAIL
    assert check_layers_below(image("a"), image("ab")).outcome is Outcome.FAIL


def test_a_folder_is_told_by_owner_and_mode() -> None:
    header = tarfile.TarInfo("opt/")
    header.type, header.mode, header.uid, header.gid = tarfile.DIRTYPE, 0o770, 1000, 100
    assert describe_parent(header) == "a folder of 1000:100 with mode 770"
    assert describe_parent(None) == "not there"


def test_the_manifest_tells_the_stack_and_whether_packages_were_used() -> None:
    manifest = {"choices": {"mpi": "source"}, "components": [{"kind": "source"}, {"kind": "package"}]}
    assert parse_manifest(json.dumps(manifest).encode()) == Stack("source", has_packages=True)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"components": [], "choices": 1}', b"\xff"])
def test_a_manifest_that_cannot_be_read_is_none(content: bytes) -> None:
    assert parse_manifest(content) is None


def test_packages_may_add_libraries_to_the_loaders_cache_and_take_none_away() -> None:
    before = Ended(0, b"2 libs\n\ta => /a\n\tb => /b\n", b"")
    assert has_grown(Ended(0, b"3 libs\n\ta => /a\n\tb => /b\n\tc => /c\n", b""), before)
    assert not has_grown(Ended(0, b"2 libs\n\ta => /a\n\tb => /other/b\n", b""), before)


TRAINER, ROOT = Account(1000, "trainer", "/home"), Account(0, "root", "/root")


def test_the_self_test_runs_as_root_and_as_the_bases_user() -> None:
    assert [runner.user for runner in runners("trainer:users", TRAINER, "bundled")] == [
        "0:0",
        "trainer:users",
    ]


def test_where_the_bases_user_is_root_a_uid_without_a_name_takes_its_place() -> None:
    assert [runner.name for runner in runners("", ROOT, "bundled")] == ["root", "uid 54321"]


@pytest.mark.parametrize(
    ("account", "ssh", "is_tried"),
    [
        (ROOT, "bundled", True),
        (ROOT, "base", False),
        (TRAINER, "base", True),
        (Account(1000, "", ""), "base", False),
        (Account(1000, "", ""), "bundled", True),
    ],
)
def test_openssh_is_tried_only_by_who_has_an_entry_in_passwd(
    account: Account, ssh: str, is_tried: bool
) -> None:
    root, other = runners("x", account, ssh)
    assert Subject.SSHD in root.subjects
    assert (Subject.SSHD in other.subjects) is is_tried


RUNNER = Runner("0", "root", (Subject.SSHD, Subject.DISTRIBUTE))


def answer(name: str, status: str = "ok") -> str:
    return json.dumps({"name": name, "status": status, "found": "it is so", "remedy": ""})


def test_answers_are_told_from_the_bases_noise_by_their_mark() -> None:
    noise = (
        f"welcome to the base\n{answer('sshd', 'fail')}\nother {answer('sshd', 'fail')}\nmark [\nmark []\n"
    )
    said = f"{noise}mark {answer('sshd')}\nmark {answer('distribute', 'fail')}\n"
    checks = checks_of(Ended(0, said.encode(), b""), "mark", RUNNER)
    assert [(check.name, check.outcome) for check in checks] == [
        ("sshd as root", Outcome.OK),
        ("distribute as root", Outcome.FAIL),
    ]


def test_a_self_test_that_ends_half_way_fails_what_it_has_not_answered() -> None:
    ended = Ended(
        None, f"mark {answer('sshd')}\n".encode(), b"\x1b[31mlast words", "it did not end within 9 s"
    )
    sshd, distribute = checks_of(ended, "mark", RUNNER)
    assert sshd.outcome is Outcome.OK
    assert distribute.outcome is Outcome.FAIL
    assert distribute.found == "no answer, it did not end within 9 s: \\x1b[31mlast words"


def test_a_proof_that_holds_raises_nothing() -> None:
    verification(ok("size", "small")).expect_success()


def test_a_failure_names_its_checks_and_has_the_code_of_verify() -> None:
    proof = verification(ok("size", "small"), judged("base USER", ("it is root",), "", "build again"))
    with pytest.raises(VerifyError, match="team/train:1 is not as it should be: base USER") as caught:
        proof.expect_success()
    assert caught.value.exit_code is ExitCode.VERIFY
    assert (caught.value.cause, caught.value.remedy) == ("it is root", "build again")


def test_the_json_holds_every_check() -> None:
    found = json.loads(verification(ok("size", "small"), judged("base USER", ("x",), "", "y")).to_json())
    assert (found["schema"], found["ok"], found["added_bytes"], found["added_layers"]) == (1, False, 2**20, 2)
    assert found["checks"][1] == {"name": "base USER", "outcome": "fail", "found": "x", "remedy": "y"}


def test_many_problems_of_one_check_are_counted() -> None:
    assert judged("files", tuple("abcdefgh"), "", "").found == "a; b; c; d; e; f; and 2 more"


def test_the_table_tells_each_check_with_its_remedy() -> None:
    text = io.StringIO()
    proof = verification(ok("size", "small"), judged("base USER", ("[bold]x",), "", "build again"))
    print_verification(proof, Console(file=text, width=80))
    first, *_ = [line.split() for line in text.getvalue().splitlines()[1:]]
    assert first == ["ok", "size", "small"]
    assert "[bold]x" in text.getvalue()
    assert "-> build again" in text.getvalue()
    assert "added: 1.00 MiB in 2 layers" in text.getvalue()
