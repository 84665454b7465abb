"""`azcp-kit generate` as it is typed: standard output is the artefact, scripts are clean, errors at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

KIT = Path(sys.prefix, "bin", "azcp-kit")
SHELLCHECK = Path(sys.prefix, "bin", "shellcheck")
EXAMPLES = Path(__file__).parents[2] / "examples" / "aks"


def kit(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run([KIT, *words], capture_output=True, text=True, timeout=60, check=False)


def test_a_manifest_is_all_that_standard_output_gets() -> None:
    done = kit("generate", "mpijob", "-f", EXAMPLES / "job.toml", "--set", "nodes=3")
    assert (done.returncode, done.stderr) == (0, "")
    (document,) = yaml.safe_load_all(done.stdout)
    assert document["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 3


def test_it_can_go_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "job.yaml"
    assert kit("generate", "job", "-f", EXAMPLES / "job-two-images.toml", "-o", target).returncode == 0
    assert target.read_text(encoding="utf-8") == (EXAMPLES / "job.yaml").read_text(encoding="utf-8")
    done = kit("generate", "job", "-f", EXAMPLES / "job-two-images.toml", "-o", tmp_path / "no" / "job.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be written" in done.stderr


def test_every_error_is_in_the_answer_and_nothing_is_printed(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text("nodes = 0\nimage = 'x y'\n", encoding="utf-8")
    done = kit("generate", "mpijob", "-f", tmp_path / "job.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("azcp-kit: job.toml has 6 errors:\n  line 1: nodes: ")


def test_an_unknown_kind_is_answered_with_those_that_there_are() -> None:
    done = kit("generate", "deployment", "-f", EXAMPLES / "job.toml")
    assert done.returncode == 2
    assert "mpijob, job, statefulset" in done.stderr


@pytest.mark.parametrize("kind", ["identity", "ssh-secret"])
@pytest.mark.parametrize("auth", ["identity", "kubelet-identity"])
def test_scripts_are_clean_whatever_the_names_are(tmp_path: Path, kind: str, auth: str) -> None:
    guid = "00000000-1111-2222-3333-444444444444"
    settings = [f"auth={{ {auth} = '{guid}', resource-group = 'a(b)', cluster = 'c' }}"]
    script = tmp_path / "script.sh"
    done = kit(
        "generate", kind, "-f", EXAMPLES / "job.toml", "-o", script, *(f"--set={each}" for each in settings)
    )
    assert done.returncode == 0, done.stderr
    checked = subprocess.run([SHELLCHECK, script], capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_secrets_script_makes_a_key_pair_that_kubectl_gets_and_leaves_none_behind(tmp_path: Path) -> None:
    done = kit("generate", "ssh-secret", "-f", EXAMPLES / "job.toml")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "ssh-keygen").write_text(
        '#!/bin/sh\nfor last; do :; done\necho private >"$last"; echo public >"$last.pub"\n'
    )
    # What it was asked for, and what the files that it names hold.
    (tools / "kubectl").write_text(
        '#!/bin/sh\necho "$@" >>"$CALLS"\n'
        'for word; do case $word in --from-file=*) cat "${word#--from-file=}" >>"$CALLS" ;; esac; done\n'
    )
    for tool in tools.iterdir():
        tool.chmod(0o755)
    env = {
        "PATH": f"{tools}:/usr/bin:/bin",
        "TMPDIR": str(tmp_path / "tmp"),
        "CALLS": str(tmp_path / "calls"),
    }
    (tmp_path / "tmp").mkdir()
    ran = subprocess.run(
        ["sh"], input=done.stdout, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    calls = (tmp_path / "calls").read_text()
    assert "create secret generic llama-azcp-ssh --namespace=training" in calls
    assert "private" in calls
    assert "apply --server-side --force-conflicts --namespace=training --filename=-" in calls
    assert not list((tmp_path / "tmp").iterdir())


def test_the_identitys_script_makes_what_is_missing_and_tells_the_id_that_job_toml_wants(
    tmp_path: Path,
) -> None:
    settings = ("auth.identity=00000000-0000-0000-0000-000000000000", "namespace=ml")
    done = kit("generate", "identity", "-f", EXAMPLES / "job.toml", *(f"--set={each}" for each in settings))
    tools = tmp_path / "bin"
    tools.mkdir()
    # An account of Azure's without the identity: `show` fails until `create` was called.
    (tools / "az").write_text(
        '#!/bin/sh\necho "az $*" >>"$CALLS"\ncase $* in\n'
        '*"identity create"*) : >"$MADE" ;;\n'
        '*"identity show"*) [ -e "$MADE" ] || exit 3; case $* in *clientId*) echo the-id ;; esac ;;\n'
        "*) echo something ;;\nesac\n"
    )
    (tools / "kubectl").write_text('#!/bin/sh\necho "kubectl $*" >>"$CALLS"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin", "CALLS": str(tmp_path / "calls"), "MADE": str(tmp_path / "made")}
    ran = subprocess.run(
        ["sh"], input=done.stdout, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    calls = (tmp_path / "calls").read_text()
    assert "az identity create --resource-group training-rg --name llama-identity" in calls
    assert "--subject system:serviceaccount:ml:llama" in calls
    assert "kubectl create serviceaccount llama --namespace=ml" in calls
    assert "azure.workload.identity/client-id=the-id" in calls
    assert 'identity = "the-id"' in ran.stdout
