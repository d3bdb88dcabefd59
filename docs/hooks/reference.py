"""The reference pages of the site, made of the code: keys of configs, commands, and the Python API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import rtrain
from rtrain.cli.app import app
from rtrain.config.reference.key_docs import KeyDoc, key_docs
from rtrain.config.schema import RtrainConf
from rtrain.schemas import schemas


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; mkdocs calls this before it builds the site."""
    made = {
        "keys": _page("Keys of configs", _keys()),
        "trainers": _page("Keys of trainers", _plugins("trainer")),
        "datasets": _page("Keys of dataset sources", _plugins("dataset")),
        "commands": _page("Commands", _commands()),
        "python": _page("Python API", _python()),
    }
    for name, content in made.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def _page(title: str, parts: Iterator[str]) -> str:
    return f"# {title}\n\n" + "\n".join(parts)


def _keys() -> Iterator[str]:
    """Yield the sections that are the same for every trainer, and those of searches, schedulers and loggers."""
    yield "`trainer` and `dataset` have the keys of the chosen [trainer](trainers.md) and [source](datasets.md).\n"
    known = key_docs(RtrainConf)
    sections = dict.fromkeys(key.name.partition(".")[0] for key in known if "." in key.name)
    yield "## Top level\n"
    yield from _table([key for key in known if "." not in key.name], "")
    for section in sections:
        yield f"\n## {section}\n"
        yield from _table([key for key in known if key.name.startswith(f"{section}.")], "")
    for group in ("sweep", "sweep/scheduler", "run/loggers"):
        for name, conf in sorted(schemas().group(group).items()):
            prefix = f"run.loggers.{name}." if group == "run/loggers" else f"{group.replace('/', '.')}."
            yield f"\n## {group}={name}\n"
            yield from _table(key_docs(conf), prefix)


def _plugins(group: str) -> Iterator[str]:
    for name, conf in sorted(schemas().group(group).items()):
        yield f"\n## {name}\n"
        yield f"`{group}={name}`. {_first_paragraph(conf.__doc__)}\n"
        yield from _table(key_docs(conf), f"{group}.")


def _table(keys: list[KeyDoc], prefix: str) -> Iterator[str]:
    if not keys:
        yield "It has no keys."
        return
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for key in keys:
        default = "required" if key.default is None else f"`{key.default}`"
        yield "| " + " | ".join(map(_cell, (f"`{prefix}{key.name}`", key.kind, default, _code(key.text)))) + " |"


def _commands() -> Iterator[str]:
    yield from _command(typer.main.get_command(app), ["rtrain"])


def _command(command: Any, words: list[str]) -> Iterator[str]:
    inner = {name: one for name, one in getattr(command, "commands", {}).items() if not one.hidden}
    if not inner:
        shown = [one for one in command.params if not getattr(one, "hidden", False)]
        arguments = [_metavar(one) for one in shown if one.param_type_name == "argument"]
        yield f"\n## {' '.join(words)}\n"
        yield _escaped(inspect.cleandoc(command.help or "")) + "\n"
        yield f"    {' '.join([*words, *arguments])}\n"
        rows = [(", ".join(f"`{name}`" for name in _names(one)), _code(one.help or "")) for one in shown]
        yield from ("| argument | meaning |\n|---|---|", *(f"| {name} | {_cell(text)} |" for name, text in rows))
    for name, one in inner.items():
        yield from _command(one, [*words, name])


def _names(parameter: Any) -> list[str]:
    return [_metavar(parameter)] if parameter.param_type_name == "argument" else list(parameter.opts)


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name = f"{name}..." if argument.nargs == -1 else name
    return name if argument.required else f"[{name}]"


def _python() -> Iterator[str]:
    for name in sorted(set(rtrain.__all__) - {"__version__"}):
        made = getattr(rtrain, name)
        yield f"\n## rtrain.{name}\n"
        yield f"```python\n{name}{_signature(made)}\n```\n"
        yield _prose(inspect.getdoc(made) or "") + "\n"
        for member, value in vars(made).items() if inspect.isclass(made) else ():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                yield f"\n### {name}.{member}\n"
                shown = "" if isinstance(value, property) else _signature(value)
                yield f"```python\n{member}{shown}\n```\n\n{_prose(inspect.getdoc(value) or '')}\n"


def _signature(made: Any) -> str:
    return str(inspect.signature(made)).replace("'", "")


def _prose(docstring: str) -> str:
    """Return a docstring of Google's style as Markdown: its sections as lists."""
    lines: list[str] = []
    for line in docstring.split("\n"):
        if re.fullmatch(r"(Args|Returns|Raises|Yields):", line):
            lines += [f"**{line}**", ""]
        elif re.match(r" {4}\S", line):
            lines.append("- " + line.strip())
        else:
            lines.append("  " + line.strip() if line.startswith(" " * 5) else line)
    return _code("\n".join(lines))


def _first_paragraph(text: str | None) -> str:
    return _code(" ".join(inspect.cleandoc(text or "").split("\n\n")[0].split()))


def _code(text: str) -> str:
    return text.replace("``", "`")


def _escaped(text: str) -> str:
    return _code(text).replace("<", "&lt;")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
