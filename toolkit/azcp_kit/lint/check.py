"""Runs all rules over a text, which is a manifest or a batch script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from azcp_kit.lint.finding import Finding, Rule, Severity, named
from azcp_kit.lint.manifest import read_manifest
from azcp_kit.lint.rules import BATCH_RULES, MANIFEST_RULES, POD_RULES, SETUP_RULES
from azcp_kit.lint.sbatch import read_batch
from azcp_kit.lint.setup import setups_of

DUPLICATE_KEY: Final = Rule(
    "K101-key-twice",
    Severity.ERROR,
    why="only one of the two counts, and which one depends on the reader",
    fix="remove one of them",
)


def lint_text(text: str) -> tuple[Finding, ...]:
    """All findings, by line.

    Raises:
        UsageError: the text is neither a manifest nor a batch script.
    """
    found = _batch_findings(text) if is_script(text) else _manifest_findings(text)
    # Two containers of one pod, or a launcher and its workers, may have one trap in common.
    return tuple(sorted(dict.fromkeys(found), key=lambda finding: (finding.line, finding.rule)))


def is_script(text: str) -> bool:
    """Whether it is a script: a first line with #!, or a directive of sbatch."""
    return text.startswith("#!") or re.search(r"^#SBATCH\b", text, re.MULTILINE) is not None


def _batch_findings(text: str) -> Iterator[Finding]:
    batch = read_batch(text)
    for batch_rule in BATCH_RULES:
        yield from batch_rule(batch)
    for setup_rule in SETUP_RULES:
        yield from setup_rule(batch.setup)


def _manifest_findings(text: str) -> Iterator[Finding]:
    manifest = read_manifest(text)
    for line, key in manifest.duplicates:
        yield DUPLICATE_KEY.at(line, f"the key {named(key)} stands twice in one mapping")
    for manifest_rule in MANIFEST_RULES:
        yield from manifest_rule(manifest)
    for pod in manifest.pods:
        for pod_rule in POD_RULES:
            yield from pod_rule(pod, manifest)
    for setup in setups_of(manifest):
        for setup_rule in SETUP_RULES:
            yield from setup_rule(setup)
