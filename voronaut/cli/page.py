"""docs/command_line.md, from the parser: `python -m voronaut.cli.page` renews it."""

import argparse
import textwrap
from pathlib import Path

from voronaut.cli import parser
from voronaut.helpers.markdown import table

PAGE = Path("docs/command_line.md")
HEAD = """# The command line

Every command and option, as `voronaut COMMAND --help` has them (`python -m voronaut.cli.page` makes this page).

| you want to | command |
|---|---|
| see it work | `voronaut demo` |
| train on one of the sparse tasks | `voronaut train cheetah-run --learner sac --sac.size small --out runs/cheetah` |
| train on any Gymnasium environment | `voronaut train gym:MountainCarContinuous-v0 --learner sac --out runs/car` |
| train on [your own](start.md#train-on-an-environment-of-your-own) | `voronaut train env:mine:make --out runs/mine` |
| go on after a kill, or with more steps | the same command with `--resume`, or with more `--steps` and `--resume` |
| see how well a run does, and film it | `voronaut eval runs/cheetah/kme-0 --video film.mp4` |
| look at curves, clusters and warnings | `voronaut report runs/cheetah` |
| measure the entropy of a file | `voronaut entropy states.npy` |
| run the experiments again | `voronaut reproduce exploration --status` |
"""


def page() -> str:
    """The whole page."""
    top = parser()
    menu = next(action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in menu._choices_actions}
    return HEAD + "".join(section(name, helps[name], each) for name, each in menu.choices.items())


def section(name: str, brief: str, command: argparse.ArgumentParser) -> str:
    """One command: what it does, examples if its help has some, its options, and what it says at the end."""
    words, _, examples = (command.description or "").partition("\nexamples:\n")
    text = f"\n## `voronaut {name}`\n\n{brief[:1].upper()}{brief[1:]}.\n"
    text += f"\n{words.strip()}\n" if words else ""
    text += f"\n```bash\n{textwrap.dedent(examples)}\n```\n" if examples else ""
    text += "\n" + table(["", ""], [[f"`{invoked(each)}`", told(command, each)] for each in shown(command)]) + "\n"
    return text + "".join(f"\n{line.strip()}\n" for line in (command.epilog or "").splitlines())


def shown(command: argparse.ArgumentParser) -> list[argparse.Action]:
    """Its arguments and options, without --help."""
    return [action for action in command._actions if not isinstance(action, argparse._HelpAction)]


def invoked(action: argparse.Action) -> str:
    """`--seeds N`, as one writes it."""
    name = action.option_strings[0] if action.option_strings else ""
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    return f"{name} {value}".strip().replace("|", "/")


def told(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Its help, with the default in its place."""
    return command._get_formatter()._expand_help(action).replace("|", "/")


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
