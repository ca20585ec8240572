"""Secrets named by a word: after "password is", before "is the password", next to it in a table, on the next line.

One pass over the words of `secret_words` checks the surroundings of each by bounded rules, so the work grows with the
text.
"""

import re
from collections.abc import Iterable, Iterator

from engram.gates.secrets.forms import (
    Likeness,
    Secret,
    alternatives,
    entropy,
    is_ordinary,
    is_passphrase,
    is_random,
    is_said,
    likeness,
    trim_value,
    words,
)
from engram.model.lazy import dataclass, lazy_pattern

__all__ = ["PUBLIC_PREFIXES", "NamedWord", "find_named_values"]

_LONGEST_RANDOM = 512
_MIN_RANDOM_CHARS = 16
_LONG_VALUE = 64
_LONGEST_OWNER = 18
_MOST_JOINED = 2
"""Maximum hyphens in the name of a thing."""
_RANDOM_VALUE_DISTANCE = 48
"""Maximum characters between a word and a random string after it."""
_BEFORE = 80
"""Maximum characters between a word and a value before it."""
_MIN_ENTROPY = 3.0
_QUOTES = "\"'`“”„‟«»‹›「」『』‘’"
_OPEN = rf"[{_QUOTES}*_\\]{{0,4}}"
_VALUE = rf"(?P<secret>[^\s{_QUOTES},;]{{1,512}})"
_SIGNS = r":=|=>|==|=|:|：|->|→|⇒"
_REST = re.compile(
    r"(?:(?<=[ -~])[A-Za-z0-9_.-]{0,30}|[À-ɏа-яё]{0,6})(?:\[[^\]\n]{0,20}\])?[\"'`*_\\”»\])]{0,4}(?:\s?\([^()\n]{0,40}\))?"
)
_ASIDE = re.compile(
    r"(?:[^.!?;:=\n(|]{0,40}\([^()\n]{0,120}\)|,[^.!?;:=\n|]{1,80}?(?=:|, (?:is|ist|est|es|é|è|to|är|er)\b))"
)
"""An insertion before the value: "the passphrase (the blue disk, do not lose it): …"."""
_ASKED = re.compile(r"[^.?!\n:=]{0,40}\?\s{1,2}(?:it['’]?s|it is|es ist|c['’]est|es|è|é|это)\s", re.IGNORECASE)
_SIGNED = re.compile(
    rf"\s{{0,4}}(?:(?P<sign>{_SIGNS})[*_]{{0,3}}\s{{0,4}}(?:[|>][+-]?\s{{1,12}})?|(?P<unspaced>は、|[是为為は는은が])\s?|[—–-]{{1,2}}\s)"
)
_ENGLISH = re.compile(
    r"(?:pass(?:[ -]?(?:word|code|phrase)|wd|w|wrd)?|pwd?|pswd|psw|secrets?|tokens?|cred\w*|keys?)\Z", re.IGNORECASE
)
_SIGNED_ASIDE = re.compile(r"\s{0,2}(?:[:=]|,? ?(?:is|ist|est|es|é|è|to|är|er)\b:?)\s{0,3}")
_POSSESSIVE = re.compile(r"s?['’]s\s{1,3}")
_WORD = re.compile(r"[ \t]{1,3}(\S{1,40})")
_GIVEN = re.compile(rf"\s{{0,4}}(?:[bBrRuU]{{1,2}}(?=[\"']))?{_OPEN}(?:(?<=[«„])\s)?{_VALUE}")
_MOST_BETWEEN = 9
"""Maximum words between the name and the sign that assigns its value."""
_TO = re.compile(r" (?:back )?(?:to|auf|in|en|a|para)\b:?")
_ABOUT = frozenset(words("about"))
_SOFTLY_ABOUT = frozenset(words("softly about"))
_COPULAS = frozenset(words("copulas"))
_DOUBTFUL = frozenset(words("doubtful"))
_PLAINLY = frozenset(words("plainly"))
_TURNED = frozenset(words("turned"))
_FILLERS = frozenset(words("fillers"))
_SAYS_OF = frozenset(words("says of"))
_ONLY_USED = frozenset(words("says when used"))
_USES = frozenset(words("uses"))
_WORD_ENDINGS = words("word endings")
_SAYING = ("ed", "ing", "ly", "en", "t")
_FUNCTION = frozenset(words("function words"))


@dataclass(slots=True)
class GivenValue:
    """A value, its start, and what introduced it."""

    value: str
    start: int
    lead: str = ""
    signed: bool = False
    unspaced: bool = False
    copula: str = ""


_ADJACENT = re.compile(
    rf"(?P<tail>\w{{0,12}})[\"'`*_\\)\]]{{0,3}}(?P<gap>[ \t]{{1,3}}|[ \t]{{0,3}}[.:?]?[ \t]{{0,3}}(?:\r?\n[ \t>*#|-]{{0,6}}){{1,2}}|[.!?][ \t]{{1,2}})"
    rf"(?P<quote>[{_QUOTES}]{{0,2}}){_VALUE}",
)
_UNSPACED = re.compile(rf"[{_QUOTES} ]{{0,2}}(?P<secret>[!-~]{{5,64}})")
_SOON = re.compile(r"(?<= )(?P<secret>[^\s,;]{4,64})")
_OTHER_ONE = re.compile(
    rf"[{_QUOTES}]{{0,2}}[,;.]?\s{{1,2}}(?:(?:and|but)\s)?(?:(?:the|my|our)\s)?(?:new|old|other|current|previous)\sone(?:['’]s|:|\s(?:is|was))"
    rf"\s(?:now\s)?{_OPEN}{_VALUE}",
    re.IGNORECASE,
)
_SOON_ENOUGH = 70
_SENTENCE_END = re.compile(r"[.!?;:|=<>]\s?")
_HAS_BOTH = re.compile(r"\A(?=[\W\d_]*+[^\W\d_])(?=\D*+\d)")
_CLAUSES = frozenset(["that", "which", "must", "should", "needs", "must,", "can", "may", "will"])
_SIGN_WORDS = frozenset(("=", ":", "->", "=>", "→", ":=", "=="))
_ELEMENT = re.compile(
    r"[\w:.-]{0,30}(?:\s[^<>\n]{0,200})?>\s{0,4}(?:<!\[CDATA\[)?(?P<secret>[^<>\s\]]{1,256})(?=\]\]>|\s{0,4}</)"
)
_PAIRED = lazy_pattern(
    rf"[\w.-]{{0,30}}[{_QUOTES}\\]{{0,3}}(?:\s{{0,4}}[,;>]?\s{{0,40}}[{_QUOTES}\\]{{0,2}}-?(?:value|val|default|content|string|data|secret|text|v)\b"
    rf"[{_QUOTES}\\]{{0,3}}\s{{0,4}}[:=]\s{{0,4}}|</[\w:]{{1,20}}>\s{{0,20}}<(?:string|value|data|val)[^<>]{{0,60}}>){_OPEN}(?P<secret>[^\s{_QUOTES},;<>}}\\]{{1,256}})",
    re.IGNORECASE,
)
_NAMED_BY = re.compile(
    rf"(?:\b(?:name|key|field|label|id|property|variable|var|env|header|param|parameter|title|setting|attribute|k)[{_QUOTES}\\]{{0,3}}"
    rf"\s{{0,4}}[:=]\s{{0,4}}[{_QUOTES}\\]{{0,3}}|<(?:key|name|field|option)>)[\w. -]{{0,40}}\Z",
    re.IGNORECASE,
)
_ARGUMENT = re.compile(r"\w{0,30}[\"'`]\s{0,4},\s{0,4}[bru]?[\"'`](?P<secret>[^\s\"'`]{4,128})[\"'`]\s{0,4}[,)]")
"""The value if the name is an argument of a call: `define('DB_PASSWORD', …)`."""
_SETS = re.compile(
    r"(?:(?P<sure>define|(?:set|put)_?env|set_?default|set_?property|set_?var)|set|put|add|update)\s{0,2}\(\s{0,8}[\"'`][\w.-]{0,40}\Z",
    re.IGNORECASE,
)
_IN_TAG = re.compile(r"<[\w:.-]{0,40}\Z")
_SETTING = re.compile(r"(?i)\b(?:set|chang|reset|updat|rotat|switch|mak|choos)\w{0,4}\b[^.\n]{0,40}\Z")
_OWNERS = words("key owners")
_UNOWNED = words("unowned")
_FOR = re.compile(
    r"\s?,?\s?(?:for|of|to|on|from|in|at|für|fürs|zum|zur|von|vom|des|im|am|pour|de|du|des|d['’]|sur|para|del|do|da|dos|per|della|dell['’]|di|su|voor|van|op"
    r"|för|till|til|på|for|dla|do|k|na|pro|od|для|от|к|на|untuk|cho|için)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_FOR_SOMETHING = re.compile(
    rf"\w{{0,8}}(?:{_FOR.pattern[:-2]}) (?:\S+ )*(?!(?:the|my|our|this|der|den|dem|die|das|le|la|el|o|a|für|for|of|to|on|at|in|user|account|host|id|ticket|issue|version|release)\b)[^\W\d_]{{3,20}} ",
    re.IGNORECASE,
)
_TOKEN = re.compile(rf"[A-Za-z0-9+/_=-]{{{_MIN_RANDOM_CHARS},{_LONGEST_RANDOM}}}")
_NAMES_A_DIGEST = re.compile(
    r"(?i)(?:commit|sha\d*|hash|digest|checksum|md5|etag|uuid|guid|revision|rev|id|build|fingerprint|image|sha256:|integrity|nonce|trace|span)\W{0,3}$"
)
PUBLIC_PREFIXES = (
    "MIGfMA0GCSq",
    "MIIBIjANBgkq",
    "MIICIjANBgkq",
    "MFkwEwYHKoZI",
    "MCowBQYDK2Vw",
    "AAAAB3Nza",
    "AAAAC3Nza",
    "AAAAE2Vj",
    "ssh-rsa",
    "ssh-ed25519",
    "pk_live_",
    "pk_test_",
)
"""Prefixes of public keys."""
_TRIMMED = ".,;:!?)]}>。，、；！？*_|\\"
_ENDS_CLAUSE = re.compile(
    r"[\"'`“”»)\]}*_\\]{0,3}(?:\s{0,3}\Z|\s{0,2}\n|[.!?,;)&|<\]}]|\s{1,3}(?:and|but|und|et|y|e|i|en|och|on|in|for|für|auf|pour|para|//|#|\()|\s{1,3}\S{1,30}\s?[:=])"
)
_FIRST_WORD = re.compile(r"[ _-]?([^\W\d_]{2,20})")
_WORDS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"[A-Z]?[a-zß-ÿ]+")
_NOT_LIKE = re.compile(r"(?i)(?:such as|like|e\.?g\.?|for example|z\.?\s?b\.?|par exemple|example)\s*[:,]?\s*$")


def find_named_values(
    text: str, lowered: str, found: Iterable[tuple[re.Match[str], str]], *, nearby: bool = True
) -> Iterator[Secret]:
    """The values of the words of `secretnames.txt` found.

    `nearby=False`, for names and paths, accepts only assignments by a sign.
    """
    words = [NamedWord(text, lowered, match, kind) for match, kind in found]
    words = [word for word in words if word.is_credential]
    limits = {"strict": len(text), "": len(text)}
    for word in reversed(words):
        # A token or key inside "the passphrase of my ssh key is …" does not end the clause about the passphrase.
        word.limit = limits["strict" if word.is_strict else ""]
        limits |= {"": word.start, "strict": word.start if word.is_strict else limits["strict"]}
    passed = before = 0
    for word in words:
        if word.start < passed:
            continue
        # Between two such words there may be no room for a value.
        given = word.assigned_value(nearby) if word.limit - word.end > 3 else None
        if given is None and nearby:
            given = (
                (word.limit - word.end > 3 and word.adjacent_value())
                or word.preceding_value(before)
                or word.later_value()
            )
        if given is not None:
            yield given
            yield from word.second_value(given.end) if nearby and word.is_strict else ()
        elif nearby:
            yield from _find_random_values(text, word.end, min(word.limit, word.end + _RANDOM_VALUE_DISTANCE))
        passed, before = max(passed, word.passed), word.end


class NamedWord:
    """A word that names a secret, its position and its surroundings."""

    __slots__ = ("_said", "end", "kind", "limit", "lowered", "passed", "start", "text")

    def __init__(self, text: str, lowered: str, match: re.Match[str], kind: str) -> None:
        self.text, self.lowered = text, lowered
        self.start, self.end = match.start(), match.end()
        self.kind = kind
        self._said: tuple[str, ...] | None = None
        self.limit = len(text)
        """The start of the next such word."""
        self.passed = 0
        """The end of a long value that was already checked; words inside it are part of it."""

    @property
    def is_credential(self) -> bool:
        """Whether an ambiguous word, such as key or token, means a credential here."""
        if self.text.startswith("[redacted:", self.start - 10) and self.start >= 10:
            return False
        if self.kind == "strict":
            return True
        owner = self.lowered[max(0, self.start - _LONGEST_OWNER) : self.start]
        owner = owner[:-1] if owner[-1:] in (" ", "_", "-") else owner
        return not owner.endswith(_UNOWNED) and (self.kind != "key" or owner.endswith(_OWNERS))

    @property
    def is_strict(self) -> bool:
        """Whether a plain word may be the value."""
        return self.kind == "strict"

    @property
    def is_only_mentioned(self) -> bool:
        """Whether the next word, or the rest of the name, shows that the secret is mentioned but not given."""
        return self._is_followed_by(_ABOUT)

    @property
    def is_probably_mentioned(self) -> bool:
        """Like `is_only_mentioned`, unless what follows can only be a value."""
        return self._is_followed_by(_SOFTLY_ABOUT)

    def _is_followed_by(self, words: frozenset[str]) -> bool:
        if self._said is None:
            self._said = self._next_words()
        return not words.isdisjoint(self._said)

    def _next_words(self) -> tuple[str, ...]:
        """The next word, and its first part if it is written LikeThis."""
        following = _FIRST_WORD.match(self.text, self.end)
        if following is None:
            return ()
        first = _CAMEL.match(following[1])
        return following[1].casefold(), first[0].casefold() if first else ""

    def assigned_value(self, nearby: bool) -> Secret | None:
        """The value assigned to the name by a sign or a word such as "is"."""
        if found := self._find_structured(self.text[max(0, self.start - 60) : self.start]):
            return found
        for given in self._find_values(nearby):
            if len(given.value) > _LONG_VALUE:
                self.passed = given.start + len(given.value)
            if found := self._judge_value(given):
                return found
        return None

    def _find_structured(self, before: str) -> Secret | None:
        """The value in markup, in a pair of fields, or in a call whose arguments are name and value."""
        enough = Likeness.WORD if self.is_strict else Likeness.LIKELY
        in_tag = "<" in before and self.text.find(">", self.end, self.end + 300) >= 0 and _IN_TAG.search(before)
        if in_tag and (found := self._take_value(_ELEMENT.match(self.text, self.end), enough)):
            return found
        paired = _PAIRED.match(self.text, self.end)
        if paired and _NAMED_BY.search(before) and (found := self._take_value(paired, enough)):
            return found
        argument = _ARGUMENT.match(self.text, self.end)
        sets = _SETS.search(before) if argument else None
        if sets is None or self.is_only_mentioned or self.is_probably_mentioned:
            return None
        # A value set outside the environment may be a message or a rule of a form.
        return self._take_value(argument, enough if sets["sure"] else Likeness.LIKELY, trimming="")

    def _take_value(self, given: re.Match[str] | None, enough: Likeness, trimming: str = _TRIMMED) -> Secret | None:
        if given is None:
            return None
        value = given["secret"].rstrip(trimming)
        taken = likeness(value) >= enough or self._takes_passphrase(value)
        return self._secret(given.start("secret"), value) if taken else None

    def _takes_passphrase(self, value: str) -> bool:
        """Whether the value is a passphrase and the name can have one: a setting such as JWT_SECRET can, most tokens cannot."""
        if not is_passphrase(value):
            return False
        if self.is_strict:
            return True
        joined = self.text[max(0, self.start - 1) : self.start] == "_"
        # An instruction can take the place of a value: rotate-every-ninety-days.
        is_sentence = not _FUNCTION.isdisjoint(_WORDS.findall(value.casefold()))
        return (
            joined
            and not is_sentence
            and (self.text[self.start : self.end].isupper() or value.count("-") > _MOST_JOINED)
        )

    def _find_values(self, nearby: bool) -> Iterator[GivenValue]:
        """The value that a sign gives the name directly, or the values soon after a word such as "is"."""
        if nearby and (possessive := _POSSESSIVE.match(self.text, self.end)):
            yield from self._value(self._skip_fillers(possessive.end() - 1), "", copula="is")
            return
        rest = _REST.match(self.text, self.end)
        place = rest.end() if rest else self.end
        if signed := _SIGNED.match(self.text, place):
            if nearby or signed["sign"]:
                is_sign, unspaced = bool(signed["sign"]), bool(signed["unspaced"])
                yield from self._value(signed.end(), "", signed=is_sign, unspaced=unspaced)
        elif nearby:
            yield from self._find_later_values(place)
            yield from self._find_values_after_aside()

    def _find_later_values(self, begin: int) -> Iterator[GivenValue]:
        place = begin
        for _ in range(_MOST_BETWEEN):
            word = _WORD.match(self.text, place, self.limit)
            if word is None or (word.end() == self.limit and not self.text[self.limit - 1].isspace()):
                return
            token, lead = word[1].casefold(), self.text[begin:place]
            plain = token.rstrip(":,")
            if token in _SIGN_WORDS or (token[-1] in ":=" and plain not in _COPULAS):
                yield from self._value(word.end(), self.text[begin : word.end()].rstrip(" :=->→"), signed=True)
                return
            if plain in _TURNED and (to := _TO.match(self.text, word.end())):
                yield from self._value(to.end(), lead, copula="is")
            elif plain in _COPULAS:
                yield from self._value(self._skip_fillers(word.end()), lead, copula=plain)
            elif token[-1] in ".;!?" or any(sign in token for sign in "=|<>{}"):
                return
            place = word.end()

    def _find_values_after_aside(self) -> Iterator[GivenValue]:
        """The value after an insertion or a question. At that distance it must look like a credential."""
        ahead = self.text[self.end : self.end + 45]
        aside = _ASIDE.match(self.text, self.end) if "(" in ahead or ahead[:1] == "," else None
        asked = _ASKED.match(self.text, self.end) if "?" in ahead else None
        signed = _SIGNED_ASIDE.match(self.text, aside.end()) if aside else None
        place = signed.end() if signed else asked.end() if asked else None
        for given in self._value(place, "", copula="is") if place is not None and place < self.limit else ():
            if likeness(given.value) >= Likeness.LIKELY or is_passphrase(given.value) or self._is_spoken(given):
                yield given

    def _skip_fillers(self, place: int) -> int:
        for _ in range(3):
            word = _WORD.match(self.text, place)
            if word is None or word[1].casefold().strip(":,") not in _FILLERS:
                break
            place = word.end()
        return place

    def _value(
        self, place: int, lead: str, *, signed: bool = False, unspaced: bool = False, copula: str = ""
    ) -> Iterator[GivenValue]:
        match = _GIVEN.match(self.text, place)
        if match is not None:
            value = trim_value(match["secret"], self.text, match.end("secret"))
            yield GivenValue(value, match.start("secret"), lead, signed, unspaced, copula)

    def _judge_value(self, given: GivenValue) -> Secret | None:
        if _NOT_LIKE.search(given.lead):
            return None
        if self._takes(given):
            return self._secret(given.start, given.value)
        return self._phrase(given)

    def _takes(self, given: GivenValue) -> bool:
        like = likeness(given.value)
        if self.is_only_mentioned:
            return False
        plainly = given.signed or (self.is_strict and given.copula and given.copula not in _DOUBTFUL)
        if plainly and self._takes_passphrase(given.value):
            return True
        if like == Likeness.NOT:
            return False
        if self.is_probably_mentioned:
            return like == Likeness.SURE
        if given.copula in _DOUBTFUL and not self._is_set(given.copula):
            return like == Likeness.SURE
        if given.lead and not _FOR.fullmatch(given.lead):
            return self._takes_later(given, like)
        return self._takes_direct(given, like)

    def _takes_later(self, given: GivenValue, like: Likeness) -> bool:
        """Whether a value counts if other words precede it: "the password that Ana chose is …"."""
        words = given.lead.casefold().split()
        if given.signed and self.is_strict and like == Likeness.WORD and len(words) <= 2:
            return _HAS_BOTH.search(given.value) is not None
        if self.is_strict and like == Likeness.WORD:
            # Names of hosts and releases are also joined by signs, in lower case.
            return _HAS_BOTH.search(given.value) is not None and any(char.isupper() for char in given.value)
        return like >= (Likeness.LIKELY if self.is_strict else Likeness.SURE) and words[0] not in _CLAUSES

    def _is_set(self, copula: str) -> bool:
        foreign = _ENGLISH.match(self.text[self.start : self.end]) is None
        return foreign or (
            copula == "to" and _SETTING.search(self.text[max(0, self.start - 60) : self.start]) is not None
        )

    def _takes_direct(self, given: GivenValue, like: Likeness) -> bool:
        """Whether the text after "password is" or "token=" is the secret itself and not a description."""
        value, signed = given.value, given.signed or given.unspaced
        if given.unspaced and not value[0].isascii():
            return False
        if value.isalpha() and (value.islower() or value.istitle()):
            titled = value.istitle() and len(value) > 5 and given.lead and given.copula not in _DOUBTFUL
            if not self.is_strict or len(value) < 5 or not (signed or titled or given.copula in _PLAINLY):
                return False
            ends = _ENDS_CLAUSE.match(self.text, given.start + len(value)) is not None
            return ends and (signed or not value.casefold().endswith(_WORD_ENDINGS))
        if self.is_strict:
            return like > Likeness.WORD or signed or not given.lead or _HAS_BOTH.search(value) is not None
        if like == Likeness.WORD:
            # "token: 12345678" is a count more often than a credential; names are joined by signs.
            plain = value.replace("-", "").replace("_", "")
            mixed = plain.isalpha() and not plain.islower()
            return mixed and len(value) >= 12 and entropy(value) >= _MIN_ENTROPY
        return len(value) >= 8 and any(char.isdigit() for char in value)

    def _phrase(self, given: GivenValue) -> Secret | None:
        """A passphrase of several words, in quotes or to the end of its line."""
        if not self.is_strict or self.is_only_mentioned or not (given.signed or given.copula):
            return None
        words = _PHRASE.match(self.text, given.start)
        if words is None:
            return None
        quoted = given.start > 0 and self.text[given.start - 1] in _QUOTES
        parts = words[0].split()
        if len(parts) < (3 if quoted else 4) or 3 * sum(is_said(part) for part in parts) > len(parts):
            return None
        taken = quoted or self._is_phrase or self._is_spoken(given)
        return Secret("password", given.start, words.end()) if taken else None

    def _is_spoken(self, given: GivenValue) -> bool:
        """Whether the following words do not make a sentence: "the password is gravel tulip monsoon pickle"."""
        words = _PHRASE.match(self.text, given.start)
        if (
            words is None
            or not given.copula
            or given.copula in _DOUBTFUL
            or _ENDS_CLAUSE.match(self.text, words.end()) is None
        ):
            return False
        parts = words[0].split()
        return 4 <= len(parts) <= 8 and not any(
            part in _FUNCTION or is_said(part) or part.endswith(_SAYING) or not part.islower() for part in parts
        )

    @property
    def _is_phrase(self) -> bool:
        return "phrase" in self.lowered[self.start : self.end]

    def adjacent_value(self) -> Secret | None:
        """The value directly after the word, or alone on the next line."""
        if not self.text[self.start : self.end].isascii() and (given := _UNSPACED.match(self.text, self.end)):
            value = given["secret"].rstrip(_TRIMMED)
            if self.is_strict and likeness(value) >= Likeness.LIKELY:
                return self._secret(given.start("secret"), value)
        given = _ADJACENT.match(self.text, self.end)
        if given is None or self.is_only_mentioned or (given["tail"] and not self.is_strict):
            return None
        value, start = given["secret"].rstrip(_TRIMMED), given.start("secret")
        like = likeness(value)
        if "\n" in given["gap"]:
            alone = re.match(
                rf"[{_QUOTES}*_|]{{0,3}}\s{{0,3}}(?:\n|\Z|\|)", self.text[start + len(value) : start + len(value) + 8]
            )
            enough = Likeness.LIKELY if self.is_strict else Likeness.SURE
            return self._secret(start, value) if alone and like >= enough else None
        enough = (
            Likeness.LIKELY
            if self.is_strict and given["gap"][0] not in ".!?" and not self.is_probably_mentioned
            else Likeness.SURE
        )
        if like < enough or (not self.is_strict and len(value) < 12):
            return self._find_quoted(given, value, like)
        return self._secret(start, value)

    def _find_quoted(self, given: re.Match[str], value: str, like: Likeness) -> Secret | None:
        """The value in SQL and the like: PASSWORD 'swordfish'."""
        shouted = self.text[self.start : self.end].isupper()
        if self.is_strict and shouted and given["quote"] and like == Likeness.WORD and len(value) > 4:
            return self._secret(given.start("secret"), value)
        return None

    def later_value(self) -> Secret | None:
        """A value a few words later in the sentence that is certainly one."""
        if not self.is_strict or self.limit - self.end < 5 or self.is_only_mentioned:
            return None
        # Word for word, up to the first that may be it.
        asked = _ASKED.match(self.text, self.end) if "?" in self.text[self.end : self.end + 45] else None
        begin = asked.end() - 1 if asked else self.end
        for given in _SOON.finditer(self.text, begin, min(self.limit, begin + _SOON_ENOUGH)):
            value, start = given["secret"].strip(_QUOTES + "*_(").rstrip(_TRIMMED), given.start("secret")
            between = self.text[begin:start]
            if _SENTENCE_END.search(between) or "\n" in between:
                return None
            like = likeness(value)
            if like == Likeness.SURE and not _NOT_LIKE.search(between) and len(value) >= 6:
                return self._secret(start + given["secret"].find(value), value)
            if (
                like == Likeness.LIKELY
                and _FOR_SOMETHING.fullmatch(between)
                and _ENDS_CLAUSE.match(self.text, start + len(value))
            ):
                return self._secret(start + given["secret"].find(value), value)
        return None

    def second_value(self, end: int) -> Iterator[Secret]:
        """The second of two values: "the old password was …, the new one is …"."""
        if given := _OTHER_ONE.match(self.text, end):
            value = trim_value(given["secret"], self.text, given.end("secret"))
            enough = Likeness.WORD if value.istitle() else Likeness.LIKELY
            found = self._secret(given.start("secret"), value)
            if found and (likeness(value) >= enough or is_passphrase(value)):
                yield found

    def preceding_value(self, previous: int) -> Secret | None:
        """The value in "X is the password" and "use X as the password", after the previous such word."""
        begin = max(previous, self.start - _BEFORE)
        if self.start - begin < 7 or self.kind == "key" or self.is_only_mentioned or self.is_probably_mentioned:
            return None
        if not _SAYS.search(self.lowered, begin, self.start):
            return None
        words = list(re.finditer(r"\S+", self.text[begin : self.start]))
        for place in range(len(words) - 1, max(0, len(words) - 6), -1):
            if words[place][0].casefold().strip(",") in _SAYS_OF and (
                found := self._judge_preceding(words, place, begin)
            ):
                return found
            if words[place][0][-1] in ".!?;:":
                break
        return None

    def _judge_preceding(self, words: list[re.Match[str]], place: int, begin: int) -> Secret | None:
        raw = words[place - 1]
        value = raw[0].strip(_QUOTES + "*_(").rstrip(_TRIMMED + _QUOTES)
        start = begin + raw.start() + raw[0].find(value) if value else 0
        like, verb = likeness(value), words[place - 2][0].casefold().strip(_QUOTES) if place >= 2 else ""
        used = verb in _USES
        if words[place][0].casefold() in _ONLY_USED and not used:
            return None
        if like >= (Likeness.LIKELY if self.is_strict else Likeness.SURE):
            return self._secret(start, value)
        ends = _ENDS_CLAUSE.match(self.text, self.end) is not None
        plain = self.is_strict and used and ends and like == Likeness.WORD and len(value) >= 5 and value.islower()
        quoted = self.is_strict and raw[0][:1] in _QUOTES and like == Likeness.WORD and len(value) >= 5 and ends
        return self._secret(start, value) if plain or quoted else None

    def _secret(self, start: int, value: str) -> Secret | None:
        if value.startswith(PUBLIC_PREFIXES):
            return None
        return Secret("password" if self.is_strict else "token", start, start + len(value))


_PHRASE = re.compile(r"[a-zà-ÿ]{3,12}(?:[ -][a-zà-ÿ]{3,12}){2,11}(?=[^\w]|\Z)", re.IGNORECASE)
_SAYS = re.compile(rf"\s(?:{alternatives('says of')})\s")


def _find_random_values(text: str, start: int, end: int) -> Iterator[Secret]:
    position = start
    # A word that begins before the end shows its minimum length a little after it.
    while position < end and (near := _TOKEN.search(text, position, end + _MIN_RANDOM_CHARS)):
        token = _TOKEN.match(text, near.start()) or near
        position = token.end()
        before = text[max(0, token.start() - 16) : token.start()]
        value = token[0]
        if (
            token.start() >= end
            or (token.start() == start and (value[0] not in "-_" or "-" in value[1:]))
            or "=" in value.strip("=")
            or value.startswith(PUBLIC_PREFIXES)
            or _NAMES_A_DIGEST.search(before)
        ):
            continue
        if is_random(value) and not is_ordinary(value):
            yield Secret("high-entropy-token", token.start(), token.end())
