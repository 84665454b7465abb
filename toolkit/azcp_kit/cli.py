"""The command line of azcp-kit; the one module that imports typer. What a command needs is imported by it."""

# Typer reads the annotations at run time, so they are no strings here.

import logging
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from azcp_runtime.contract import AzcpError

from azcp_kit import __version__

app = typer.Typer(
    name="azcp-kit",
    help="Put a data set from Azure Blob Storage on every node of a GPU cluster.",
    no_args_is_help=True,
    # Plain help takes half the time: rich alone costs a tenth of a second to import.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# Options that render and build share.
Base = Annotated[str, typer.Option("--base", help="The image to inject into.")]
MpiSource = Annotated[
    str,
    typer.Option("--mpi", help="wheel, source (compiled in a builder stage), or image (copied from one)."),
]
OpenMpi = Annotated[
    str, typer.Option(help="With --mpi source: a pinned version, or URL-OR-PATH@sha256:DIGEST.")
]
Ucx = Annotated[str, typer.Option(help="The same for UCX.")]
MpiImage = Annotated[str, typer.Option(help="With --mpi image: holds /opt/openmpi and /opt/ucx.")]
PythonArchive = Annotated[
    str,
    typer.Option("--python", help="Interpreter archive, URL-OR-PATH@sha256:DIGEST; a pinned one if absent."),
]
SshChoice = Annotated[str, typer.Option("--ssh", help="auto, base, package or bundled.")]
RdmaChoice = Annotated[str, typer.Option("--rdma", help="auto, base, package, bundled or none.")]
RdmaCore = Annotated[str, typer.Option(help="With --rdma bundled: a version, or URL-OR-PATH@sha256:DIGEST.")]
Platforms = Annotated[str, typer.Option(help="Such as linux/amd64,linux/arm64; the base's own if absent.")]
BuilderImage = Annotated[
    str, typer.Option("--builder", help="An image with apt and an old glibc, to compile in.")
]
Wheelhouse = Annotated[
    Path | None,
    typer.Option(exists=True, file_okay=False, help="A folder with all wheels: no index is asked."),
]


def main() -> None:
    """Run the command line; a known failure becomes one line on standard error and its exit code."""
    # As an exception, a termination unwinds the blocks that stop children and remove data.
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup has SIGHUP ignored already, and it stays so.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit_on_signal)
    try:
        app()
    except AzcpError as error:
        sys.stderr.write(f"azcp-kit: {error}\n")
        sys.exit(error.exit_code)


def _exit_on_signal(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"azcp-kit {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - the callback acts on it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more on standard error.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only what went wrong.")] = False,
) -> None:
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr)
    context.obj = level


@app.command()
def demo(
    context: typer.Context,
    ranks: Annotated[
        int, typer.Option(min=1, max=64, help="Ranks, each a node with its own destination.")
    ] = 4,
    size: Annotated[str, typer.Option(help="Size of the data set that is made.")] = "480MiB",
    source_dir: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="Distribute this folder instead of a data set made up."
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Where the data lies while it runs; a temporary folder."),
    ] = None,
    output: Annotated[
        Path, typer.Option(file_okay=False, help="Where the picture, the report and the listing stay.")
    ] = Path("azcp-demo"),
    keep: Annotated[bool, typer.Option("--keep", help="Keep the data too.")] = False,
) -> None:
    """Run the distributor for real on this machine: a local Blob endpoint, 4 ranks, 4 destinations."""
    from azcp_kit.demo import DemoOptions, run_demo
    from azcp_kit.units import parse_size

    quiet = context.obj > logging.INFO
    options = DemoOptions(
        ranks=ranks,
        size_bytes=parse_size(size),
        output=output,
        work=work,
        source_dir=source_dir,
        keep=keep,
        progress="none" if quiet else "live" if sys.stderr.isatty() else "",
    )
    raise typer.Exit(run_demo(options))


@app.command()
def plan(
    listing: Annotated[
        Path,
        typer.Option(
            exists=True, dir_okay=False, help="TSV: name, size, and optionally last-modified and ETag."
        ),
    ],
    ranks: Annotated[int, typer.Option(min=1, max=1 << 16, help="Ranks: nodes times rails.")],
    rails: Annotated[int, typer.Option(min=1, help="Ranks per node, each with its own HCA.")] = 1,
    memory: Annotated[str, typer.Option(help="Buffers per rank, 4GiB if absent.")] = "",
    bcast_chunk: Annotated[str, typer.Option(help="Bytes of one broadcast, found if absent.")] = "",
    egress: Annotated[str, typer.Option(help="Rate of the account in total.")] = "200Gbps",
    fabric: Annotated[str, typer.Option(help="Rate of each node's fabric, all rails together.")] = "135Gbps",
    disk: Annotated[str, typer.Option(help="Rate at which each node's disk writes.")] = "100Gbps",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Predict balance, memory, egress and time for a cluster that you don't have."""
    from azcp_kit.plan import PlanRequest, plan_cluster, plan_json
    from azcp_kit.units import parse_rate

    rates = parse_rate(egress), parse_rate(fabric), parse_rate(disk)
    found = plan_cluster(PlanRequest(listing, ranks, rails, memory, *rates, chunk=bcast_chunk))
    if as_json:
        import json

        typer.echo(json.dumps(plan_json(found), indent=2))
    else:
        from azcp_kit.plan_table import print_plan

        print_plan(found)


@app.command()
def report(
    file: Annotated[Path, typer.Argument(dir_okay=False, help="What azcp-distribute --report wrote.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", dir_okay=False, help="The picture: a .html or a .png file.")
    ] = Path("run.html"),
) -> None:
    """Draw a run: download, broadcast and write of each node over time, the slowest marked."""
    from azcp_kit.picture import write_picture

    typer.echo(write_picture(file, output))


@app.command()
def inspect(
    image: Annotated[str, typer.Argument(help="Name or id of an image of the local engine.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    facts_file: Annotated[
        Path | None, typer.Option("--facts", dir_okay=False, help="Write the facts as JSON, for `render`.")
    ] = None,
    pull: Annotated[bool, typer.Option("--pull", help="Pull the image where it is absent.")] = False,
    arch: Annotated[str, typer.Option(help="What it must run on, amd64 or arm64; its own if absent.")] = "",
) -> None:
    """Tell what is in a base image and what follows from it; nothing of it is run."""
    from dataclasses import asdict

    from azcp_kit.image.conclude import conclude
    from azcp_kit.inspect.facts_json import to_json, write_facts
    from azcp_kit.inspect.gather import inspect_image
    from azcp_kit.inspect.refuse import refuse

    facts = inspect_image(image, pull=pull, arch=arch)
    conclusion = conclude(facts, arch)
    text = to_json(facts, asdict(conclusion))
    if facts_file is not None:
        write_facts(facts_file, text)
    if as_json:
        typer.echo(text, nl=False)
    else:
        from azcp_kit.inspect.facts_table import print_facts

        print_facts(facts, conclusion.plan)
    # After the facts, which show what the reason is about.
    refuse(facts, arch=arch)


@app.command()
def render(
    base: Base,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", file_okay=False, help="Write the whole context here, not the text alone."
        ),
    ] = None,
    facts_file: Annotated[
        Path | None,
        typer.Option(
            "--facts", exists=True, dir_okay=False, help="What `inspect` wrote: no engine is needed."
        ),
    ] = None,
    mpi: MpiSource = "wheel",
    openmpi: OpenMpi = "",
    ucx: Ucx = "",
    mpi_image: MpiImage = "",
    python: PythonArchive = "",
    ssh: SshChoice = "auto",
    rdma: RdmaChoice = "auto",
    rdma_core: RdmaCore = "",
    platform: Platforms = "",
    builder: BuilderImage = "",
    wheelhouse: Wheelhouse = None,
) -> None:
    """Print the Dockerfile, or write it with its context; nothing is built."""
    from azcp_kit.image.command import make_wishes, print_dockerfile, write_context

    wishes = make_wishes(
        mpi=mpi, openmpi=openmpi, ucx=ucx, mpi_image=mpi_image, python=python, ssh=ssh,
        rdma=rdma, rdma_core=rdma_core, platform=platform, builder=builder,
    )  # fmt: skip
    if output is None:
        print_dockerfile(base, facts_file, wishes)
    else:
        write_context(base, facts_file, wishes, wheelhouse, output)


@app.command()
def build(
    context: typer.Context,
    base: Base,
    tag: Annotated[str, typer.Option("--tag", "-t", help="Name of the result.")],
    mpi: MpiSource = "wheel",
    openmpi: OpenMpi = "",
    ucx: Ucx = "",
    mpi_image: MpiImage = "",
    python: PythonArchive = "",
    ssh: SshChoice = "auto",
    rdma: RdmaChoice = "auto",
    rdma_core: RdmaCore = "",
    platform: Platforms = "",
    builder: BuilderImage = "",
    wheelhouse: Wheelhouse = None,
    engine: Annotated[str, typer.Option(help="docker (its API), or buildx (the command).")] = "docker",
    pull: Annotated[bool, typer.Option("--pull", help="Pull the base where it is absent.")] = False,
    push: Annotated[bool, typer.Option("--push", help="Push the result.")] = False,
    ca: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="PEM of a private CA, for the builder's stages alone."
        ),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(help="ID=FILE, readable at /run/secrets/ID in the builder's stages; buildx only."),
    ] = None,
    budget: Annotated[
        str, typer.Option(help="The most that may be added, on disk; 110MiB for the wheel stack if absent.")
    ] = "",
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Leave the proof to `verify`.")] = False,
) -> None:
    """Inject the distributor into a base image, prove that the base is as before, print the image's id."""
    from azcp_kit.image.command import BuildCommand, make_wishes, run_build

    wishes = make_wishes(
        mpi=mpi, openmpi=openmpi, ucx=ucx, mpi_image=mpi_image, python=python, ssh=ssh,
        rdma=rdma, rdma_core=rdma_core, platform=platform, builder=builder,
    )  # fmt: skip
    command = BuildCommand(
        base=base, tag=tag, wishes=wishes, wheelhouse=wheelhouse, engine=engine, pull=pull, push=push,
        ca=ca, secrets=tuple(secret or ()), budget=budget, verify=not no_verify,
    )  # fmt: skip
    typer.echo(run_build(command, quiet=context.obj > logging.INFO))


@app.command()
def verify(
    image: Annotated[str, typer.Argument(help="Name or id of an injected image of the local engine.")],
    base: Annotated[
        str,
        typer.Option(help="What it was made from; if absent, the local image whose layers it begins with."),
    ] = "",
    budget: Annotated[
        str, typer.Option(help="The most that may be added, on disk; 110MiB for the wheel stack if absent.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Prove that an injected image distributes, and that its base is as it was; exit 7 if not."""
    from azcp_kit.verify.command import VerifyCommand, run_verify

    run_verify(VerifyCommand(image, base or None, budget, as_json=as_json))


@app.command()
def tree(
    image: Annotated[str, typer.Argument(help="One that `azcp-kit build` has made.")],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="A folder, also one with an older tree; a file.tar; or - for a tar."
        ),
    ],
    pull: Annotated[bool, typer.Option("--pull", help="Pull the image where it is absent.")] = False,
    arch: Annotated[str, typer.Option(help="Of the nodes, amd64 or arm64; the image's own if absent.")] = "",
) -> None:
    """Bring /opt/azcp out of an image, for Slurm nodes without a container; nothing of it is run."""
    from azcp_kit.tree.command import TreeCommand, run_tree

    run_tree(TreeCommand(image, output, pull, arch))


@app.command()
def init(
    output: Annotated[
        Path, typer.Option("--output", "-o", dir_okay=False, help="The file that is written.")
    ] = Path("job.toml"),
    name: Annotated[str | None, typer.Option(help="Of the job, and its pods.")] = None,
    image: Annotated[str | None, typer.Option(help="What `azcp-kit build` made.")] = None,
    source: Annotated[str | None, typer.Option(help="Blob URL of a folder.")] = None,
    dest: Annotated[str | None, typer.Option(help="Directory on every node's own disk.")] = None,
    nodes: Annotated[int | None, typer.Option(help="How many.")] = None,
    sku: Annotated[str | None, typer.Option(help="VM size, such as Standard_ND96isr_H100_v5.")] = None,
    auth_identity: Annotated[str | None, typer.Option(help="Client id of a workload identity.")] = None,
    auth_secret: Annotated[str | None, typer.Option(help="Name of a Secret with a SAS or a key.")] = None,
    queue: Annotated[str | None, typer.Option(help="Of Kueue.")] = None,
    security: Annotated[str | None, typer.Option(help="privileged, baseline or restricted.")] = None,
    system: Annotated[
        str, typer.Option("--for", help="kubernetes, or slurm with the tables for its scripts.")
    ] = "kubernetes",
    auth_kubelet_identity: Annotated[
        str | None, typer.Option(help="Client id of the identity that the nodes have.")
    ] = None,
    container: Annotated[
        str | None, typer.Option(help="For slurm: pyxis, apptainer, enroot or none.")
    ] = None,
    images: Annotated[
        str | None, typer.Option(help="For slurm: a folder that all nodes see, for the image's file.")
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Of Slurm.")] = None,
    sas_file: Annotated[
        str | None, typer.Option(help="For slurm: a file with a SAS that all nodes see.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a commented job.toml: asked on a terminal for what no option says."""
    from azcp_kit.init.command import InitCommand, run_init
    from azcp_kit.init.terminal import terminal_ask

    command = InitCommand(
        output=output, name=name, image=image, source=source, dest=dest, nodes=nodes, sku=sku,
        auth_identity=auth_identity, auth_secret=auth_secret, queue=queue, security=security, force=force,
        system=system, auth_kubelet_identity=auth_kubelet_identity, container=container, images=images,
        partition=partition, sas_file=sas_file,
    )  # fmt: skip
    run_init(command, terminal_ask())


@app.command()
def generate(
    kind: Annotated[
        str,
        typer.Argument(
            help="mpijob, job, statefulset, jobset, volcano, argo, serving or warmup; sbatch, import or "
            "nccl-test; identity, ssh-secret or cyclecloud."
        ),
    ],
    file: Annotated[Path, typer.Option("--file", "-f", dir_okay=False, help="The job.toml.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write it here, not to standard output; of cyclecloud, the folder."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE over the file's, such as storage.path=/mnt/nvme."),
    ] = None,
    container: Annotated[
        str, typer.Option(help="For sbatch and import: pyxis, apptainer, enroot or none.")
    ] = "",
    launch: Annotated[
        str, typer.Option(help="For sbatch: auto, which needs nothing of the site, or pmix where it works.")
    ] = "",
) -> None:
    """Turn a job.toml into a manifest that kubectl applies as it is, or a script."""
    from azcp_kit.targets.command import GenerateCommand, run_generate

    run_generate(GenerateCommand(kind, file, output, settings or (), container, launch))


@app.command("nccl-report")
def nccl_report(
    file: Annotated[str, typer.Argument(help="What nccl-tests or rccl-tests printed; - is standard input.")],
    expect: Annotated[
        float | None, typer.Option(help="Bus bandwidth in GB/s that the nodes should reach.")
    ] = None,
    sku: Annotated[
        str, typer.Option(help="VM size, where its figure is known; the log's own if absent.")
    ] = "",
    threshold: Annotated[float | None, typer.Option(help="The part of it that must be reached, 0.9.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Read an all-reduce test's log: bus bandwidth against what is expected; exit 7 below the threshold."""
    from azcp_kit.nccl.command import NcclReportCommand, run_nccl_report

    run_nccl_report(NcclReportCommand(file, expect, sku, threshold, as_json))


@app.command()
def lint(
    file: Annotated[str, typer.Argument(help="A manifest or an sbatch script; - reads standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
) -> None:
    """Look for known traps in a manifest or an sbatch script, each with its line, the reason and the fix."""
    from azcp_kit.lint.command import LintCommand, run_lint

    raise typer.Exit(run_lint(LintCommand(file, as_json=as_json, strict=strict)))


@app.command()
def rehearse(
    manifest: Annotated[
        Path,
        typer.Argument(
            help="A manifest of any kind but argo, or a batch script of Slurm; - reads standard input."
        ),
    ],
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Pods, or nodes of a script, instead of its own number; at most 3 if absent."
        ),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=OTHER, or OTHER for all: a local image in the place of the manifest's. With a batch "
            "script it asks for containers, where there is a Slurm too."
        ),
    ] = None,
    pull: Annotated[bool, typer.Option("--pull", help="Pull images that are absent.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds for all of it.")] = 600.0,
    size: Annotated[str, typer.Option(help="Of the data set that is made up.")] = "48MiB",
    until: Annotated[str, typer.Option(help="end, or distributed: the user's command is left out.")] = "end",
    late: Annotated[list[str] | None, typer.Option(help="POD=SECONDS: the pod starts that late.")] = None,
    kill: Annotated[
        list[str] | None,
        typer.Option(help="POD=phase1/SECONDS or POD=start/SECONDS: kill -9, so long after it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Run a manifest's own pods as containers here, or a batch script on the local Slurm or on containers.

    Azurite is the account. Exit 7 or 8 if it fails.
    """
    from azcp_kit.rehearse.command import RehearseCommand, run_rehearse

    command = RehearseCommand(
        manifest=manifest, nodes=nodes, images=tuple(image or ()), pulls=pull, timeout_s=timeout, size=size,
        until=until, late=tuple(late or ()), kills=tuple(kill or ()), as_json=as_json,
    )  # fmt: skip
    raise typer.Exit(run_rehearse(command))
