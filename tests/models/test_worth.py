"""What the model of worth makes of conversations that nobody who wrote its training data has seen."""

from engram.capture.extraction.extractor import MIN_FORGET_PROBABILITY
from engram.models.worth import (
    CATEGORIES,
    DURATIONS,
    MOODS,
    OWNERS,
    PROPOSE_PROBABILITY,
    REVIEW_PROBABILITY,
    Judgement,
    judge,
)

KEPT = (
    "We switched the bakery's flour supplier to Mühle Hartmann last month.",
    "My daughter Ines is allergic to cashews.",
    "I work night shifts at the harbour, so please never schedule anything before noon.",
    "Our staging database lives on db-stage-02, port 5433.",
    "Tomas took over as head coach after Lena retired.",
    "I can't stand cilantro, leave it out of every recipe.",
    "The choir rehearses every Wednesday at 19:30 in the old fire station.",
    "we deploy only from the release branch, never from main",
    "I've been taking warfarin since my surgery in 2021.",
    "My new phone number is 0171 555 2290.",
    "Bettina is our accountant, she handles all the VAT filings.",
    "We decided to drop support for Windows 7.",
    "I moved to Utrecht in May and work from home now.",
    "The greenhouse must never go below 12 degrees, otherwise the orchids die.",
    "my brother's getting married on 14 June in Porto",
    "For invoices we always use the format YEAR-CLIENT-NUMBER.",
    "I'm vegetarian but I do eat fish.",
    "We no longer ship to Norway because of the customs fees.",
    "Actually the contract runs until 2028, not 2027.",
    "Kofi speaks Twi and French and works at the embassy in Accra.",
    "I promised Marta the translation by Friday the 9th.",
    "Our cat Pixel gets her thyroid tablet at eight every morning.",
    "please always answer me in short bullet points, long texts tire me",
    "the alarm code for the studio changed to the one with Oma's birthday",
    "My boss prefers phone calls to emails.",
    "I play the cello in an amateur quartet.",
)
SKIPPED = (
    "Hi there!",
    "Thanks, that's perfect.",
    "Can you make that a bit shorter?",
    "What's the capital of Mongolia?",
    "hmm ok",
    "Could you write me a poem about autumn?",
    "Sorry, I was on the phone.",
    "How do I undo the last commit in git?",
    "lol that's great",
    "If I won the lottery I'd buy a lighthouse in Brittany.",
    "Oh wonderful, another meeting, exactly what I needed.",
    "Imagine a dragon called Bertram who owns a bakery in Ghent and is allergic to flour.",
    "Now translate the second paragraph.",
    "I'm not sure I understand the third step.",
    "Let me check.",
    "one sec, the doorbell",
    "What would happen if we moved everything to Postgres?",
    "Suppose a train leaves Lyon at 9:15 and another leaves Paris at 9:40.",
    "ugh, what a day",
    "Does that include tax?",
    "Great, and the same for the second table please.",
    "never mind, found it",
    'It says "Segmentation fault (core dumped)" again.',
    "good night!",
    "You're a lifesaver.",
    "why does it do that",
)
SHARE = 0.8
"""Of each table, what must be judged right; the misses are reported."""


def one(sentence: str, role: str = "user") -> Judgement:
    return judge([(role, [sentence])])[0][0]


def test_most_facts_said_in_passing_are_kept_and_hardly_any_chatter() -> None:
    missed = [sentence for sentence in KEPT if one(sentence).worth < REVIEW_PROBABILITY]
    wrong = [sentence for sentence in SKIPPED if one(sentence).worth >= PROPOSE_PROBABILITY]
    assert len(missed) <= (1 - SHARE) * len(KEPT), missed
    assert len(wrong) <= 0.1 * len(SKIPPED), wrong


def test_what_the_assistant_says_is_rarely_worth_keeping() -> None:
    judged = judge(
        [("user", ["Tell me about Rome."]), ("assistant", ["Rome is the capital of Italy.", "Shall I say more?"])]
    )
    assert [each.worth < PROPOSE_PROBABILITY for each in judged[1]] == [True, True]


def test_a_sentence_is_judged_with_what_stands_before_it() -> None:
    told = "The butler is called Osric and hides the key under the third step."
    story = judge(
        [
            ("user", ["Write me a murder mystery.", "Make it a story set in 1924."]),
            ("assistant", ["Who did it?"]),
            ("user", [told]),
        ]
    )
    assert story[2][0].worth < one(told).worth


def test_labels_of_plain_cases() -> None:
    cases = {
        "I prefer tea over coffee.": ("category", "preference"),
        "Please forget my old address.": ("category", "forget"),
        "We no longer use Jenkins.": ("category", "end"),
        "We decided to go with the blue logo.": ("category", "decision"),
        "Never push to main without a review.": ("category", "constraint"),
        "I live in Antwerp.": ("owner", "user"),
        "My mother lives in Antwerp and hates flying.": ("owner", "person"),
        "Our API returns dates in UTC.": ("owner", "project"),
        "I was born in Kraków.": ("duration", "lasting"),
        "What time is it in Tokyo?": ("mood", "question"),
        "Please write a summary of this.": ("mood", "request"),
        "I work as a welder.": ("mood", "asserted"),
    }
    misses = {
        text: getattr(one(text), name) for text, (name, wanted) in cases.items() if getattr(one(text), name) != wanted
    }
    assert len(misses) <= (1 - SHARE) * len(cases) + 1, misses


def test_an_allergy_is_more_critical_than_a_taste() -> None:
    pairs = {
        "I'm allergic to penicillin.": "I like jazz.",
        "Peanuts could kill my son.": "My son collects stamps.",
        "I have epilepsy and must not drive.": "I have a blue bicycle.",
    }
    assert [text for text, other in pairs.items() if one(text).critical <= one(other).critical] == []


def test_every_judgement_is_within_its_labels_and_in_step_with_the_sentences() -> None:
    turns = [
        ("user", ["", "  ", "?!", "I live in Ghent."]),
        ("assistant", []),
        ("user", ["😀", "東京に住んでいます。", "Живу в Казани."]),
    ]
    judged = judge(turns)
    assert [len(turn) for turn in judged] == [4, 0, 3]
    for each in (one for turn in judged for one in turn):
        assert 0 <= each.worth <= 1
        assert 0 <= each.critical <= 1
        assert each.category in CATEGORIES
        assert each.owner in OWNERS
        assert each.duration in DURATIONS
        assert each.mood in MOODS


def test_nothing_said_is_nothing_judged() -> None:
    assert judge([]) == []
    assert judge([("user", [])]) == [[]]


def test_the_same_talk_is_judged_the_same() -> None:
    turns = [("user", list(KEPT[:6])), ("assistant", ["Noted."]), ("user", list(SKIPPED[:6]))]
    assert judge(turns) == judge(turns)


def test_a_very_long_sentence_is_read_only_at_its_beginning() -> None:
    start = "Our staging database lives on db-stage-02, port 5433, " * 40
    assert one(start + "and " * 200_000) == one(start + "and " * 100_000)


TO_FORGET = (
    "Please forget what I told you about the plumber in Wels.",
    "Forget everything I said about the scholarship.",
    "Delete what you know about my surgery.",
    "Erase what I told you about Marek from your memory.",
    "You can forget my old office in Bonn.",
)
TO_WORK_ON = (
    "Delete my old virtual machines.",
    "Remove everything about caching from the guide.",
    "Erase the second column.",
    "Drop the table with the invoices.",
    "Take the logo out of the footer.",
    "Can you remove the blank lines?",
    "Forget the colours, only the layout matters.",
)


def test_a_request_to_forget_is_told_from_a_request_to_delete_something() -> None:
    missed = [sentence for sentence in TO_FORGET if one(sentence).forgets < MIN_FORGET_PROBABILITY]
    assert len(missed) <= (1 - SHARE) * len(TO_FORGET), missed
    assert [sentence for sentence in TO_WORK_ON if one(sentence).forgets >= MIN_FORGET_PROBABILITY] == []
