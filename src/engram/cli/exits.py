"""Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not found. One place maps errors to them."""

from engram.model.errors import EngramError, InvalidInput, NotFound

DONE, FAILED, USAGE, NOT_FOUND = 0, 1, 2, 3


def code_of(error: BaseException) -> int:
    """The exit code an error stands for."""
    if isinstance(error, NotFound):
        return NOT_FOUND
    return USAGE if isinstance(error, InvalidInput) else FAILED


def words_of(error: EngramError | OSError) -> str:
    """The error as one line a person can act on."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return str(error) or type(error).__doc__ or type(error).__name__
