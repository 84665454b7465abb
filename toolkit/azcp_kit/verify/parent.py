"""The one folder of the base that an injection passes through: a COPY may change its owner or mode."""

from __future__ import annotations

from azcp_kit.engine import Engine
from azcp_kit.inspect.detect_parent import ABSENT, AS_MADE, PARENT, describe_parent
from azcp_kit.inspect.stored import StoredImage
from azcp_kit.verify.verification import Check, judged


def check_parent(engine: Engine, image: StoredImage, base: StoredImage) -> Check:
    """Whether it is as the base has it, or as any builder makes it where the base has none."""
    now, before = (_look(engine, each) for each in (image, base))
    wanted = AS_MADE if before == ABSENT else before
    problems = () if now == wanted else (f"{PARENT} is {now}, was {before}",)
    return judged(f"base {PARENT}", problems, now, "copy to /opt/azcp/ and not to /, so that /opt stays")


def _look(engine: Engine, image: StoredImage) -> str:
    with engine.probe(image) as files:
        return describe_parent(files.header(PARENT))
