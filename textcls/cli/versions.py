"""`textcls versions`: the versions of a registry, which of them is promoted, and how to go back."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from textcls.cli.options import registry_argument
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show
from textcls.display.terminal.versions import versions_table
from textcls.errors import ArtifactError, ConfigError, InputError, NotFoundError
from textcls.model.artifact import ModelInfo
from textcls.model.labels import label_change
from textcls.model.text_columns import named_columns
from textcls.versions.folder import Listed, Registry
from textcls.versions.record import BY_CHARACTERS, State, checked_text


@click.command(
    epilog="""Example: textcls versions registry

    Example: textcls versions registry --promote 3 --by Ann

    Example: textcls versions registry --rollback"""
)
@registry_argument
@click.option(
    "--promote", type=click.IntRange(1), metavar="VERSION", help="Let this version answer, once it is tested."
)
@click.option("--rollback", is_flag=True, help="Promote again what was promoted before; once more goes further back.")
@click.option("--by", metavar="WHO", help="Who promotes it; without this nobody is recorded.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def versions(
    registry: Path,
    promote: int | None,
    rollback: bool,
    by: str | None,
    as_json: bool,
) -> None:
    """List the versions in the folder REGISTRY; or promote one, or go back.

    textcls publish adds versions. What is promoted, when, and by whom, stays in registry.json.
    """
    if promote is not None and rollback:
        raise ConfigError("--promote and --rollback are done one at a time; give one of them.")
    if by is not None and not (rollback or promote is not None):
        raise ConfigError("--by says who promotes a version: give it with --promote or --rollback.")
    by = checked_text(by, "--by", BY_CHARACTERS)
    opened = Registry.open(registry)
    if promote is not None:
        lines = promoted_lines(opened, promote, by)
    elif rollback:
        lines = _rolled_back(opened, by)
    else:
        lines = []
    if lines and not as_json:
        click.echo("\n".join(lines))
        return
    state, listed = opened.state(), opened.versions()
    if as_json:
        click.echo(json_line(_as_json(state, listed)))
    else:
        show(versions_table(registry, state, listed))
    usable = {one.number for one in listed if one.problem is None}
    if state.promoted is not None and state.promoted not in usable:
        way = "promote another" if usable else "publish its file again with --promote"
        way += ", or go back with --rollback" if usable & {*state.before} else ""
        raise ArtifactError(f"Version {state.promoted} is promoted, and cannot be used: {way}.")


def promoted_lines(registry: Registry, version: int, by: str | None) -> list[str]:
    """Promote a version that passes its tests; return the report about it.

    Raises:
        NotFoundError: there is no such version.
        ArtifactError: it cannot be used.
    """
    info = registry.load(version).info
    before, after = registry.change(lambda state: state.promote(version, now(), by))
    if before == after:
        return [f"Version {version} is promoted already."]
    until = "" if before.promoted is None else f"; until now it was version {before.promoted}"
    return [f"Version {version} is promoted{until}.", *_differences(registry, before.promoted, version, info)]


def _rolled_back(registry: Registry, by: str | None) -> list[str]:
    passed_over: list[str] = []

    def usable(version: int) -> bool:
        try:
            registry.load(version)
        except (ArtifactError, NotFoundError) as error:
            passed_over.append(f"Version {version} was passed over: {error}")
            return False
        return True

    # Under the lock, so that exactly this one is promoted.
    try:
        before, after = registry.change(lambda state: state.roll_back(now(), by, usable))
    except InputError as error:
        if passed_over:
            raise ArtifactError(" ".join([str(error), *passed_over])) from error
        raise
    return [f"Version {after.promoted} is promoted again; until now it was version {before.promoted}.", *passed_over]


def _differences(registry: Registry, before: int | None, after: int, info: ModelInfo) -> list[str]:
    """Return how a version differs from the one before in labels, columns or task."""
    if before is None:
        return []
    try:
        was = registry.load(before).info
    except (ArtifactError, NotFoundError):  # It can no longer be used, which may be why it is exchanged.
        return []
    changes = {
        "knows other labels": label_change(was.labels, info.labels),
        "reads other columns": label_change(*(named_columns(one.text_columns, one.columns) for one in (was, info))),
        "has another task": label_change([was.task], [info.task]),
    }
    return [f"Note: version {after} {what} than version {before}: {one}." for what, one in changes.items() if one]


def _as_json(state: State, listed: Sequence[Listed]) -> dict[str, object]:
    versions = []
    for one in listed:
        fields = {"version": one.number} if one.version is None else one.version.to_json()
        versions.append(fields if one.problem is None else {**fields, "problem": one.problem})
    return {
        "name": state.name,
        "promoted": state.promoted,
        "versions": versions,
        "history": [each.to_json() for each in state.history],
    }


def now() -> str:
    """Return the time in the format of registries: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
