"""A CycleCloud project is complete, follows from its job.toml alone, and replaces only its own files."""

from __future__ import annotations

import configparser
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from azcp_kit.spec.problems import SpecError
from azcp_kit.spec.read import parse_job
from azcp_kit.targets.cyclecloud.command import run_cyclecloud
from azcp_kit.targets.cyclecloud.needs import cyclecloud_problems
from azcp_kit.targets.cyclecloud.project import SPECS, is_executable, project_files
from azcp_kit.targets.cyclecloud.write import RECORD, write_folder
from azcp_runtime.contract import UsageError

from tests.lab.cyclecloud import PACKAGES, job_text

BARE = job_text().partition("[cyclecloud]")[0]
DIGEST = "5" * 64


def problems(table: str) -> list[str]:
    """What is wrong with a [cyclecloud] table."""
    with pytest.raises(SpecError) as caught:
        parse_job(f"{BARE}[cyclecloud]\n{table}\n", more=cyclecloud_problems)
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    """A job.toml with everything that a project needs."""
    file = tmp_path / "job.toml"
    file.write_text(job_text())
    return file


def test_the_folder_has_what_cyclecloud_looks_for(job_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    run_cyclecloud(job_file, folder)
    ini = configparser.ConfigParser()
    ini.read(folder / "project.ini")
    assert dict(ini["project"]) == {
        "name": "azcp-llama",
        "version": "1.0.0",
        "type": "application",
        "label": "NVMe, enroot and pyxis for Slurm nodes",
    }
    for spec in SPECS:
        for part in ("scripts", "files", "tests"):
            assert list((folder / "specs" / spec / "cluster-init" / part).glob("*.sh"))
    assert (folder / "README.md").is_file()


def test_what_cyclecloud_runs_is_executable_and_what_is_read_is_not(job_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    run_cyclecloud(job_file, folder)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*.sh")}
    assert {mode for path, mode in modes.items() if path.parent.name == "files"} == {0o644}
    assert {mode for path, mode in modes.items() if path.parent.name != "files"} == {0o755}


def test_every_script_is_clean(job_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    run_cyclecloud(job_file, folder)
    scripts = sorted(folder.rglob("*.sh"))
    checked = subprocess.run(
        [Path(sys.executable).with_name("shellcheck"), *scripts], capture_output=True, text=True, check=False
    )
    assert checked.stdout == ""
    for script in scripts:
        subprocess.run(["bash", "-n", script], check=True)
        if script.parent.name != "files":
            assert "\nset -euo pipefail\n" in script.read_text()


def test_the_readme_tells_every_script() -> None:
    files = project_files(parse_job(job_text()))
    scripts = [path for path in files if "/scripts/" in path]
    for path in scripts:
        _, spec, _, _, name = path.split("/")
        assert f"| {spec} | {name} |" in files["README.md"]


def test_no_version_and_no_digest_is_guessed() -> None:
    assert problems("") == [
        "cyclecloud.enroot-version: is missing; see the project's releases",
        "cyclecloud.pyxis-version: is missing; see the project's releases",
        "cyclecloud.pyxis-sha256: is missing; what sha256sum says of the file that you checked",
        'cyclecloud.enroot-sha256: is missing; write "FILE OF THE RELEASE" = "its SHA-256" per package',
    ]


GIVEN = f'enroot-version = "3.5.0"\npyxis-version = "0.20.0"\npyxis-sha256 = "{DIGEST}"\n'
RPMS = "\n".join(f'"enroot{caps}-3.5.0-1.el8.x86_64.rpm" = "{DIGEST}"' for caps in ("", "+caps"))


def test_rpms_are_packages_too() -> None:
    text = f"{BARE}[cyclecloud]\n{GIVEN}[cyclecloud.enroot-sha256]\n{RPMS}\n"
    job = parse_job(text, more=cyclecloud_problems)
    assert sorted(job.cyclecloud.enroot_packages) == [
        "enroot+caps-3.5.0-1.el8.x86_64.rpm",
        "enroot-3.5.0-1.el8.x86_64.rpm",
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('nvme = "/mnt/my disk"', "no absolute path of letters"),
        ('nvme = "/mnt/../etc"', "no absolute path of letters"),
        ('nvme = "/sched/nvme"', "lie one inside the other"),
        ('shared = "sched"', "no absolute path of letters"),
        ('version = "one"', "is no version"),
        ('deadline = "soon"', "is not a time"),
        ('enroot-url = "https://me:secret@mirror.example"', "is no plain http or https address"),
        ('project = "My Project"', "is no DNS label"),
        ("colour = 1", "is not known"),
    ],
)
def test_a_wrong_key_is_named(line: str, problem: str) -> None:
    found = problems(f"{GIVEN}{line}\n[cyclecloud.enroot-sha256]\n{RPMS}")
    assert len(found) == 1
    assert problem in found[0]
    assert found[0].startswith(f"cyclecloud.{line.partition(' ')[0]}: ")


@pytest.mark.parametrize(
    ("packages", "problem"),
    [
        (
            f'"enroot_3.5.0-1_amd64.deb" = "{DIGEST}"',
            "has enroot_3.5.0-1_amd64.deb without enroot+caps_3.5.0-1_amd64.deb",
        ),
        (f'"enroot+caps_3.5.0-1_arm64.deb" = "{DIGEST}"', "without enroot_3.5.0-1_arm64.deb"),
        (
            "\n".join(f'"enroot{caps}_4.1.2-1_amd64.deb" = "{DIGEST}"' for caps in ("", "+caps")),
            "is not of the version 3.5.0",
        ),
        (f'"../enroot_3.5.0-1_amd64.deb" = "{DIGEST}"', "is no package of an enroot release"),
        ('"enroot_3.5.0-1_amd64.deb" = "abc"', "is no SHA-256"),
    ],
)
def test_a_package_that_cannot_be_is_named(packages: str, problem: str) -> None:
    found = problems(f"{GIVEN}[cyclecloud.enroot-sha256]\n{packages}")
    assert all(problem in one for one in found), found


def test_the_digests_of_the_job_are_those_of_the_scripts() -> None:
    text = job_text().replace("0" * 64, DIGEST)
    files = project_files(parse_job(text))
    settings = {text for path, text in files.items() if path.endswith("files/settings.sh")}
    assert len(settings) == 1
    for name in PACKAGES:
        assert f"    [{name}]={DIGEST}\n" in next(iter(settings))


def test_the_same_job_gives_the_same_folder_again(job_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    run_cyclecloud(job_file, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    run_cyclecloud(job_file, folder, ["cyclecloud.deadline=5m"])
    assert "DEADLINE_S=300\n" in (folder / "specs/execute/cluster-init/files/settings.sh").read_text()
    run_cyclecloud(job_file, folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_folder_must_be_named(job_file: Path) -> None:
    with pytest.raises(UsageError, match="folder of files"):
        run_cyclecloud(job_file, None)


def write(folder: Path, **files: str) -> None:
    """Files whose names are the keywords."""
    write_folder(folder, files, is_executable)


def test_a_file_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "readme").write_text("mine")
    with pytest.raises(UsageError, match="did not write, or that were changed: readme"):
        write(tmp_path, readme="generated", other="generated")
    assert [path.name for path in tmp_path.iterdir()] == ["readme"]


def test_a_generated_file_that_was_edited_is_not_replaced(tmp_path: Path) -> None:
    write(tmp_path, readme="generated")
    (tmp_path / "readme").write_text("edited")
    with pytest.raises(UsageError, match="changed: readme"):
        write(tmp_path, readme="generated again")
    assert (tmp_path / "readme").read_text() == "edited"


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("generated")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "readme").symlink_to(target)
    with pytest.raises(UsageError, match="readme"):
        write(folder, readme="generated")


def test_what_is_generated_no_more_is_removed_and_what_others_added_stays(tmp_path: Path) -> None:
    write(tmp_path, first="1", second="2")
    (tmp_path / "notes").write_text("mine")
    write(tmp_path, second="2")
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "notes", "second"]


def test_a_run_that_was_ended_half_way_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, first="1", second="2")
    replace, calls = os.replace, 0

    def fail_at_the_third(source: str, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError("the disk is full")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_at_the_third)
        with pytest.raises(UsageError, match="the disk is full"):
            write(tmp_path, first="one", second="two")
    assert [(tmp_path / name).read_text() for name in ("first", "second")] == ["one", "2"]
    write(tmp_path, first="one", second="two")
    assert (tmp_path / "second").read_text() == "two"
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "first", "second"]


def test_a_record_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    write(folder, readme="generated")
    outside = tmp_path / "outside"
    shutil.copy(folder / "readme", outside)
    record = folder / RECORD
    record.write_text(record.read_text().replace("readme", "../outside"))
    (folder / "readme").unlink()
    write(folder, readme="generated")
    assert outside.exists()
