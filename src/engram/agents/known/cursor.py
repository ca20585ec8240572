"""Cursor: a desktop application; an entry in `~/.cursor/mcp.json`."""

from engram.agents.agent import CodingAgent, Configuration, EntryForm, InstructionFiles, UserFolder

AGENT = CodingAgent(
    name="cursor",
    title="Cursor",
    folder=UserFolder(find=lambda home, _: home / ".cursor"),
    configuration=Configuration(
        find_file=lambda home, _: home / ".cursor" / "mcp.json",
        project_files=(".cursor/mcp.json",),
        own_folders=1,
        entry=EntryForm(),
        is_desktop=True,
    ),
    instructions=InstructionFiles(context_file="AGENTS.md", up_the_tree=("AGENTS.md",)),
    page="cursor.md",
)
