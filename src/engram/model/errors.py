"""Every error Engram raises, as one small tree.

    EngramError
    ├── InvalidInput          a value the caller gave cannot be used        (exit 2)
    │   └── UnreadableData    a file or text that others wrote cannot be parsed
    ├── NotFound              no memory, session or event has that name     (exit 3)
    ├── Refused               a rule forbids it; nothing was written        (exit 1)
    │   ├── SecretRefused     the text contains a key, token or password
    │   ├── KeyConflict       the caller's key of an event already names another one
    │   ├── NotTrusted        the store or source is not trusted yet
    │   └── ChangedMeanwhile  a memory says something else than what was shown
    ├── StoreError            the store could not do it; nothing half-written
    │   ├── StoreBusy         another writer held the lock for too long
    │   ├── StoreClosed       the memory is closed
    │   ├── StoreReadOnly     the directory, disk or server does not accept writes
    │   ├── StoreUnreachable  the server cannot be reached, or went away
    │   ├── StoreDenied       the server refuses the user, the password or the privilege
    │   ├── StoreCorrupt      a file of the store cannot be read
    │   └── UnknownVersion    written by a newer Engram
    ├── EmbedderError         an embedding provider is missing or failed
    └── ModelError            the language model could not help; the work was done without it
        ├── ModelUnavailable  no answer: not reached, too slow, too busy, or it turns the caller away
        ├── ModelNonsense     an answer that cannot be used: malformed, refused, cut off
        └── SpendLimit        the daily token limit is reached

Every message says what happened, to which file or id, and what to do next.
"""


class EngramError(Exception):
    """Base of every error Engram raises on purpose."""


class InvalidInput(EngramError):
    """A value the caller gave cannot be used."""


class UnreadableData(InvalidInput):
    """A file or text that others wrote cannot be parsed."""

    def __init__(self, reason: str, *, where: str = "", line: int | None = None, column: int | None = None) -> None:
        place = ":".join(str(part) for part in (where, line, column) if part is not None) if where else ""
        super().__init__(f"{place}: {reason}" if place else reason)
        self.reason = reason
        """What is wrong, without the place."""
        self.where = where
        """The file, or "" for text without one."""
        self.line = line
        """The line in it, where that is known."""


class NotFound(EngramError):
    """No memory, session or event has that id, name or alias."""


class Refused(EngramError):
    """A rule forbids it; nothing was written."""


class SecretRefused(Refused):
    """The text contains what looks like a key, token, password or connection string."""


class KeyConflict(Refused):
    """An event with this key exists and has other content."""


class NotTrusted(Refused):
    """A team store or source that its owner has not trusted yet."""


class ChangedMeanwhile(Refused):
    """A memory was changed after it was shown to whoever decides about it; nothing was decided."""


class StoreError(EngramError):
    """The store failed; nothing is half-written."""


class StoreBusy(StoreError):
    """Another writer held the lock longer than the deadline."""


class StoreClosed(StoreError):
    """The memory was closed before this call, or while it waited; open it again."""


class StoreReadOnly(StoreError):
    """The directory, disk or server does not accept writes."""


class StoreUnreachable(StoreError):
    """The server cannot be reached, or went away."""


class StoreDenied(StoreError):
    """The server refuses the user, the password or the privilege."""


class StoreCorrupt(StoreError):
    """A file of the store cannot be read."""


class UnknownVersion(StoreError):
    """The store or record was written by a newer Engram."""


class EmbedderError(EngramError):
    """An embedding provider is missing, failed or answered nonsense."""


class ModelError(EngramError):
    """The language model could not help; no data is lost."""


class ModelUnavailable(ModelError):
    """The model gave no answer: not reached, too slow, too busy, or it turned the caller away."""


class ModelNonsense(ModelError):
    """The model's answer cannot be used: malformed, of another shape, refused or cut off."""


class SpendLimit(ModelError):
    """The daily token limit is reached; the model is used again tomorrow."""
