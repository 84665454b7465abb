"""The Dockerfile is the checked-in one, and no value of an image or a user can add a line to it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from azcp_kit.image.dockerfile import dockerfile, own_sources, user_to_restore
from azcp_kit.image.plan import Mpi, Rdma, Ssh, Wishes, plan_injection
from azcp_kit.inspect.facts import ImageFacts
from azcp_runtime.contract import UsageError
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.golden_dockerfiles import CASES, FOLDER, path_of, text_of
from tests.kit.image_facts import bare, debian, verbs
from tests.kit.image_tree import IDENTITY

HOSTILE_REFERENCES = [
    "team/base:1\nRUN evil",
    "team/base:1 AS other",
    "team/base:1#comment",
    "team/$BASE",
    "team/${BASE}:1",
    "team/base:1\\",
    "--platform=linux/arm64",
    "-team/base",
    "team/base@sha256:abc",
    "team//base",
    "team/base:",
    "https://registry.example/base",
    "team/base:é",
    "team/baſe",  # noqa: RUF001 - a long s, which is an s where case does not matter
    " team/base",
    "team/base\r",
    "team/base\u2028x",
]
HOSTILE_USERS = [
    "1000\nRUN evil",
    "$HOME",
    "${UID}",
    'a"b',
    "a'b",
    "a b",
    "a\\b",
    "a#b",
    "-root",
    ":0",
    "1000:",
    "a:b:c",
    "${x}:0",
    "é",
    "a\u2028b",
    "\t",
]


def rendered(facts: ImageFacts, wishes: Wishes | None = None) -> str:
    return dockerfile(plan_injection(facts, wishes or Wishes()), facts)


def instructions(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("name", CASES)
def test_the_dockerfile_is_the_checked_in_one(name: str) -> None:
    assert path_of(name).read_text(encoding="utf-8") == text_of(name), "run make examples"


def test_every_checked_in_dockerfile_has_its_case() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {path_of(name).name for name in CASES}


@pytest.mark.parametrize("name", sorted(set(CASES) - {"secrets"}))
def test_the_classic_builder_knows_every_line(name: str) -> None:
    for line in instructions(text_of(name)):
        assert re.match(r"(FROM|COPY|RUN|USER|ARG) ", line), line
        assert "--mount" not in line
        assert "<<" not in line
        assert not line.endswith("\\")


@pytest.mark.parametrize("name", CASES)
def test_a_run_line_needs_no_shell(name: str) -> None:
    for line in instructions(text_of(name)):
        if line.startswith("RUN "):
            command = line[line.index("[") :]
            assert all(isinstance(word, str) for word in json.loads(command)), line


@pytest.mark.parametrize("name", CASES)
def test_the_base_is_given_no_setting_of_its_own(name: str) -> None:
    words = {line.split()[0] for line in instructions(text_of(name))}
    assert not words & {"ENV", "ENTRYPOINT", "CMD", "WORKDIR", "LABEL", "SHELL", "HEALTHCHECK", "VOLUME"}


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("packages")])
def test_without_packages_nothing_of_the_base_is_run(name: str) -> None:
    _, _, last_stage = text_of(name).rpartition("\nFROM ")
    assert {line.split()[0] for line in instructions(last_stage)[1:]} <= {"COPY", "ARG"}


def test_the_default_is_the_base_and_two_layers() -> None:
    assert len(instructions(text_of("copy-alone"))) == 3


@pytest.mark.parametrize("reference", HOSTILE_REFERENCES)
def test_a_base_that_is_no_image_reference_is_refused(reference: str) -> None:
    facts = replace(bare(), identity=replace(IDENTITY, reference=reference))
    with pytest.raises(UsageError, match="is no image reference"):
        rendered(facts)


@pytest.mark.parametrize("reference", HOSTILE_REFERENCES)
def test_an_image_of_the_users_that_is_no_reference_is_refused(reference: str) -> None:
    for wishes in (
        Wishes(mpi=Mpi.IMAGE, mpi_image=reference),
        Wishes(mpi=Mpi.SOURCE, builder=reference),
    ):
        with pytest.raises(UsageError, match="is no image reference"):
            rendered(debian(verbs()), wishes)


@pytest.mark.parametrize(
    "reference",
    [
        "debian",
        "debian:11-slim",
        "localhost:5000/a/b/c:Tag_1.0",
        "nvcr.io/nvidia/pytorch:24.10-py3",
        "Registry.Example:443/team__x/base-image--y",
        f"sha256:{'ab' * 32}",
        f"registry.example/team/base:1@sha256:{'ab' * 32}",
    ],
)
def test_an_image_reference_stands_in_the_from_line_as_it_is(reference: str) -> None:
    facts = replace(bare(), identity=replace(IDENTITY, reference=reference))
    assert f"\nFROM {reference}\n" in rendered(facts)


def test_a_long_name_is_judged_in_time() -> None:
    facts = replace(bare(), identity=replace(IDENTITY, reference="a-." * 20_000 + "!"))
    with pytest.raises(UsageError, match="is no image reference"):
        rendered(facts)


@pytest.mark.parametrize("user", HOSTILE_USERS)
def test_a_user_that_no_line_can_restore_is_refused_where_packages_need_root(user: str) -> None:
    with pytest.raises(UsageError, match="no Dockerfile can restore") as failure:
        rendered(debian(user=user), Wishes(ssh=Ssh.PACKAGE))
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("user", HOSTILE_USERS)
def test_no_user_is_in_the_way_of_copies(user: str) -> None:
    assert rendered(debian(verbs(), user=user)) == rendered(debian(verbs()))


@pytest.mark.parametrize("user", ["", "0", "root", "0:0", "root:root", "root:0", "0:root"])
def test_where_root_is_the_user_there_is_nothing_to_restore(user: str) -> None:
    assert user_to_restore(user) == ""
    assert "\nUSER " not in rendered(debian(user=user), Wishes(ssh=Ssh.PACKAGE))


@pytest.mark.parametrize(
    "user", ["1000", "1000:1000", "trainer", "trainer:users", "svc$", "0:100", "a.b_c-d"]
)
def test_the_users_own_spelling_comes_back_last(user: str) -> None:
    lines = instructions(rendered(debian(user=user), Wishes(ssh=Ssh.PACKAGE)))
    assert [line for line in lines if line.startswith("USER ")] == ["USER 0", f"USER {user}"]
    assert lines.index(f"USER {user}") > lines.index("USER 0") + 1


def expanded(word: str) -> str:
    """What the builder makes of a USER line's word: quotes and backslashes go, variables are empty."""
    without = re.sub(r"\$\{[^}]*\}|\$[A-Za-z_0-9@*#?$!-]+", "", word)
    return re.sub(r"[\"'\\]", "", without)


@given(st.text(max_size=20) | st.text(alphabet="aR0_.-:$\"'\\ \n{}#", max_size=8))
def test_a_user_comes_back_as_it_was_or_is_refused(user: str) -> None:
    try:
        restored = user_to_restore(user)
    except UsageError:
        return
    assert restored in ("", user)
    assert len(restored.split()) <= 1
    assert restored.splitlines() in ([], [restored])
    assert expanded(restored) == restored


def test_the_distributions_own_sources_are_told_from_others() -> None:
    files = (
        "/etc/apt/sources.list",
        "/etc/apt/sources.list.d/a.list",
        "/etc/apt/sources.list.d/ubuntu.sources",
    )
    assert own_sources(files) == "/etc/apt/sources.list.d/ubuntu.sources"
    assert own_sources(files[:2]) == "/etc/apt/sources.list"


def test_a_base_without_sources_of_its_own_is_refused_with_what_needs_none() -> None:
    with pytest.raises(UsageError, match="does not tell its distribution's own package sources") as failure:
        own_sources(("/etc/apt/sources.list.d/vendor.list",))
    assert "--ssh bundled and --rdma bundled" in failure.value.remedy


def test_the_same_input_gives_the_same_text() -> None:
    assert rendered(debian(), Wishes(rdma=Rdma.BUNDLED)) == rendered(debian(), Wishes(rdma=Rdma.BUNDLED))
