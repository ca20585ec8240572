"""The fingerprint of a statement."""

import hashlib
import itertools

from hypothesis import given
from hypothesis import strategies as st

from engram.text.content_hash import content_hash
from tests.tables import table


def test_it_is_sha256_of_the_normal_form() -> None:
    assert content_hash("Use Tabs, not  spaces!") == hashlib.sha256(b"use tabs not spaces").hexdigest()


@table("text", ["", "   ", "\n\t", "?!…", "🎉🎉", "—"])
def test_a_text_without_letters_or_digits_has_no_hash(text: str) -> None:
    assert content_hash(text) == ""


@table(
    ("one", "other"),
    [
        ("Use tabs.", "use tabs"),
        ("Use  tabs", "Use\ttabs\n"),
        ("“Use tabs”", "Use tabs"),
        ("周五不要部署。", "周五不要部署"),
        ("Don't", "DONT"),
    ],
)
def test_case_punctuation_and_spacing_do_not_count(one: str, other: str) -> None:
    assert content_hash(one) == content_hash(other)


def test_underscores_and_combining_marks_count() -> None:
    assert content_hash("user_id") != content_hash("userid")
    assert content_hash("कि") != content_hash("क")


def test_statements_in_other_scripts_do_not_all_hash_equal() -> None:
    statements = [
        "默认端口是八千",
        "部署在周五进行",
        "既定のブランチは main です",
        "テストは必ず実行する",
        "لا تستخدم علامات التبويب",
        "استخدم المسافات",
        "Не выкладывай в пятницу",
        "Всегда запускай тесты",
        "הרץ את הבדיקות",
        "항상 테스트를 실행한다",
        "ทดสอบก่อนเสมอ",
    ]
    hashes = [content_hash(statement) for statement in statements]
    assert "" not in hashes
    assert all(one != other for one, other in itertools.combinations(hashes, 2))


def test_a_lone_surrogate_does_not_break_it() -> None:
    assert content_hash("broken \ud800 text") == content_hash("broken text")


@given(st.text())
def test_hashing_is_stable_under_added_whitespace(text: str) -> None:
    assert content_hash(f"  {text}\n") == content_hash(text)
