"""Print a script that completes commands and options in a shell, or the manual page.

examples:
  dala completion bash > ~/.local/share/bash-completion/completions/dala
  dala completion zsh > ~/.zfunc/_dala             a folder of fpath
  dala completion fish > ~/.config/fish/completions/dala.fish
  dala completion man > ~/.local/share/man/man1/dala.1
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Final

import dala
from dala import cli
from dala.cli.common import arguments, chain
from dala.cli.common.arguments import argument

ARGUMENTS: Final[arguments.Options] = {
    "shell": argument("the shell, or man", choices=("bash", "zsh", "fish", "man")),
}


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish, "man": _man}
    sys.stdout.write(makers[args.shell]())
    return 0


def _options(command: str) -> dict[str, str]:
    """Return the options of a command, with their help.

    >>> _options("cut")["--copy"]
    'never encode: begin at the key frame before --from'
    """
    module = import_module(f"dala.cli.{command}")
    found = {"--help": "show help and examples"}
    rows = {**module.ARGUMENTS, **cli.COMMON}
    for name, facts in rows.items():
        for flag in name.split(", "):
            if flag.startswith("-"):
                found[flag] = " ".join(facts.get("help", "").replace("%%", "%").split())
    if hasattr(module, "PATHS"):
        found |= {f"--{name}": spec.summary for name, spec in chain.filters().items()}
        found |= {f"--{short}": f"--{name} lut=FILE" for short, name in chain.SHORT.items()}
    return dict(sorted(found.items()))


def _quoted(text: str) -> str:
    return text.replace("'", "").replace(":", " ").replace("`", "")


def _bash() -> str:
    cases = "\n".join(
        f'    {name}) options="{" ".join(_options(name))}" ;;' for name in cli.COMMANDS
    )
    return f"""\
# Completion of dala in bash.
_dala() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} options=
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(cli.COMMANDS)}" -- "$word"))
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _dala dala
"""


def _zsh() -> str:
    commands = " ".join(f"'{name}:{_quoted(cli.help_parts(name)[0])}'" for name in cli.COMMANDS)
    cases = "\n".join(
        f"    {name}) options=("
        + " ".join(f"'{flag}:{_quoted(text)}'" for flag, text in _options(name).items())
        + ") ;;"
        for name in cli.COMMANDS
    )
    return f"""\
#compdef dala
# Completion of dala in zsh.
_dala() {{
  local -a commands options
  commands=({commands})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case $words[2] in
{cases}
  esac
  if [[ $PREFIX == -* ]]; then
    _describe option options
  else
    _files
  fi
}}
compdef _dala dala
"""


def _fish() -> str:
    lines = ["# Completion of dala in fish."]
    for name in cli.COMMANDS:
        about = _quoted(cli.help_parts(name)[0])
        lines.append(f"complete -c dala -n __fish_use_subcommand -a {name} -d '{about}'")
        for flag, text in _options(name).items():
            form = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            seen = f"-n '__fish_seen_subcommand_from {name}'"
            lines.append(f"complete -c dala {seen} {form} -d '{_quoted(text)}'")
    return "\n".join(lines) + "\n"


def _man() -> str:
    """Return the manual page, in the language of man."""
    lines = [
        f'.TH DALA 1 "" "dala {dala.__version__}" "User Commands"',
        ".SH NAME",
        "dala \\- a portable GPU stack for realtime media",
        ".SH SYNOPSIS",
        ".B dala",
        r"\fICOMMAND\fR [arguments]",
        ".SH COMMANDS",
    ]
    for name in cli.COMMANDS:
        module = import_module(f"dala.cli.{name}")
        line, examples = cli.help_parts(name)
        lines += [f".SS dala {name}", _roff(f"{line}."), ".PP", ".nf"]
        lines += [*map(_roff, examples.splitlines()), ".fi"]
        for argument_name, facts in module.ARGUMENTS.items():
            lines += _man_row(argument_name, facts.get("metavar"), facts.get("help", ""))
    lines += [".SH OPTIONS OF ALL COMMANDS"]
    for flags, about in cli.COMMON.items():
        lines += _man_row(flags, about.get("metavar"), about["help"])
    lines += [".SH FILTERS", "Of the commands filter, export, live, view and batch."]
    for name, spec in chain.filters().items():
        lines += _man_row(f"--{name}", None, spec.summary)
    return "\n".join(lines) + "\n"


def _man_row(name: str, value: object, text: str) -> list[str]:
    shown = "" if value is None else rf" \fI{_roff(str(value))}\fR"
    return [".TP", rf"\fB{_roff(name)}\fR{shown}", _roff(" ".join(text.split())).replace("%%", "%")]


def _roff(text: str) -> str:
    """Return text whose characters mean themselves.

    >>> _roff(".5 of --blur's")
    "\\\\&.5 of \\\\-\\\\-blur's"
    """
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text
