"""The verbs that take memories from elsewhere: conversations, transcripts, chats, files of other programs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engram.client.facets import PAUSED_MESSAGE, Facets
from engram.model.errors import InvalidInput, Refused
from engram.model.fields import aware
from engram.model.memory import Memory
from engram.store.ledger import CONVERSATION_PREFIX, ledger_scope
from engram.store.protocol import Progress
from engram.store.states import is_paused
from engram.verbs import store, work
from engram.verbs.calls import bind_verb

if TYPE_CHECKING:
    from engram.capture.exchange import Conversation
    from engram.capture.extraction import ExtractedFact
    from engram.capture.harvest import Harvester, HarvestReport
    from engram.capture.import_report import ImportReport

Memories = list[Memory]
HARVEST_WAIT = 60.0
"""Seconds for which a harvest waits until another process has finished its own."""
ANOTHER_HARVEST = "another process harvests now; the waiting sessions are left to it or to the next harvest"


class CaptureVerbs(Facets):
    """The verbs that read what was said, and keep what is worth it."""

    @bind_verb(work.ADD_CONVERSATION)
    def add_conversation(
        self,
        user_message: str,
        assistant_response: str = "",
        *,
        scope: str = "",
        agent_id: str | None = None,
        user_id: str | None = None,
        session: str = "",
        session_id: str = "",
        extract_assistant_response: bool = False,
        source: str = "agent",
        key: str = "",
    ) -> "Conversation":
        """Store an exchange in its session's ledger, and what lasts of it as memories.

        Returns the list of memories written; its `decisions` report every fact, stored or not: ADD, UPDATE, SUPERSEDE or
        NOOP, and why. Where a model is configured and fails, `pending` is true and a job asks it again. The same exchange
        added twice is one, unless `key` tells them apart. It belongs to the owner named, else to the owner of its
        session, else to the directory's scope; raises `Refused` for a session of another owner.
        """
        from engram.gates.secrets.scan import refuse_secret

        if is_paused(self.store):
            raise Refused(PAUSED_MESSAGE)
        session = session or session_id
        refuse_secret(session, "the session's id")
        refuse_secret(source, "the source")
        owner = ledger_scope(self.store, session) if session and not (scope or agent_id or user_id) else ""
        wanted = owner or self._own_scope({"scope": scope, "agent_id": agent_id, "user_id": user_id})
        return self._conversations.add(
            user_message,
            assistant_response,
            scope=wanted,
            session=session or f"{CONVERSATION_PREFIX}{wanted}",
            extract_assistant_response=extract_assistant_response,
            source=source,
            key=key,
        )

    @bind_verb(work.EXTRACT)
    def extract(
        self, turns: Sequence[Mapping[str, Any]], *, extract_assistant_response: bool = False
    ) -> "list[ExtractedFact]":
        """The facts that would be stored from turns, {"role", "content"} each, with their source; nothing is written."""
        from engram.capture.extraction import extract
        from engram.text.time.zone import in_zone

        at = in_zone(self._clock(), self.time_zone)
        return extract(turns, at=at, extract_assistant_response=extract_assistant_response)

    @bind_verb(work.HARVEST)
    def harvest(
        self,
        path: str | Path | None = None,
        *,
        harness: str | Sequence[str] = "all",
        since: datetime | str | None = None,
        project: str | Path | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> "HarvestReport":
        """Propose the lasting facts in what a person told their coding agents.

        Reads the harnesses' own stores, or `path`; only what is new since the last harvest. `since` takes the sessions that were active
        since then, `project` those in a folder and below it. What is found waits for review, with the turn it was said in as evidence. Waits
        a minute while another process harvests. Raises `Refused` if it still does then, and while Engram is paused.
        """
        from engram.capture.transcripts.harvest_lock import harvest_lock
        from engram.capture.transcripts.harvest_run import HarvestRun, HarvestSelection, harnesses_of
        from engram.capture.transcripts.spooled import harvest_spooled

        harvester = self._harvester(dry_run)
        place = Path(path).absolute() if path is not None else None
        folder = Path(project).absolute() if project is not None else None
        harnesses = harnesses_of(harness, place)
        selection = HarvestSelection(
            harnesses, place, aware(since, self.time_zone), folder, is_mixed=place is not None and len(harnesses) > 1
        )
        run, root = HarvestRun(self.store, harvester, progress or (lambda *_: None)), self._local_root()
        if dry_run:
            return run.harvest(selection)
        with harvest_lock(root, seconds=HARVEST_WAIT) as is_alone:
            if not is_alone:
                raise Refused("another process is still harvesting; run it again when that has finished")
            if not (path is since is project is None):
                return run.harvest(selection)
            found = harvest_spooled(run, root)
            found.add(run.harvest(selection))
        return found

    @bind_verb(work.HARVEST_SPOOLED)
    def harvest_spooled(self, *, seconds: float | None = None, progress: Progress | None = None) -> "HarvestReport":
        """Harvest the sessions that hooks left in the spool, and no others, for about so many seconds; the rest waits on.

        At least one is harvested, unless another process harvests: then none is. Raises `Refused` while Engram is paused.
        """
        from engram.capture.harvest import HarvestReport
        from engram.capture.transcripts.harvest_lock import harvest_lock
        from engram.capture.transcripts.harvest_run import HarvestRun
        from engram.capture.transcripts.spooled import harvest_spooled
        from engram.store import spool

        harvester, root = self._harvester(dry_run=False), self._local_root()
        if not spool.count_waiting(root):
            return HarvestReport()
        with harvest_lock(root, seconds=0) as is_alone:
            if not is_alone:
                return HarvestReport(warnings=[ANOTHER_HARVEST])
            return harvest_spooled(HarvestRun(self.store, harvester, progress or (lambda *_: None)), root, seconds)

    def _local_root(self) -> Path:
        """The home with the hooks' files: the store's, or this user's where the store is on a server."""
        from engram.store.home import default_root, expanded

        return self.home.root if self.home is not None else expanded(default_root(), "the home").absolute()

    @bind_verb(work.IMPORT_CHATS)
    def import_chats(
        self,
        path: str | Path,
        *,
        format: Literal["", "chatgpt", "claude"] = "",  # noqa: A002
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> "HarvestReport":
        """Propose the lasting facts in what a person told ChatGPT or Claude, from the export of their conversations.

        `path` is the zip as it was downloaded, or its `conversations.json`. Only conversations and turns that were not imported before
        are read. What is found waits for review, with the turn it was said in as evidence. Raises `NotFound`, `InvalidInput` or
        `StoreCorrupt` for what is no such export, `Refused` while Engram is paused.
        """
        from engram.capture.transcripts.chat_import import ChatImport

        chats = ChatImport(self.store, self._harvester(dry_run), progress or (lambda *_: None))
        return chats.take(Path(path).absolute(), format)

    @bind_verb(store.IMPORT)
    def import_memories(
        self,
        path: str | Path,
        *,
        format: str = "",  # noqa: A002
        mapping: Mapping[str, str] | None = None,
        trusted: bool = False,
        candidates: bool = False,
        packs: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
        actor: str = "manual",
    ) -> "ImportReport":
        """Import the memories of another tool, store or format; the report names every record that is left out, with the reason.

        `format` is recognised where none is given. `mapping` says which column or key holds which field (`{"statement": "text"}`).
        What a person imports (`actor="human"`) answers as evidence until they confirm it; `trusted` vouches for the whole file, which
        only a person can do. What anyone else imports waits for review, and so does everything with `candidates`. `packs` includes the packs of a PLUR directory. Raises
        `NotFound`, `InvalidInput` or `StoreError` for what cannot be read, `Refused` for a file that is distrusted.
        """
        from engram.capture import import_source
        from engram.capture.importer import Importer
        from engram.gates.trust import is_human

        by_person = is_human(actor)
        if trusted and not by_person:
            raise Refused("Only a person can vouch for a file: run `engram import --trusted` at a terminal")
        place = Path(path).absolute()
        if import_source.is_chats(place, format):
            raise InvalidInput(
                f"{place} is an export of chats, whose facts are proposed for review: use `import_chats`"
            )
        reading = import_source.read(place, packs=packs, format_=format, mapping=mapping)
        importer = Importer(
            self.store,
            self._clock,
            self._scopes.scope() or "global",
            place.name,
            by_person,
            candidates or not by_person,
            trusted,
            self._gate_settings,
        )
        return importer.run(reading, progress or (lambda *_: None), dry_run=dry_run)

    def _harvester(self, dry_run: bool) -> "Harvester":
        from engram.capture.harvest import Harvester

        if is_paused(self.store):
            raise Refused(PAUSED_MESSAGE)
        return Harvester(
            store=self.store,
            learner=self._learner,
            clock=self._clock,
            observe=self.sessions.observe_batch,
            revise=self.lineages.revise,
            zone=self.time_zone,
            most_proposed=self.settings.harvest_limit,
            dry_run=dry_run,
        )
