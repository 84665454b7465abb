"""What is injected follows from the base's facts and the wishes alone, and says why."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from azcp_kit.image.plan import (
    DEFAULT_BUILDER,
    OLDEST_VERBS,
    InjectPlan,
    Mpi,
    Rdma,
    Ssh,
    Wishes,
    has_verbs,
    plan_injection,
    plan_lines,
)
from azcp_kit.inspect.facts import ImageFacts
from azcp_kit.payload.pins import pinned
from azcp_runtime.contract import UsageError

from tests.kit.image_facts import DIGEST, SSHD, bare, debian, other_distribution, verbs
from tests.kit.image_tree import Content

RDMA_PACKAGES = ("libibverbs1", "ibverbs-providers", "librdmacm1")
ARCHIVE = f"/srv/archive-1.2.3.tar@sha256:{'ab' * 32}"


def reason(plan: InjectPlan, about: str) -> str:
    (line,) = [line for line in plan.reasons if line.startswith(f"{about}: ")]
    return line


def refusal(facts: ImageFacts, wishes: Wishes) -> str:
    with pytest.raises(UsageError) as failure:
        plan_injection(facts, wishes)
    # What the base lacks can be looked up; what the options contradict is told by them.
    assert bool(failure.value.remedy) == ("the base" in failure.value.what)
    return failure.value.what


def test_the_default_needs_nothing_of_a_base_that_has_verbs() -> None:
    plan = plan_injection(debian(verbs()), Wishes())
    assert (plan.mpi, plan.ssh, plan.rdma) == (Mpi.WHEEL, Ssh.BUNDLED, Rdma.BASE)
    assert (plan.packages, plan.builder, plan.lacking) == ((), "", ())
    assert (plan.openmpi, plan.ucx, plan.rdma_core) == (None, None, None)
    assert plan.arches == ("amd64",)
    assert plan.pythons == {"amd64": pinned("python", arch="amd64")}
    assert "COPY alone, nothing of the base is run" in reason(plan, "layers")


def test_a_base_from_a_registry_is_pinned_by_its_digest() -> None:
    assert plan_injection(debian(), Wishes()).base == DIGEST
    assert plan_injection(bare(), Wishes()).base == "team/base:1"


def test_the_plan_is_told_line_by_line() -> None:
    plan = plan_injection(debian(verbs()), Wishes(arches=("amd64", "arm64")))
    assert plan_lines(plan) == [f"inject amd64 and arm64 into {DIGEST}", *plan.reasons]
    assert [line.partition(":")[0] for line in plan.reasons] == ["mpi", "sshd", "rdma", "layers"]


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({}, False),
        (verbs(f"{OLDEST_VERBS}.0"), True),
        (verbs(f"{OLDEST_VERBS - 1}.9"), False),
        (verbs(provider="mlx4"), False),
        # MOFED's library does not tell a release of rdma-core.
        (verbs("mofed"), True),
    ],
)
def test_verbs_fit_where_ucx_can_load_them(more: dict[str, Content], fits: bool) -> None:
    assert has_verbs(debian(more)) is fits


OLD, NEW = verbs("28.0"), verbs("44.0")


@pytest.mark.parametrize(
    ("wish", "more", "chosen", "packages", "why"),
    [
        (Rdma.AUTO, NEW, Rdma.BASE, (), "library and provider are of one release"),
        (Rdma.AUTO, OLD, Rdma.BUNDLED, (), "UCX needs rdma-core 35 with libmlx5, the base has .* 28.0"),
        (Rdma.AUTO, {}, Rdma.BUNDLED, (), "the base has no verbs library"),
        (Rdma.BASE, NEW, Rdma.BASE, (), "base, as asked"),
        (Rdma.PACKAGE, NEW, Rdma.BASE, (), "nothing to install"),
        (Rdma.PACKAGE, OLD, Rdma.PACKAGE, RDMA_PACKAGES, "package, as asked .the base has .* 28.0"),
        (Rdma.PACKAGE, {}, Rdma.PACKAGE, RDMA_PACKAGES, "package, as asked"),
        (Rdma.BUNDLED, NEW, Rdma.BUNDLED, (), "bundled, as asked"),
        (Rdma.BUNDLED, {}, Rdma.BUNDLED, (), "bundled, as asked"),
        (Rdma.NONE, NEW, Rdma.NONE, (), "the fabric is TCP"),
        (Rdma.NONE, {}, Rdma.NONE, (), "the fabric is TCP"),
    ],
)
def test_verbs_come_from_one_place_and_the_reason_is_said(
    wish: Rdma, more: dict[str, Content], chosen: Rdma, packages: tuple[str, ...], why: str
) -> None:
    plan = plan_injection(debian(more), Wishes(rdma=wish))
    assert (plan.rdma, plan.packages) == (chosen, packages)
    assert re.search(why, reason(plan, "rdma")), reason(plan, "rdma")
    is_bundled = chosen is Rdma.BUNDLED
    assert plan.rdma_core == (pinned("rdma-core") if is_bundled else None)
    assert plan.builder == (DEFAULT_BUILDER if is_bundled else "")


@pytest.mark.parametrize(
    ("wish", "more", "chosen", "packages", "why"),
    [
        (Ssh.AUTO, {}, Ssh.BUNDLED, (), "bundled (asyncssh)"),
        (Ssh.AUTO, SSHD, Ssh.BUNDLED, (), "bundled (asyncssh)"),
        (Ssh.BUNDLED, SSHD, Ssh.BUNDLED, (), "bundled (asyncssh)"),
        (Ssh.BASE, SSHD, Ssh.BASE, (), "the base's /usr/sbin/sshd (9.2p1), as asked"),
        (Ssh.PACKAGE, SSHD, Ssh.BASE, (), "the base's /usr/sbin/sshd (9.2p1), as asked"),
        (Ssh.BASE, {"/usr/sbin/sshd": b""}, Ssh.BASE, (), "(of unknown version), as asked"),
        (Ssh.PACKAGE, {}, Ssh.BASE, ("openssh-server",), "from the base's package manager, as asked"),
    ],
)
def test_the_sshd_is_the_one_that_was_asked_for(
    wish: Ssh, more: dict[str, Content], chosen: Ssh, packages: tuple[str, ...], why: str
) -> None:
    plan = plan_injection(debian({**verbs(), **more}), Wishes(ssh=wish))
    assert (plan.ssh, plan.packages) == (chosen, packages)
    assert why in reason(plan, "sshd")


def test_packages_are_told_with_the_layers() -> None:
    plan = plan_injection(debian(), Wishes(ssh=Ssh.PACKAGE, rdma=Rdma.PACKAGE))
    assert plan.packages == ("openssh-server", *RDMA_PACKAGES)
    assert "openssh-server, libibverbs1, ibverbs-providers, librdmacm1 from the base's own" in reason(
        plan, "layers"
    )


def test_what_every_distribution_has_and_the_base_lacks_comes_from_the_builder() -> None:
    plan = plan_injection(bare(), Wishes(rdma=Rdma.NONE, builder="mirror/debian:11"))
    assert (plan.lacking, plan.builder) == (("libgcc_s.so.1", "libz.so.1"), "mirror/debian:11")
    assert "libgcc_s.so.1 and libz.so.1, which the base lacks, from the builder" in reason(plan, "layers")


def test_sources_are_the_pinned_pair_or_what_was_named() -> None:
    plan = plan_injection(debian(verbs()), Wishes(mpi=Mpi.SOURCE))
    assert (plan.openmpi, plan.ucx, plan.builder) == (pinned("openmpi"), pinned("ucx"), DEFAULT_BUILDER)
    plan = plan_injection(debian(verbs()), Wishes(mpi=Mpi.SOURCE, openmpi="4.1.8", ucx=ARCHIVE))
    assert plan.openmpi == pinned("openmpi", "4.1.8")
    assert plan.ucx is not None
    assert (plan.ucx.location, plan.ucx.version) == ("/srv/archive-1.2.3.tar", "1.2.3")


def test_an_mpi_can_come_from_an_image() -> None:
    plan = plan_injection(debian(verbs()), Wishes(mpi=Mpi.IMAGE, mpi_image="team/mpi:1"))
    assert (plan.mpi, plan.mpi_image, plan.builder) == (Mpi.IMAGE, "team/mpi:1", DEFAULT_BUILDER)
    assert (plan.openmpi, plan.ucx) == (None, None)


def test_bundled_verbs_can_be_of_another_release() -> None:
    plan = plan_injection(debian(), Wishes(rdma_core="52.3"))
    assert plan.rdma_core == pinned("rdma-core", "52.3")


def test_the_mpi_of_the_base_is_told_to_stay() -> None:
    library = b"\0Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4\0"
    mpi: dict[str, Content] = {"/usr/bin/mpirun": b"", "/usr/lib/x86_64-linux-gnu/libmpi.so.40": library}
    facts = debian({**verbs(), **mpi})
    assert [each.kind.value for each in facts.mpis] == ["Open MPI"]
    assert "beside the base's Open MPI" in reason(plan_injection(facts, Wishes()), "mpi")


def test_an_interpreter_of_the_users_own_is_taken_for_the_one_platform() -> None:
    plan = plan_injection(debian(), Wishes(python=ARCHIVE))
    assert plan.pythons["amd64"].location == "/srv/archive-1.2.3.tar"
    version = pinned("python", arch="arm64").version
    plan = plan_injection(debian(), Wishes(python=version, arches=("amd64", "arm64")))
    assert plan.pythons == {arch: pinned("python", arch=arch) for arch in ("amd64", "arm64")}


def test_a_platform_that_is_asked_for_twice_is_built_once() -> None:
    plan = plan_injection(debian(), Wishes(arches=("arm64", "amd64", "arm64"), python=""))
    assert plan.arches == ("arm64", "amd64")
    assert plan_injection(debian(), Wishes(arches=("amd64", "amd64"), python=ARCHIVE)).arches == ("amd64",)


def test_the_same_input_gives_the_same_plan() -> None:
    assert plan_injection(debian(), Wishes()) == plan_injection(debian(), Wishes())


@pytest.mark.parametrize(
    ("facts", "wishes", "problem"),
    [
        (debian(), Wishes(openmpi="4.1.8"), "--openmpi and --ucx need --mpi source"),
        (debian(), Wishes(ucx="1.18.0"), "--openmpi and --ucx need --mpi source"),
        (debian(verbs()), Wishes(rdma_core="52.3"), "--rdma-core needs --rdma bundled"),
        (debian(), Wishes(mpi=Mpi.IMAGE), "--mpi image needs --mpi-image"),
        (debian(), Wishes(mpi_image="team/mpi:1"), "--mpi-image needs --mpi image"),
        (debian(), Wishes(python=ARCHIVE, arches=("amd64", "arm64")), "cannot serve two platforms"),
        (debian(), Wishes(ssh=Ssh.BASE), "--ssh base: the base has no sshd"),
        (debian(verbs("28.0")), Wishes(rdma=Rdma.BASE), "--rdma base: the base has none that UCX can load"),
        (other_distribution(), Wishes(ssh=Ssh.PACKAGE), "installed by apt, the base has microdnf"),
        (bare(), Wishes(rdma=Rdma.PACKAGE), "installed by apt, the base has none"),
        (debian(onbuild=("RUN true",)), Wishes(), "the base has ONBUILD triggers"),
    ],
)
def test_what_cannot_be_is_refused_for_that_reason_alone(
    facts: ImageFacts, wishes: Wishes, problem: str
) -> None:
    told = refusal(facts, wishes)
    assert problem in told
    assert ";" not in told


def test_all_contradictions_are_told_at_once() -> None:
    facts = replace(other_distribution(), config=debian(onbuild=("RUN true",)).config)
    wishes = Wishes(
        mpi=Mpi.IMAGE,
        openmpi="4.1.8",
        python=ARCHIVE,
        rdma_core="52.3",
        ssh=Ssh.BASE,
        rdma=Rdma.PACKAGE,
        arches=("amd64", "arm64"),
    )
    assert len(refusal(facts, wishes).split("; ")) == 7
