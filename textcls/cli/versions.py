"""`textcls versions`: the versions of a registry, which of them is promoted, and how to go back."""

from datetime import UTC, datetime
from pathlib import Path

import click

from textcls.cli.options import registry_argument
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show
from textcls.display.terminal.versions import versions_table
from textcls.errors import ArtifactError, ConfigError, InputError, NotFoundError
from textcls.model.labels import label_change
from textcls.versions.folder import Registry
from textcls.versions.record import BY_CHARACTERS, State, checked_text
from textcls.versions.shadow import shadow_problem


@click.command(
    epilog="""Example: textcls versions registry

    Example: textcls versions registry --promote 3 --by Ann

    Example: textcls versions registry --rollback

    Example: textcls versions registry --shadow 4"""
)
@registry_argument
@click.option(
    "--promote", type=click.IntRange(1), metavar="VERSION", help="Let this version answer, once it is tested."
)
@click.option("--rollback", is_flag=True, help="Promote again what was promoted before; once more goes further back.")
@click.option(
    "--shadow",
    type=click.IntRange(1),
    metavar="VERSION",
    help="Let this version answer silently beside the promoted one; a service counts where they disagree.",
)
@click.option("--no-shadow", is_flag=True, help="Let none do so any more.")
@click.option("--by", metavar="WHO", help="Who promotes it; without this nobody is recorded.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def versions(
    registry: Path,
    promote: int | None,
    rollback: bool,
    shadow: int | None,
    no_shadow: bool,
    by: str | None,
    as_json: bool,
) -> None:
    """List the versions in the folder REGISTRY; or promote one, go back, or choose the shadow.

    textcls publish adds versions. What is promoted, when, and by whom, stays in registry.json.
    """
    asked = [promote is not None, rollback, shadow is not None, no_shadow]
    if sum(asked) > 1:
        raise ConfigError("--promote, --rollback, --shadow and --no-shadow are done one at a time; give one of them.")
    if by is not None and not (rollback or promote is not None):
        raise ConfigError("--by says who promotes a version: give it with --promote or --rollback.")
    by = checked_text(by, "--by", BY_CHARACTERS)
    opened = Registry.open(registry)
    if promote is not None:
        told = promoted_lines(opened, promote, by)
    elif rollback:
        told = _rolled_back(opened, by)
    elif shadow is not None:
        told = _shadowed(opened, shadow)
    elif no_shadow:
        before, after = opened.change(lambda state: state.with_shadow(None))
        told = _no_longer_shadow(before, after) or ["There was no shadow."]
    else:
        told = []
    if as_json:
        click.echo(json_line(_as_json(opened)))
    elif any(asked):
        click.echo("\n".join(told))
    else:
        show(versions_table(registry, opened.state(), opened.versions()))


def promoted_lines(registry: Registry, version: int, by: str | None) -> list[str]:
    """Promote a version that passes its tests; return what there is to say of it.

    Raises:
        NotFoundError: there is no such version.
        ArtifactError: it cannot be used.
    """
    labels = registry.load(version).labels
    before, after = registry.change(lambda state: state.promote(version, now(), by))
    if before == after:
        return [f"Version {version} is promoted already."]
    until = "" if before.promoted is None else f"; until now it was version {before.promoted}"
    return [
        f"Version {version} is promoted{until}.",
        *_other_labels(registry, before.promoted, version, labels),
        *_no_longer_shadow(before, after),
    ]


def _rolled_back(registry: Registry, by: str | None) -> list[str]:
    def roll_back(state: State) -> State:
        after = state.roll_back(now(), by)
        # Under the lock: it is this one that is promoted, and no other.
        registry.load(after.promoted or 0)
        return after

    before, after = registry.change(roll_back)
    return [
        f"Version {after.promoted} is promoted again; until now it was version {before.promoted}.",
        *_no_longer_shadow(before, after),
    ]


def _shadowed(registry: Registry, version: int) -> list[str]:
    registry.state().with_shadow(version)  # Refused before it is loaded.
    model = registry.load(version).info

    def shadow(state: State) -> State:
        after = state.with_shadow(version)
        if wrong := shadow_problem(registry.load(after.promoted or 0).info, model):
            raise InputError(f"Version {version} cannot be the shadow of version {after.promoted}. {wrong}")
        return after

    _, after = registry.change(shadow)
    return [
        f"Version {version} is the shadow: it answers silently beside version {after.promoted}.",
        *_other_labels(registry, after.promoted, version, model.labels),
    ]


def _other_labels(registry: Registry, before: int | None, after: int, labels: tuple[str, ...]) -> list[str]:
    """Return that a version knows other labels than the one before, if it does."""
    if before is None:
        return []
    try:
        change = label_change(registry.load(before).labels, labels)
    except (ArtifactError, NotFoundError):  # It can no longer be used, which may be why it is exchanged.
        return []
    return [] if change is None else [f"Note: version {after} knows other labels than version {before}: {change}."]


def _no_longer_shadow(before: State, after: State) -> list[str]:
    return [f"There is no shadow any more: it was version {before.shadow}."] if before.shadow != after.shadow else []


def _as_json(registry: Registry) -> dict[str, object]:
    state = registry.state()
    listed = []
    for one in registry.versions():
        said = {"version": one.number} if one.version is None else one.version.to_json()
        listed.append(said if one.problem is None else {**said, "problem": one.problem})
    return {
        "name": state.name,
        "promoted": state.promoted,
        "shadow": state.shadow,
        "versions": listed,
        "history": [each.to_json() for each in state.history],
    }


def now() -> str:
    """Return the time as registries have it: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
