"""What an engine is told: the context, the proxies and a CA for the builder alone, and no secret in sight."""

from __future__ import annotations

import io
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from azcp_kit.image.build import BuildRequest, BuildSecret, build_arguments, laid_out
from azcp_kit.image.buildx import BuildxBuilder, buildx_arguments
from azcp_kit.image.classic import step_failed
from azcp_kit.image.context import Supplies
from azcp_kit.image.plan import InjectPlan, Rdma, Wishes, plan_injection
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.payload import assemble
from azcp_runtime.contract import PreflightError, UsageError
from rich.console import Console

from tests.kit.image_facts import bare, debian, verbs
from tests.kit.image_tree import facts_of, musl
from tests.lab.certificate import make_certificate
from tests.lab.small_payload import SmallPayload, make_small_payload

PROXY = "http://me:hunter2@proxy.example:3128"


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallPayload:
    made = make_small_payload(tmp_path / "parts")
    monkeypatch.setattr(assemble, "_requirements", lambda: made.lock)
    return made


@pytest.fixture
def request_for(payload: SmallPayload, tmp_path: Path) -> BuildRequest:
    wishes = Wishes(python=payload.python_option, rdma=Rdma.NONE)
    return BuildRequest("team/base:1", "team/out:1", wishes, Supplies(tmp_path, payload.wheelhouse))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A certificate alone."""
    pem = make_certificate(tmp_path).read_text(encoding="ascii")
    path = tmp_path / "ca.pem"
    path.write_text(pem[: pem.index("-----BEGIN PRIVATE KEY")], encoding="ascii")
    return path


def request_with(facts: ImageFacts, **fields: object) -> tuple[BuildRequest, InjectPlan]:
    wishes = Wishes(arches=("amd64", "arm64"))
    request = BuildRequest("team/base:1", "team/out:1", wishes, Supplies(Path("cache"), None))
    return replace(request, **fields), plan_injection(facts, wishes)  # type: ignore[arg-type]


def test_of_the_environment_builders_are_given_the_proxies_alone() -> None:
    env = {
        "HTTP_PROXY": PROXY,
        "https_proxy": PROXY,
        "no_proxy": "localhost",
        "ALL_PROXY": "",
        "AZURE_STORAGE_KEY": "a key",
        "MY_HTTP_PROXY": "no proxy",
        "HTTP_PROXY_USER": "me",
    }
    assert build_arguments(env) == {"HTTP_PROXY": PROXY, "https_proxy": PROXY, "no_proxy": "localhost"}


def test_the_context_is_gone_after_the_build(request_for: BuildRequest) -> None:
    with laid_out(debian(verbs()), request_for) as (context, plan):
        assert (context / "Dockerfile").exists()
        assert plan.arches == ("amd64",)
    assert not context.exists()


def test_the_context_is_gone_after_a_failure(request_for: BuildRequest) -> None:
    with pytest.raises(PreflightError), laid_out(debian(verbs()), request_for) as (context, _):
        raise PreflightError("the engine failed")
    assert not context.exists()


def test_a_base_that_is_refused_is_refused_before_anything_is_laid_out(
    request_for: BuildRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azcp_kit.image.build.lay_out", lambda *_: pytest.fail("it was laid out"))
    arm = replace(request_for, wishes=replace(request_for.wishes, arches=("arm64",)))
    for facts, request, reason in (
        (facts_of(musl()), request_for, "C library is musl"),
        (debian(), arm, "it is for amd64, and arm64 is asked for"),
    ):
        with pytest.raises(PreflightError, match=reason), laid_out(facts, request):
            pass


def test_a_private_ca_lies_beside_the_builders_scripts_alone(request_for: BuildRequest, bundle: Path) -> None:
    with laid_out(bare(), replace(request_for, ca=bundle)) as (context, _):
        place, pem = context / "build/ca.pem", bundle.read_bytes()
        assert [path for path in context.rglob("*") if path.is_file() and pem in path.read_bytes()] == [place]
        assert stat.S_IMODE(place.stat().st_mode) == 0o644
        text = (context / "Dockerfile").read_text(encoding="utf-8")
        script = (context / "build/install-packages.sh").read_text(encoding="utf-8")
    _, _, last_stage = text.rpartition("\nFROM ")
    assert "build/" not in last_stage
    assert "CaInfo=$ca" in script


def test_a_build_without_builder_stages_has_no_use_for_a_ca(request_for: BuildRequest, bundle: Path) -> None:
    with laid_out(debian(verbs()), replace(request_for, ca=bundle)) as (context, _):
        assert not (context / "build").exists()


@pytest.mark.parametrize(
    "content", ["", "no PEM", "-----BEGIN PUBLIC KEY-----\n", "\N{LATIN SMALL LETTER E WITH ACUTE}"]
)
def test_what_is_no_bundle_of_certificates_is_refused(
    request_for: BuildRequest, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(content, encoding="utf-8")
    for facts in (bare(), debian(verbs())):
        with pytest.raises(UsageError, match=f"--ca {path}"), laid_out(facts, replace(request_for, ca=path)):
            pass


def test_a_ca_with_its_private_key_is_refused_without_a_word_of_it(
    request_for: BuildRequest, tmp_path: Path
) -> None:
    both = make_certificate(tmp_path)
    with (
        pytest.raises(UsageError, match="must hold certificates in PEM and nothing else") as failure,
        laid_out(bare(), replace(request_for, ca=both)),
    ):
        pass
    key = both.read_text(encoding="ascii").rpartition("PRIVATE KEY-----\n")[0].splitlines()[-1]
    assert key not in str(failure.value)


def test_a_ca_that_is_not_there_is_refused(request_for: BuildRequest, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="cannot be read: .*No such file"),
        laid_out(bare(), replace(request_for, ca=tmp_path / "absent")),
    ):
        pass


def test_buildx_is_told_platforms_names_and_where_secrets_are() -> None:
    secrets = (BuildSecret("token", Path("/run/user/token")), BuildSecret("other", Path('/a, "b"')))
    env = {"HTTPS_PROXY": PROXY, "AZCP_SAS": "sig=secret"}
    request, plan = request_with(debian(verbs()), secrets=secrets, env=env)
    assert buildx_arguments(request, plan, Path("/out/id")) == [
        "buildx",
        "build",
        "--progress=plain",
        "--platform=linux/amd64,linux/arm64",
        "--iidfile=/out/id",
        "--tag=team/out:1",
        "--push",
        "--build-arg=HTTPS_PROXY",
        "--secret=id=token,src=/run/user/token",
        '--secret=id=other,"src=/a, ""b"""',
    ]


def test_buildx_loads_one_platform_so_that_it_can_be_proven_before_it_is_pushed() -> None:
    request, plan = request_with(debian(verbs()), push=True)
    arguments = buildx_arguments(request, replace(plan, arches=("amd64",)), Path("/out/id"))
    assert "--load" in arguments
    assert "--push" not in arguments


FAKE_DOCKER = """#!/bin/sh
for word; do
    printf '%s\\n' "$word"
    case $word in --iidfile=*) printf 'sha256:1' >"${word#--iidfile=}" ;; esac
done >"$0.argv"
printenv HTTPS_PROXY >"$0.env"
[ "$2" = version ] || [ ! -e "$0.fails" ] || {
    printf '#7 ERROR: \\033[31mover http://me:hunter2@proxy.example\\n'
    exit 3
}
"""


@pytest.fixture
def fake_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin/docker"
    path.parent.mkdir()
    path.write_text(FAKE_DOCKER, encoding="ascii")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return path


def build_with_buildx(tmp_path: Path) -> str:
    request, plan = request_with(debian(verbs()), push=True, env={"HTTPS_PROXY": PROXY})
    console = Console(file=io.StringIO())
    return BuildxBuilder(console).build(tmp_path, request, plan)


def test_a_proxys_password_reaches_buildx_by_the_environment_and_never_by_arguments(
    fake_docker: Path, tmp_path: Path
) -> None:
    assert build_with_buildx(tmp_path) == "sha256:1"
    assert "hunter2" not in fake_docker.with_name("docker.argv").read_text(encoding="ascii")
    assert fake_docker.with_name("docker.env").read_text(encoding="ascii").strip() == PROXY


def test_a_failed_step_is_told_with_its_last_lines_and_without_passwords(
    fake_docker: Path, tmp_path: Path
) -> None:
    fake_docker.with_name("docker.fails").touch()
    with pytest.raises(PreflightError, match="docker buildx ended with 3") as failure:
        build_with_buildx(tmp_path)
    assert "#7 ERROR: over http://proxy.example" in str(failure.value)


def test_several_platforms_are_built_to_be_pushed_or_not_at_all(tmp_path: Path) -> None:
    request, plan = request_with(debian(verbs()))
    with pytest.raises(UsageError, match="an engine holds one platform of an image; give --push"):
        BuildxBuilder(Console(file=io.StringIO())).build(tmp_path, request, plan)


def test_a_machine_without_the_docker_command_is_told_what_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PreflightError, match="the docker command is not installed; use --engine docker"):
        build_with_buildx(tmp_path)


def test_no_line_of_a_build_can_drive_the_terminal() -> None:
    told = str(step_failed("\x1b]0;owned\x07", ["\x1b[31mred\x1b[0m", f"GET {PROXY}/x", "a\rb"]))
    assert all(line.isprintable() for line in told.split("\n"))
    assert "\n    red" in told
    assert "hunter2" not in told
