"""Print a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Final

from dala import cli
from dala.cli.common import arguments, chain
from dala.cli.common.arguments import argument

EXAMPLES: Final = """\
examples:
  dala completion bash > ~/.local/share/bash-completion/completions/dala
  dala completion zsh > ~/.zfunc/_dala             a folder of fpath
  dala completion fish > ~/.config/fish/completions/dala.fish
"""

ARGUMENTS: Final[arguments.Options] = {
    "shell": argument("the shell", choices=("bash", "zsh", "fish")),
}


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
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
    commands = " ".join(f"'{name}:{_quoted(cli.help_line(name))}'" for name in cli.COMMANDS)
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
        about = _quoted(cli.help_line(name))
        lines.append(f"complete -c dala -n __fish_use_subcommand -a {name} -d '{about}'")
        for flag, text in _options(name).items():
            form = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            seen = f"-n '__fish_seen_subcommand_from {name}'"
            lines.append(f"complete -c dala {seen} {form} -d '{_quoted(text)}'")
    return "\n".join(lines) + "\n"
