"""What may be in an added layer, and how the added layers are found in what an engine saves."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Sequence

import pytest
from azcp_kit.verify.layer import Rule, breaches
from azcp_kit.verify.layers import DEFAULT_BUDGET_BYTES, Stack, check_layers, check_size
from azcp_kit.verify.saved import Layer, scan
from azcp_kit.verify.secret_text import is_secret_file, secrets_in
from azcp_kit.verify.verification import Outcome
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

WHEEL = Stack("wheel", has_packages=False)
OWN = "opt/azcp/etc/x"
KEY = Ed25519PrivateKey.generate()
SAMPLES = {
    "pem": KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    "openssh": KEY.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()),
}
SIGNATURE = b"sig=" + b"Ab1%2B" * 12
JWT = b".".join([b"eyJ" + b"hbGciOiJIUzI1NiJ9x", b"eyJ" + b"zdWIiOiIxMjM0NTY3", b"c2lnbmF0dXJlLXNpZw" * 2])


def entry(
    name: str, size: int = 1, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, uid: int = 0
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.type, member.mode, member.uid = size, kind, mode, uid
    return member


def rules(member: tarfile.TarInfo, content: bytes = b"") -> set[Rule]:
    return {breach.rule for breach in breaches(member, content)}


@pytest.mark.parametrize(
    "member",
    [
        entry("opt", kind=tarfile.DIRTYPE, mode=0o755),
        entry("./opt/azcp/bin/azcp-sshd", mode=0o755),
        entry("opt/azcp/lib/link", kind=tarfile.SYMTYPE, mode=0o777),
        entry("./", kind=tarfile.DIRTYPE, mode=0o755),
    ],
)
def test_what_an_injection_adds_breaks_no_rule(member: tarfile.TarInfo) -> None:
    assert rules(member) == set()


@pytest.mark.parametrize(
    ("member", "rule"),
    [
        (entry("etc/profile.d/azcp.sh"), Rule.PLACE),
        (entry("opt/azcp-more/x"), Rule.PLACE),
        (entry("opt", kind=tarfile.SYMTYPE), Rule.PLACE),
        (entry("usr/bin/.wh.mpirun", size=0), Rule.PLACE),
        (entry(OWN, mode=0o4755), Rule.OWNER),
        (entry(OWN, mode=0o2755), Rule.OWNER),
        (entry(OWN, mode=0o666), Rule.OWNER),
        (entry(OWN, uid=1000), Rule.OWNER),
        (entry(OWN, kind=tarfile.CHRTYPE), Rule.OWNER),
        (entry("opt/azcp/etc/.netrc"), Rule.SECRET),
        (entry("opt/azcp/.git", kind=tarfile.DIRTYPE, mode=0o755), Rule.SECRET),
        (entry("opt/azcp/.cache/pip/x"), Rule.CACHE),
    ],
)
def test_an_entry_breaks_its_own_rule(member: tarfile.TarInfo, rule: Rule) -> None:
    assert rules(member) == {rule}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "var/lib/apt/lists/mirror.example_InRelease",
            "var/cache/apt/archives/x.deb",
            "var/cache/apt/pkgcache.bin",
        ),
        *("root/.cache/pip/http/x", "var/cache/dnf/x", "home/u/.cache/uv/x"),
    ],
)
def test_what_package_managers_leave_is_found(name: str) -> None:
    assert Rule.CACHE in rules(entry(name))


@pytest.mark.parametrize("name", ["var/log/dpkg.log", "tmp/azcp-build/install.sh"])
def test_what_every_step_leaves_counts_from_a_size_on(name: str) -> None:
    assert Rule.CACHE not in rules(entry(name, size=2000))
    assert Rule.CACHE in rules(entry(name, size=2_000_000))


def test_a_cache_that_is_deleted_is_not_left_over() -> None:
    assert Rule.CACHE not in rules(entry("var/lib/apt/lists/.wh.x", size=0))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (SAMPLES["pem"], "a private key"),
        (SAMPLES["openssh"], "a private key"),
        (SAMPLES["pem"].replace(b"\n", b"\\n"), "a private key"),
        (b"PuTTY-User-Key-File-3: ssh-ed25519", "a private key"),
        (b"url=https://a.blob.core.windows.net/c?se=1&" + SIGNATURE, "a SAS"),
        (b"AccountName=a;AccountKey=" + b"a1" * 43 + b"==;", "an account key"),
        (b'export AZURE_STORAGE_KEY="' + b"a1" * 43 + b'=="', "an account key"),
        (b"Authorization: Bearer " + b"x" * 40, "a bearer token"),
        (JWT, "a token"),
        (b"token = hf_" + b"a1" * 16, "a token"),
        (b"AKIA" + b"A1B2C3D4E5F6G7H8", "an AWS key"),
    ],
)
def test_a_secret_is_known_by_its_value(content: bytes, what: str) -> None:
    assert what in set(secrets_in(OWN, b"before\n" + content + b"\nafter"))


@pytest.mark.parametrize(
    "content",
    [
        b'if b"-----BEGIN PRIVATE KEY-----" in data: raise ValueError("-----BEGIN RSA PRIVATE KEY-----")',
        b"DefaultEndpointsProtocol=https;AccountName=xxxx;AccountKey=xxxx;",
        b"https://a.blob.core.windows.net/c?sv=2020&sig=<signature>",
        b'headers["Authorization"] = f"Bearer {token}"',
        b"AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
        b"\x7fELF\0" + SIGNATURE,
        b"proxy = http://user:password@host:8080  # an example in a program",
    ],
)
def test_what_only_speaks_of_secrets_is_none(content: bytes) -> None:
    assert list(secrets_in("opt/azcp/lib/azure/x.py", content)) == []


@pytest.mark.parametrize(
    "name", ["etc/pip.conf", "etc/apt/sources.list", "root/.config/pip/pip.conf", "etc/apt/auth.conf"]
)
def test_a_password_in_an_address_counts_where_addresses_are_configured(name: str) -> None:
    content = b"index-url = https://robot:s3cret@index.example/simple\n"
    assert list(secrets_in(name, content)) == ["a password in an address"]


@pytest.mark.parametrize(
    "name", ["root/.ssh/id_rsa", "etc/ssh/ssh_host_ed25519_key", "root/.docker/config.json"]
)
def test_some_files_are_secret_by_their_name(name: str) -> None:
    assert is_secret_file(name)


@pytest.mark.parametrize("name", ["root/.ssh/id_rsa.pub", "etc/ssh/ssh_host_ed25519_key.pub", "x.gitignore"])
def test_their_public_halves_are_not(name: str) -> None:
    assert not is_secret_file(name)


def test_no_secret_is_repeated_in_the_report() -> None:
    texts = [breach.text for breach in breaches(entry(OWN), b"?" + SIGNATURE)]
    assert texts == [f"/{OWN} holds a SAS"]


def layer_tar(files: dict[str, bytes]) -> bytes:
    """A layer with these files; its end is padded as the tar command does."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            tar.addfile(entry(name, len(content)), io.BytesIO(content))
    return packed.getvalue()


def diff_id(layer: bytes) -> str:
    return f"sha256:{hashlib.sha256(layer).hexdigest()}"


def scanned(
    members: Sequence[tuple[str, bytes]], below: set[str], limit_bytes: int | None = None
) -> dict[str, Layer]:
    """The layers found in a saved image with these members."""
    saved = io.BytesIO(layer_tar(dict(members)))
    with tarfile.open(fileobj=saved, mode="r|") as archive:
        return {layer.diff_id: layer for layer in scan(archive, below, limit_bytes)}


BASE, ADDED = layer_tar({"bin/sh": b"base"}), layer_tar({OWN: b"own", "etc/x": b"?" + SIGNATURE})


def test_layers_are_told_by_the_digest_of_their_content() -> None:
    found = scanned(
        [("1/VERSION", b"1.0"), ("1/layer.tar", BASE), ("2/layer.tar", ADDED), ("m.json", b"[]")], set()
    )
    assert found.keys() == {diff_id(BASE), diff_id(ADDED)}
    assert found[diff_id(ADDED)].size_bytes == 3 + 1 + len(SIGNATURE)
    assert {breach.rule for breach in found[diff_id(ADDED)].breaches} == {Rule.PLACE, Rule.SECRET}


def test_a_layer_of_the_base_whose_name_is_its_digest_is_not_read() -> None:
    names = [f"blobs/sha256/{diff_id(layer).removeprefix('sha256:')}" for layer in (BASE, ADDED)]
    found = scanned([(names[0], BASE), (names[1], ADDED), ("blobs/sha256/c", b'{"a": 1}')], {diff_id(BASE)})
    assert found.keys() == {diff_id(ADDED)}


def test_a_layer_that_is_much_too_large_is_not_read() -> None:
    assert scanned([("1/layer.tar", ADDED)], set(), len(ADDED) - 1).keys() == set()


def test_a_packed_layer_is_unpacked_on_the_way() -> None:
    assert scanned([("blobs/sha256/a", gzip.compress(ADDED))], set()).keys() == {diff_id(ADDED)}


def test_a_layer_without_entries_is_a_layer() -> None:
    empty = bytes(1024)
    assert scanned([("1/layer.tar", empty)], set())[diff_id(empty)].size_bytes == 0


@pytest.mark.parametrize("content", [b"", b"\x28\xb5\x2f\xfd" + bytes(600), gzip.compress(ADDED)[:60]])
def test_a_blob_that_is_no_layer_is_none(content: bytes) -> None:
    assert scanned([("blobs/sha256/a", content)], set()) == {}


def test_a_hostile_layer_does_not_fill_the_memory() -> None:
    layer = layer_tar({f"etc/{number}": b"" for number in range(1000)})
    assert len(scanned([("1/layer.tar", layer)], set())[diff_id(layer)].breaches) == 50


def outcomes(layers: Sequence[Layer], stack: Stack) -> dict[str, Outcome]:
    return {check.name: check.outcome for check in check_layers(layers, stack)}


def test_files_elsewhere_are_allowed_where_packages_were_installed() -> None:
    layers = list(scanned([("1/layer.tar", layer_tar({"usr/sbin/sshd": b""}))], set()).values())
    assert outcomes(layers, WHEEL)["added files"] is Outcome.FAIL
    assert outcomes(layers, Stack("wheel", has_packages=True))["added files"] is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("size_bytes", "budget_bytes", "stack", "outcome"),
    [
        (DEFAULT_BUDGET_BYTES, None, WHEEL, Outcome.OK),
        (DEFAULT_BUDGET_BYTES + 1, None, WHEEL, Outcome.FAIL),
        (DEFAULT_BUDGET_BYTES + 1, None, Stack("source", has_packages=False), Outcome.NOT_APPLICABLE),
        (11, 10, Stack("source", has_packages=False), Outcome.FAIL),
        (10, 10, WHEEL, Outcome.OK),
    ],
)
def test_the_size_is_held_against_the_budget(
    size_bytes: int, budget_bytes: int | None, stack: Stack, outcome: Outcome
) -> None:
    assert check_size([Layer("sha256:1", size_bytes, ())], stack, budget_bytes).outcome is outcome
