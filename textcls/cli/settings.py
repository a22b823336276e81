"""The sources of options that are not given: the environment, then a file, then the defaults.

Each option of each command has a variable, TEXTCLS_TRAIN_EPOCHS for `textcls train --epochs`, and a key in the table of
its command in `textcls.toml`, `epochs` in `[train]`. The file is that of --config, or of TEXTCLS_CONFIG, or
`textcls.toml` in the working folder if there is one.
"""

import os
import re
import tomllib
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from textcls._util.gone import gone
from textcls.cli import option_files
from textcls.display.text import listed
from textcls.errors import ConfigError, InputError

NAME: Final = "textcls.toml"
PREFIX: Final = "TEXTCLS"
# Key in a command's context: whether the file was found rather than named.
_UNASKED: Final = "textcls.settings.unasked"
# The variables that Kubernetes sets for services, whatever their names.
_OF_SERVICES: Final = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)=|_PORT_\d+_\w+=|_PORT=\w+://")
# Key: the file that was named, if it has no settings for the command.
_WITHOUT: Final = "textcls.settings.without"


def key_of(option: click.Parameter) -> str:
    """Return the name of `option` in the file: its long name without hyphens before it."""
    return max(option.opts, key=len).lstrip("-")


def variable_of(command: str, option: click.Option) -> str:
    """Return the variable of `option`."""
    return f"{PREFIX}_{command}_{key_of(option)}".upper().replace("-", "_")


def add(command: click.Command, commands: Sequence[str]) -> None:
    """Give `command` its option --config, and each of its options a variable; a second time does nothing."""
    if command.name is None or any(option.name == "config" for option in command.params):
        return
    _add_variables(command, command.name)
    for one in (command, *(command.commands.values() if isinstance(command, click.Group) else ())):
        if one.callback is not None:
            one.callback = _telling(one, one.callback, commands)

    def read(context: click.Context, _: click.Parameter, path: str | None) -> None:
        if path == "":
            raise ConfigError("The name of the settings file is empty; is a variable of the shell not set?")
        found = Path(path) if path is not None else Path(NAME) if os.path.lexists(NAME) else None
        # Completion must not fail because of the file's content.
        if found is not None and not context.resilient_parsing:
            context.default_map = defaults(found, context, commands)
            option_files.add(context, found)
            context.meta[_UNASKED] = path is None
            named = context.get_parameter_source("config") is click.core.ParameterSource.COMMANDLINE
            if named and command.name not in _tables(found):
                context.meta[_WITHOUT] = found

    command.params.append(
        click.Option(
            ["--config"],
            type=click.Path(),
            metavar="FILE",
            envvar=f"{PREFIX}_CONFIG",
            is_eager=True,
            expose_value=False,
            callback=read,
            help=f"Read defaults from this file.  [default: {NAME}, if there is one]",
        )
    )


def found_unasked(option: str) -> bool:
    """Return whether the value of an option of the running command comes from a file that was not named."""
    context = click.get_current_context()
    from_file = context.get_parameter_source(option) is click.core.ParameterSource.DEFAULT_MAP
    return from_file and bool(context.meta.get(_UNASKED))


def _telling(command: click.Command, run: Callable[..., Any], commands: Sequence[str]) -> Callable[..., Any]:
    """Return a function that runs a command after checking its outputs, and first reports what an unnamed file sets, or
    that a named one, or a variable, sets nothing.

    A file cannot silence the reports about it: only `--quiet` or its variable can.
    """

    @wraps(run)
    def told(*args: Any, **given: Any) -> Any:
        context = click.get_current_context()
        # In a group with a command, the first of them reports it.
        if (found := context.meta.pop(_WITHOUT, None)) and not context.params.get("quiet"):
            note = f"{found} sets nothing for textcls {command.name}: it has no [{command.name}]."
            click.echo(f"Note: {note}", err=True)
        if not context.params.get("quiet"):
            for note in _unknown_variables(command, commands):
                click.echo(f"Note: {note}", err=True)
        if not context.params.get("quiet") or found_unasked("quiet"):
            names = [key_of(one) for one in command.params if found_unasked(one.name or "")]
            if names:
                click.echo(f"Note: {NAME} in this folder sets {listed(names)}.", err=True)
        from textcls.cli import outputs  # Help and completion need none of what this imports.

        outputs.check(context)
        return run(*args, **given)

    return told


def _add_variables(command: click.Command, name: str) -> None:
    """Give each option of `command`, and of the commands below it, its variable."""
    for option in command.params:
        if isinstance(option, click.Option) and option.envvar is None:
            option.envvar = variable_of(name, option)
    if isinstance(command, click.Group):
        for below, inner in command.commands.items():
            _add_variables(inner, f"{name}_{below}")


def _unknown_variables(command: click.Command, commands: Sequence[str]) -> list[str]:
    """Return a sentence about each variable that is set for an option which `command` does not have."""
    if command.name not in commands:
        return []  # It is one of a group, of which the group tells.
    begin, *all_commands = (f"{PREFIX}_{name}_".upper().replace("-", "_") for name in (command.name, *commands))
    others = tuple(one for one in all_commands if one != begin and one.startswith(begin))
    known, found = _variables(command), list[str]()
    for name in sorted(os.environ.keys() - known):
        of_services = _OF_SERVICES.search(f"{name}={os.environ[name]}")
        if name.startswith(begin) and not name.startswith(others) and not of_services:
            key = name.removeprefix(begin)
            close = get_close_matches(key, [one.removeprefix(begin) for one in known], 1)
            why = gone(str(command.name), key.lower())
            more = f": {why}" if why else f"; did you mean {begin}{close[0]}?" if close else "."
            found.append(f"{name} sets nothing: textcls {command.name} has no such option{more}")
    return found


def _variables(command: click.Command) -> set[str]:
    """Return the variables of all options of `command`, and of those below it."""
    found = {str(option.envvar) for option in command.params if option.envvar}
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return found.union(*map(_variables, below))


def defaults(path: Path, context: click.Context, commands: Sequence[str]) -> dict[str, Any]:
    """Return what the file at `path` sets for the options of a command, by the names of its parameters.

    Raises:
        InputError: there is no such file, or it is not TOML.
        ConfigError: a command or an option does not exist, or a value is not of its kind.
    """
    command, tables = context.command, _tables(path)
    for name, table in tables.items():
        if name not in commands:
            raise ConfigError(f"{path}: there is no command {name!r}{_meant(name, commands)}")
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {name!r} is not a table; write [{name}], and its options below.")
    return _of_table(path, context, command, command.name or "", tables.get(command.name or "", {}))


def _of_table(
    path: Path, context: click.Context, command: click.Command, name: str, table: dict[str, Any]
) -> dict[str, Any]:
    """Return what a table called `name` in the file sets for the options of a command and its subcommands."""
    options = {key_of(option): option for option in command.params if _is_settable(option)}
    below = command.commands if isinstance(command, click.Group) else {}
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in below and isinstance(value, dict):
            found[key] = _of_table(path, context, below[key], f"{name}.{key}", value)
            continue
        option = options.get(key.replace("_", "-"))
        if option is None and (why := gone(name, key)):
            raise ConfigError(f"{path}, [{name}]: there is no option {key!r} any more: {why}")
        if option is None:
            raise ConfigError(f"{path}, [{name}]: there is no option {key!r}{_meant(key, [*options, *below])}")
        where = f"{path}, [{name}] {key}"
        found[option.name or ""] = _value(option, value, where)
        try:
            option.process_value(context, found[option.name or ""])
        except click.BadParameter as error:
            raise ConfigError(f"{where}: {error.message.removesuffix('.')}.") from error
    return found


def _is_settable(parameter: click.Parameter) -> bool:
    """Return whether a file may set it: options, and arguments that may also come from a variable."""
    is_option = isinstance(parameter, click.Option) and parameter.name != "config"
    return is_option or (isinstance(parameter, click.Argument) and parameter.envvar is not None)


def with_origin(error: click.BadParameter) -> str:
    """Return the message of `error`, and the variable if the value came from one."""
    message = error.message
    if error.param is not None and error.ctx is not None:
        source = error.ctx.get_parameter_source(error.param.name or "")
        if source is click.core.ParameterSource.ENVIRONMENT:
            message = f"{message.removesuffix('.')} (from the variable {error.param.envvar})."
    return message


def _tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise InputError(f"There is no settings file {path}.") from error
    except OSError as error:
        raise InputError(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # also of numbers with thousands of digits
        raise InputError(f"{path} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise InputError(f"{path} is not valid TOML: its values are nested too deeply.") from error


def _value(option: click.Parameter, value: Any, where: str) -> Any:
    """Return `value` in click's form: as on the command line."""
    several = (option.multiple and not getattr(option, "once", False)) or option.nargs == -1
    if isinstance(option, click.Option) and option.is_flag:
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: true or false is needed, not {value!r}.")
        return value
    if isinstance(option, click.Option) and option.nargs > 1:
        lists = option.multiple and isinstance(value, list) and bool(value) and isinstance(value[0], list)
        given = value if lists else [value]
        if not all(isinstance(each, list) and all(type(one) in (int, float) for one in each) for each in given):
            raise ConfigError(f"{where}: a list of {option.nargs} numbers is needed, not {value!r}.")
        found = [[str(one) for one in each] for each in given]
        return found if option.multiple else found[0]
    values = value if isinstance(value, list) and several else [value]
    if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in values):
        kinds = "a string, a number or a list of them" if several else "a string or a number"
        raise ConfigError(f"{where}: {kinds} is needed, not {value!r}.")
    words = [str(one) for one in values]
    if any("\0" in word for word in words):
        raise ConfigError(f"{where}: a value with a null character stands for nothing.")
    return words if several or option.multiple else words[0]


def _meant(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name.replace("_", "-"), known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}."
