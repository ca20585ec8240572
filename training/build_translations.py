"""Writes the tables of src/engram/text/data/translations from those in training/translations.

    python training/build_translations.py

Each row of a source has an English word and its translations. The table of a language maps each translation to the
English word. The words of function_words.txt also go to signs.txt, which is used to detect the language of a sentence.
The sources were written by hand for this project, not copied from a dictionary. Cognates, which differ from English
only in spelling, are added (cognates.py).
"""

from collections.abc import Iterator
from pathlib import Path

from cognates import spell_cognates

from engram.embedding.word_pieces import DATA
from engram.text.translation import LANGUAGES, dictionary, fold
from engram.text.words import read_table

SOURCES = Path(__file__).parent / "translations"
OUTPUT = Path(__file__).parent.parent / "src" / "engram" / "text" / "data" / "translations"
FUNCTION_WORDS, SHARED_WORDS, COGNATES = "function_words.txt", "shared_words.txt", "cognates.txt"
MIN_COGNATE_CHARS = 6


def read_rows(path: Path) -> Iterator[tuple[str, tuple[list[str], ...]]]:
    """The English word and the translations of every row of a source."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        english, *columns = line.split("|")
        if len(columns) != len(LANGUAGES):
            raise SystemExit(f"{path.name}:{number}: {len(columns)} languages, not {len(LANGUAGES)}")
        yield english.strip(), tuple([normalize_key(word) for word in column.split()] for column in columns)


def normalize_key(written: str) -> str:
    """Normalise a word or phrase to lower-case words of letters separated by single blanks."""
    return " ".join("".join(char if char.isalpha() else " " for char in written.lower()).split())


def is_sign(word: str) -> bool:
    """Whether a function word identifies a language. The letter of "l'eau" or of an option does not."""
    return len(word) > 1 or word in "aeioyàèéêó"


def collect_meanings() -> tuple[dict[str, dict[str, str]], dict[str, set[str]]]:
    """Collect the English for every key, and the function words, by language. The first meaning counts; function words come first."""
    meanings: dict[str, dict[str, str]] = {language: {} for language in LANGUAGES}
    signs: dict[str, set[str]] = {language: set() for language in LANGUAGES}
    tables = (path for path in SOURCES.glob("*.txt") if path.name not in (SHARED_WORDS, COGNATES))
    for path in sorted(tables, key=lambda path: (path.name != FUNCTION_WORDS, path.name)):
        for english, columns in read_rows(path):
            for language, keys in zip(LANGUAGES, columns, strict=True):
                for key in keys:
                    meanings[language].setdefault(key, english)
                    if path.name == FUNCTION_WORDS and " " not in key and is_sign(key):
                        signs[language].add(key)
    return meanings, signs


def add_cognates(meanings: dict[str, dict[str, str]]) -> None:
    """Add each language's spelling of English words, unless that spelling already has a meaning."""
    table = list(read_rows(SOURCES / COGNATES))
    for at, language in enumerate(LANGUAGES):
        endings = [(english, columns[at]) for english, columns in table]
        for word in english_vocabulary():
            for spelled in spell_cognates(word, language, endings) if len(word) >= MIN_COGNATE_CHARS else ():
                if spelled != word:
                    meanings[language].setdefault(spelled, word)


def write_tables() -> None:
    """Write all tables."""
    OUTPUT.mkdir(exist_ok=True)
    meanings, signs = collect_meanings()
    for keys in meanings.values():
        for key, english in list(keys.items()):
            keys.setdefault(fold(key), english)
    add_cognates(meanings)
    for language, keys in meanings.items():
        lines = [f"{key}\t{english}\n" for key, english in sorted(keys.items())]
        (OUTPUT / f"{language}.txt").write_text("".join(lines), "utf-8")
        print(f"{language}: {len(lines)} keys, {sum(map(len, lines)) // 1024} kB")
    english_words = {
        word for table in ("stopwords.txt", "questionwords.txt") for row in read_table(table) for word in row
    }
    english_words = {word for word in english_words if is_sign(word)}
    shared = read_table(str(SOURCES / SHARED_WORDS))
    sign_rows = [
        f"shared {' '.join(sorted({word for row in shared for word in row}))}\n",
        f"en {' '.join(sorted(english_words))}\n",
    ]
    for language, words in signs.items():
        folded = {fold(word) for word in words}
        sign_rows.append(f"{language} {' '.join(sorted(words | (folded - english_words)))}\n")
    (OUTPUT / "signs.txt").write_text("".join(sign_rows), "utf-8")
    dictionary.cache_clear()
    found = [word for word in english_vocabulary() if any(dictionary(each).knows(word) for each in LANGUAGES)]
    (OUTPUT / "english.txt").write_text("".join(f"{word}\n" for word in sorted(found)), "utf-8")


def english_vocabulary() -> list[str]:
    """The words of the bundled embedder's vocabulary."""
    pieces = (DATA / "vocabulary.txt").read_text("utf-8").split()
    return [piece for piece in pieces if piece.isascii() and piece.isalpha()]


if __name__ == "__main__":
    write_tables()
