"""An image's config becomes facts without the secrets in it, and its user is looked up in its own passwd."""

from __future__ import annotations

import pytest
from azcp_kit.inspect.detect_config import detect_account, detect_config
from azcp_kit.inspect.facts import Account
from azcp_kit.inspect.secret_values import HIDDEN, hide_arguments, names_a_secret, without_secrets

from tests.kit.image_tree import tree

USERS = "root:x:0:0:root:/root:/bin/sh\nbroken\ntrainer:x:1000:1000::/home/trainer:/bin/sh\nodd:x:-1:0:::\n"


def test_a_config_of_nulls_is_empty() -> None:
    config = detect_config({"User": None, "Cmd": None, "Labels": None, "Env": None, "Healthcheck": None})
    assert (config.user, config.cmd, config.labels, config.env, config.healthcheck) == ("", (), {}, {}, ())


def test_a_config_is_read_whole() -> None:
    config = detect_config(
        {
            "User": "1000:1000",
            "Entrypoint": ["/entry", "--serve"],
            "Cmd": ["bash"],
            "OnBuild": ["RUN false"],
            "Healthcheck": {"Test": ["CMD-SHELL", "true"]},
            "WorkingDir": "/work",
            "Shell": ["/bin/bash", "-c"],
            "StopSignal": "SIGINT",
            "Volumes": {"/data": {}},
            "ExposedPorts": {"8000/tcp": {}},
            "Env": ["PATH=/bin", "EMPTY=", "EQUALS=a=b"],
            "Labels": {"team": "ml"},
        }
    )
    assert (config.user, config.entrypoint, config.cmd) == ("1000:1000", ("/entry", "--serve"), ("bash",))
    assert (config.onbuild, config.healthcheck) == (("RUN false",), ("CMD-SHELL", "true"))
    assert (config.workdir, config.shell, config.stop_signal) == ("/work", ("/bin/bash", "-c"), "SIGINT")
    assert (config.volumes, config.ports, config.labels) == (("/data",), ("8000/tcp",), {"team": "ml"})
    assert config.env == {"PATH": "/bin", "EMPTY": "", "EQUALS": "a=b"}


@pytest.mark.parametrize(
    ("user", "account"),
    [
        ("", Account(0, "root", "/root")),
        ("1000", Account(1000, "trainer", "/home/trainer")),
        ("trainer:video", Account(1000, "trainer", "/home/trainer")),
        ("1234:0", Account(1234, "", "")),
        ("nobody-here", Account(None, "", "")),
        ("99999999999999999999", Account(None, "", "")),
        ("\N{SUPERSCRIPT TWO}", Account(None, "", "")),
    ],
)
def test_the_user_is_the_one_of_the_images_passwd(user: str, account: Account) -> None:
    assert detect_account(user, tree({"/etc/passwd": USERS})) == account


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "AZCP_SAS",
        "AZURE_STORAGE_KEY",
        "PGPASSWORD",
        "wandbApiKey",
        "my.api-key",
        "DB_PWD",
    ],
)
def test_a_name_of_a_secret_is_known(name: str) -> None:
    assert names_a_secret(name)
    assert detect_config({"Env": [f"{name}=abc"], "Labels": {name: "abc"}}).env == {name: HIDDEN}


@pytest.mark.parametrize("name", ["PATH", "PWD", "AUTHOR", "KEYBOARD", "MONKEY", "SASL_PATH", "SIGNAL"])
def test_a_name_of_no_secret_is_left_alone(name: str) -> None:
    assert not names_a_secret(name)


@pytest.mark.parametrize(
    "text",
    [
        "https://a.blob.core.windows.net/c?sv=1&sig=s3cr3t%3D&se=2",
        "DefaultEndpointsProtocol=https;AccountKey=s3cr3t==;",
        "curl -H 'Authorization: Bearer s3cr3t.x'",
        "http://user:s3cr3t@proxy:3128",
        "serve --api-key=s3cr3t",
        "serve --token s3cr3t --port 8000",
        "TOKEN=s3cr3t exec serve",
        "eyJhbGciOiJI.s3cr3t.x",
        "hf_s3cr3ts3cr3ts3cr3t",
        "-----BEGIN RSA PRIVATE KEY-----\ns3cr3t",
    ],
)
def test_a_secret_inside_a_text_is_hidden(text: str) -> None:
    shown = without_secrets(text)
    assert "s3cr3t" not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize(
    "text",
    ["/usr/bin/serve --port 8000", "a key to success", "RUN make KEYBOARD=us", "https://example.org/x"],
)
def test_a_text_without_secrets_is_left_alone(text: str) -> None:
    assert without_secrets(text) == text


def test_the_word_after_an_option_for_a_secret_is_hidden() -> None:
    assert hide_arguments(["--token", "s3cr3t", "--port", "1", "--key", "--x"]) == (
        "--token",
        HIDDEN,
        "--port",
        "1",
        "--key",
        "--x",
    )


def test_no_text_makes_the_search_for_secrets_slow() -> None:
    for text in ("://" + "a" * 300_000, "-a " * 100_000, "eyJ" * 100_000, "-----BEGIN " + "A " * 100_000):
        assert len(without_secrets(text)) > 0
