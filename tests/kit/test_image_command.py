"""The options of render and build become wishes, and what an engine answers becomes an id or a reason."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from azcp_kit.engine import Engine
from azcp_kit.image.build import BuildRequest
from azcp_kit.image.classic import ClassicBuilder
from azcp_kit.image.command import BuildCommand, make_wishes, print_dockerfile, run_build, write_context
from azcp_kit.image.context import Supplies
from azcp_kit.image.plan import DEFAULT_BUILDER, Mpi, Rdma, Ssh, Wishes, plan_injection
from azcp_kit.image.push import push_image
from azcp_kit.inspect.facts_json import to_json
from azcp_kit.payload import assemble
from azcp_runtime.contract import PreflightError, UsageError
from rich.console import Console

from tests.kit.golden_dockerfiles import path_of
from tests.kit.image_facts import debian, verbs
from tests.kit.image_tree import facts_of, musl
from tests.lab.small_payload import make_small_payload

OPTIONS = {
    "mpi": "wheel",
    "openmpi": "",
    "ucx": "",
    "mpi_image": "",
    "python": "",
    "ssh": "auto",
    "rdma": "auto",
    "rdma_core": "",
    "platform": "",
    "builder": "",
}
COMMAND = BuildCommand(
    base="team/base:1",
    tag="team/out:1",
    wishes=Wishes(),
    wheelhouse=None,
    engine="docker",
    pull=False,
    push=False,
    ca=None,
    secrets=(),
    budget="110MiB",
    verify=False,
)


def wishes_from(**options: str) -> Wishes:
    return make_wishes(**{**OPTIONS, **options})


def test_options_that_are_left_out_are_the_default_wishes() -> None:
    assert wishes_from() == Wishes()


def test_options_become_wishes() -> None:
    wishes = wishes_from(
        mpi="source", openmpi="4.1.8", ssh="package", rdma="bundled", builder="mirror/debian:11"
    )
    assert wishes == Wishes(
        mpi=Mpi.SOURCE, openmpi="4.1.8", ssh=Ssh.PACKAGE, rdma=Rdma.BUNDLED, builder="mirror/debian:11"
    )
    assert wishes_from(builder="").builder == DEFAULT_BUILDER


@pytest.mark.parametrize(
    ("platform", "arches"),
    [
        ("linux/amd64", ("amd64",)),
        ("arm64", ("arm64",)),
        ("linux/amd64, linux/arm64", ("amd64", "arm64")),
    ],
)
def test_platforms_are_named_as_docker_names_them(platform: str, arches: tuple[str, ...]) -> None:
    assert wishes_from(platform=platform).arches == arches


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mpi": "apt"}, "--mpi apt is not known; wheel, source, image"),
        ({"ssh": "none"}, "--ssh none is not known; auto, base, package, bundled"),
        ({"rdma": "yes"}, "--rdma yes is not known; auto, base, package, bundled, none"),
        ({"platform": "windows/amd64"}, "only linux/amd64 and linux/arm64 are known"),
        ({"platform": "linux/riscv64"}, "only linux/amd64 and linux/arm64 are known"),
        ({"platform": "linux/amd64,"}, "only linux/amd64 and linux/arm64 are known"),
    ],
)
def test_a_word_that_an_option_does_not_know_is_refused(options: Mapping[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        wishes_from(**options)


@pytest.fixture
def facts_file(tmp_path: Path) -> Path:
    path = tmp_path / "facts.json"
    path.write_text(to_json(debian(verbs())), encoding="ascii")
    return path


def test_the_dockerfile_is_printed_from_facts_alone(
    facts_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_dockerfile("team/base:1", facts_file, Wishes())
    assert capsys.readouterr().out == path_of("copy-alone").read_text(encoding="utf-8")


def test_facts_of_another_image_are_refused(facts_file: Path) -> None:
    with pytest.raises(UsageError, match="is about team/base:1, not team/other:1"):
        print_dockerfile("team/other:1", facts_file, Wishes())


def test_a_base_that_cannot_be_injected_is_refused_before_it_is_rendered(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(to_json(facts_of(musl())), encoding="ascii")
    with pytest.raises(PreflightError, match="C library is musl"):
        print_dockerfile("team/base:1", path, Wishes())


def test_the_context_is_written_where_nothing_is_yet(
    facts_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = make_small_payload(tmp_path / "parts")
    monkeypatch.setattr(assemble, "_requirements", lambda: payload.lock)
    wishes = Wishes(python=payload.python_option)
    output = tmp_path / "deep/context"
    write_context("team/base:1", facts_file, wishes, payload.wheelhouse, output)
    assert {path.name for path in output.iterdir()} == {"Dockerfile", "vendor-amd64", "own-amd64"}
    with pytest.raises(UsageError, match="context is not empty"):
        write_context("team/base:1", facts_file, wishes, payload.wheelhouse, output)


@pytest.mark.parametrize("secret", ["token", "token=absent", "=file", "a,b=file", "a b=file"])
def test_a_secret_that_names_no_file_is_refused_before_an_engine_is_asked(
    secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="write ID=FILE"):
        run_build(replace(COMMAND, engine="buildx", secrets=(secret,)), quiet=True)


def test_secrets_need_an_engine_that_has_them() -> None:
    with pytest.raises(UsageError, match="--secret needs --engine buildx"):
        run_build(replace(COMMAND, secrets=("token=/etc/passwd",)), quiet=True)


class Answers:
    """An engine's API that answers a build and a push with these lines, and remembers what it was sent."""

    def __init__(self, build: list[dict[str, Any]], push: list[dict[str, Any]] | None = None) -> None:
        self.api = self
        self._build, self._push = build, push or []
        self.sent: list[str] = []
        self.options: dict[str, Any] = {}

    def build(self, fileobj: io.BufferedReader, **options: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
        """What the classic builder says."""
        with tarfile.open(fileobj=fileobj) as tar:
            self.sent = tar.getnames()
        self.options = options
        yield from self._build

    def push(self, _tag: str, **_: object) -> Iterator[dict[str, Any]]:
        """What a registry says."""
        yield from self._push


def build_with(answers: Answers, context: Path, **fields: Any) -> str:  # noqa: ANN401
    wishes = Wishes(arches=fields.pop("arches", ()))
    request = replace(BuildRequest("team/base:1", "team/out:1", wishes, Supplies(context, None)), **fields)
    builder = ClassicBuilder(Engine(cast("Any", answers)), Console(file=io.StringIO()))
    return builder.build(context, request, plan_injection(debian(verbs()), wishes))


def test_the_engine_is_sent_the_context_and_tells_the_id(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").touch()
    answers = Answers([{"stream": "Step 1/1 : FROM x\n"}, {"aux": {"ID": "sha256:1"}}, {"stream": "ok\n"}])
    env = {"HTTP_PROXY": "http://proxy.example", "AZCP_SAS": "sig=secret"}
    assert build_with(answers, tmp_path, env=env) == "sha256:1"
    assert answers.sent == ["Dockerfile"]
    assert answers.options["buildargs"] == {"HTTP_PROXY": "http://proxy.example"}


def test_a_run_that_fails_is_told_with_its_last_lines(tmp_path: Path) -> None:
    lines = [{"stream": f"line {number}\n"} for number in range(100)]
    answers = Answers([*lines, {"stream": "a\nE: no such package\n"}, {"error": "code: 100"}])
    with pytest.raises(PreflightError, match="the build failed: code: 100") as failure:
        build_with(answers, tmp_path)
    assert str(failure.value).endswith("\n    a\n    E: no such package")
    assert "line 99" in str(failure.value)
    assert "line 0\n" not in str(failure.value)


def test_a_builder_that_ends_without_an_image_is_told(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="ended without an image"):
        build_with(Answers([{"stream": "Step 1/1 : FROM x\n"}]), tmp_path)


def test_the_engines_own_builder_makes_one_platform(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one platform at a time; use --engine buildx"):
        build_with(Answers([]), tmp_path, arches=("amd64", "arm64"))


def test_a_push_that_fails_half_way_is_told() -> None:
    console = Console(file=io.StringIO())
    push_image(Engine(cast("Any", Answers([], [{"status": "Pushed"}]))), "team/out:1", console)
    refused = Answers([], [{"status": "Preparing"}, {"error": "denied: \x1b[31mno"}])
    with pytest.raises(PreflightError, match=r"team/out:1 cannot be pushed .denied: \\x1b\[31mno") as failure:
        push_image(Engine(cast("Any", refused)), "team/out:1", console)
    assert "docker login" in failure.value.remedy
