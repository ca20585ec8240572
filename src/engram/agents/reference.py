"""`python -m engram.agents.reference docs/harnesses.md`: writes the table of coding agents into a page."""

import sys
from collections.abc import Iterator
from pathlib import Path

from engram.agents.agent import CodingAgent, all_agents

BEGIN, END = "<!-- agents: made by `make docs` -->\n", "<!-- end of agents -->\n"
_HOME = Path("/home/user")
_HEAD = "| coding agent | `init` | what it gets | your file | the project's file | its own instructions | page |\n"


def rows() -> Iterator[str]:
    """The rows of the table, from the agents' records."""
    yield _HEAD + "|---|---|---|---|---|---|---|\n"
    for agent in all_agents():
        known, files = agent.configuration, agent.instructions
        own = dict.fromkeys((*files.up_the_tree, *files.at_root))
        of_user = (f"`{_show_path(agent.folder.find(_HOME, {}) / name)}`" for name in files.of_user)
        cells = (
            agent.title,
            f"`{agent.name}`",
            _benefits(agent),
            f"`{_show_path(known.find_file(_HOME, {}))}`",
            f"`{known.project_files[-1]}`",
            ", ".join((*(f"`{name}`" for name in own), *of_user)),
            f"[{agent.page}]({agent.page})" if agent.page else "",
        )
        yield f"| {' | '.join(cells)} |\n"


def _benefits(agent: CodingAgent) -> str:
    server = "a plugin with skills, hooks and the server, or the server alone" if agent.hook_events else "the server"
    return f"{server}; its sessions are harvested and searched" if agent.sessions is not None else server


def _show_path(path: Path) -> str:
    return f"~/{path.relative_to(_HOME).as_posix()}"


def with_table(page: str, made: Iterator[str]) -> str:
    """The page with this table between its markers. Raises `ValueError` for a page without markers."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{''.join(made)}\n{END}{after}"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(with_table(target.read_text("utf-8"), rows()), "utf-8")
