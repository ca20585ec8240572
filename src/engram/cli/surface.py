"""Parts that all verbs share: the global options, the open store, output, proof of a person, and exit codes of errors."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from engram.model.arguments import half_character_error
from engram.model.errors import EngramError, InvalidInput, NotFound, Refused
from engram.model.lazy import dataclass, field
from engram.model.logs import start_logging
from engram.model.memory import LIVE_STATUSES, Memory
from engram.text.display import escape_hidden, one_line, visible_json

if TYPE_CHECKING:
    from datetime import datetime

    from engram.client import Engram

DONE, FAILED, USAGE, NOT_FOUND = 0, 1, 2, 3
"""Exit codes."""
HUMAN = "human"
"""The actor in the journal for a person's decisions."""
DEBUG = "ENGRAM_DEBUG"
"""If set, an unexpected error shows its traceback."""


@dataclass(slots=True)
class Surface:
    """One run of a verb."""

    home: Path | None = None
    as_json: bool = False
    said: set[str] = field(default_factory=set)
    answered: bool = False
    """Whether JSON was already printed; a program reads a single document."""
    _clock: "Callable[[], datetime] | None" = None

    @property
    def person(self) -> bool:
        """Whether a person is at the terminal; nothing else may act as one."""
        return sys.stdin.isatty()

    @property
    def actor(self) -> str:
        """The actor in the journal for a change made here."""
        return HUMAN if self.person else "agent"

    @property
    def can_draw(self) -> bool:
        """Whether answers go to a terminal, and may be formatted."""
        return not self.as_json and sys.stdout.isatty()

    @contextmanager
    def memory(self, **options: Any) -> "Iterator[Engram]":
        """The open store; its warnings go to stderr when it closes."""
        from engram.cli.display import show_in
        from engram.client import Engram
        from engram.store.scopes import working_directory

        options.setdefault("directory", working_directory())
        with Engram.open(self.home, **options) as mem:
            show_in(mem.time_zone)
            self._clock = mem.upkeep.clock
            yield mem
            self.warn([*mem.store.warnings, *mem.scope_notices()])

    @property
    def now(self) -> "datetime":
        """The time by the clock of the open store."""
        assert self._clock is not None, "no store is open"
        return self._clock()

    def refuse_server(self, why: str) -> None:
        """Refuse an operation that only a store of files supports, if a server is used."""
        from engram.store.defaults import requested_server

        if requested_server(self.home) is not None:
            raise InvalidInput(f"{why}. --home DIR works on a store of files instead of $ENGRAM_URL's")

    def answer(self, data: Any, draw: Callable[[], None]) -> None:
        """Print the answer, as JSON if requested, else formatted."""
        if self.as_json:
            self.json(data)
        else:
            draw()

    def json(self, data: Any) -> None:
        """Print data as JSON on stdout."""
        import json

        from engram.cli.records import plain

        text = json.dumps(plain(data), ensure_ascii=False, indent=2, allow_nan=False)
        self.answered = True
        sys.stdout.write(visible_json(text) + "\n")

    def report_failure(self, message: str, code: int) -> None:
        """Report an error to a program that reads JSON, unless it has its answer."""
        if self.as_json and not self.answered:
            self.json({"error": message, "code": code})

    def say(self, text: str) -> None:
        """Print a remark to the person, on stderr."""
        sys.stderr.write(escape_hidden(text) + "\n")

    def hint(self, text: str) -> None:
        """Print the next step for a person; omitted if the output is JSON."""
        if text and not self.as_json:
            self.say(text)

    def warn(self, warnings: "list[str] | tuple[str, ...]") -> None:
        """Print each warning once."""
        for warning in warnings:
            if warning not in self.said:
                self.said.add(warning)
                self.say(f"engram: note: {warning}")

    def confirm(self, question: str) -> bool:
        """Ask a person to confirm; False if there is none."""
        return self.person and (self.ask(f"{question} [y/N]: ") or "").lower() in ("y", "yes")

    def prompt(self, text: str) -> None:
        """Print a question, or the key that answered it, on stderr without a newline."""
        sys.stderr.write(escape_hidden(text))
        sys.stderr.flush()

    def ask(self, question: str) -> str | None:
        """A person's typed reply to a question; None at the end of the input."""
        self.prompt(question)
        answer = sys.stdin.readline()
        return answer.strip() if answer else None


def perform(function: Callable[..., None], given: dict[str, Any]) -> None:
    """Run a verb with the values of its command line; errors become one line and an exit code."""
    home = given.pop("home")
    surface = Surface(as_json=given.pop("as_json"))
    with report_errors(surface):
        start_logging()
        surface.home = _home(home)
        function(surface, **given)
        sys.stdout.flush()


def _home(given: str | None) -> Path | None:
    """The given directory. An empty one comes from an unset variable and does not mean this directory."""
    if given is not None and not given.strip():
        raise InvalidInput("--home is empty; name a directory, or leave the option out to use the default store")
    return None if given is None else Path(given)


def exit_quietly() -> NoReturn:
    """Exit quietly after the reader of stdout has left.

    Otherwise Python would complain again when it flushes at exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(FAILED) from None


@contextmanager
def report_errors(surface: Surface) -> Iterator[None]:
    """Turn errors into a line on stderr and an exit code; with --json also into an object on stdout."""
    try:
        yield
    except BrokenPipeError:
        exit_quietly()
    except (EngramError, OSError) as error:
        from engram.gates.secrets.scan import redact

        told = redact(message_of(error))[0]
        sys.stderr.write(f"engram: {escape_hidden(told)}\n")
        surface.report_failure(told, code_of(error))
        raise SystemExit(code_of(error)) from None
    except UnicodeEncodeError as error:
        sys.stderr.write(f"engram: {half_character_error(error)}\n")
        surface.report_failure(str(half_character_error(error)), USAGE)
        raise SystemExit(USAGE) from None
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        told = f"Unexpected {type(error).__name__} inside Engram; set {DEBUG}=1 to see where, and please report it"
        sys.stderr.write(f"engram: {told}\n")
        surface.report_failure(told, FAILED)
        raise SystemExit(FAILED) from None


def code_of(error: BaseException) -> int:
    """The exit code of an error."""
    if isinstance(error, NotFound):
        return NOT_FOUND
    return USAGE if isinstance(error, InvalidInput) else FAILED


def message_of(error: EngramError | OSError) -> str:
    """An error as one line that a person can act on."""
    if isinstance(error, FileNotFoundError) and not error.filename and _is_directory_removed():
        return "the current directory does not exist any more; change to another one"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return str(error) or type(error).__doc__ or type(error).__name__


def _is_directory_removed() -> bool:
    """Whether the directory that this process runs in was removed."""
    try:
        Path.cwd()
    except OSError:
        return True
    return False


def text_or_stdin(text: str) -> str:
    """The text itself, or stdin when it is `-`."""
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"stdin is not UTF-8 (byte {error.start})") from None


_TERMINAL = Path("/dev/tty")


def reason_for_person(memory: Memory) -> str:
    """Why only a person may activate this memory; "" if anyone may, or if it is active already."""
    if memory.status in LIVE_STATUSES:
        return ""
    from engram.gates.instructions import injection_problem
    from engram.gates.trust import tier_3_reason

    held = tier_3_reason(memory)
    return f"{held}, which always needs a person" if held else injection_problem(memory)


def lowers_tier(memory: Memory, type_name: str) -> bool:
    """Whether another type would let an inactive memory skip review."""
    from engram.model.types import type_or_default

    return memory.status not in LIVE_STATUSES and type_or_default(type_name).tier < type_or_default(memory.type).tier


def require_person(memory: Memory, reason: str) -> bool:
    """If there is a reason, have the person at the controlling terminal type a code; refuse everything else.

    Returns whether a person has proven to be there; their decisions count as theirs, whatever stdin is.
    """
    if reason:
        prove_person([(memory, reason)])
    return bool(reason)


def refuse_unconfirmed(held: Sequence[tuple[Memory, str]], command: str) -> None:
    """Raise `Refused`, with the next step, if memories need a person and `--confirm` was not given."""
    if not held:
        return
    memory, reason = held[0]
    ids = " ".join(memory.id for memory, _ in held)
    others = f" (and {len(held) - 1} more)" if len(held) > 1 else ""
    raise Refused(
        f"{memory.id} needs a person: {reason}{others}. Nothing was changed; at a terminal, `{command} {ids} --confirm` "
        "asks for a typed code"
    )


def prove_person(held: Sequence[tuple[Memory, str]]) -> None:
    """Show these memories at the controlling terminal, with why each needs a person, and have a code typed there.

    A program can write to its own stdin, but does not control the terminal that started it.
    """
    import secrets

    first, reason = held[0]
    try:
        # Open separately for reading and writing, because a terminal is not seekable.
        with _TERMINAL.open(encoding="utf-8") as heard, _TERMINAL.open("w", encoding="utf-8") as told:
            if not os.isatty(heard.fileno()):
                raise OSError
            code = f"{secrets.randbelow(9000) + 1000}"
            for memory, why in held:
                told.write(f"{memory.id} needs a person: {escape_hidden(why)}.\n  {one_line(memory.statement)}\n")
            told.write(f"Type {code}: ")
            told.flush()
            answer = heard.readline().strip()
    except OSError:
        raise Refused(f"{first.id} needs a person: {reason}; run this at a terminal") from None
    if answer != code:
        raise Refused(_wrong_code([memory for memory, _ in held]))


def _wrong_code(memories: Sequence[Memory]) -> str:
    waiting = [memory.id for memory in memories if memory.status == "candidate"]
    if not waiting:
        return "Wrong code. Nothing was changed."
    return f"Wrong code. {', '.join(waiting)} still {'waits' if len(waiting) == 1 else 'wait'}; nothing was changed."
