"""Statements in every script are stored unchanged, found by a query in the same language, and distinguished."""

from pathlib import Path

import pytest

from engram import Engram
from tests.faults.consistency import assert_consistent

# The statement, a question it answers, and a similar one that must not be confused with it.
SPOKEN = {
    "Chinese": ("测试数据库的端口是五四三三", "测试数据库的端口", "生产数据库的密码保存在保险箱里"),
    "Japanese": ("ステージング環境のデータベースは東京にあります", "ステージング環境はどこ", "本番環境のログは大阪に保存されます"),
    "Korean": ("배포는 매주 화요일에 진행합니다", "배포 화요일", "회의는 금요일 오후에 열립니다"),
    "Arabic": ("قاعدة بيانات الاختبار تعمل على المنفذ الخامس", "منفذ قاعدة بيانات الاختبار", "الاجتماع الأسبوعي يوم الثلاثاء صباحا"),
    "Hebrew": ("מסד הנתונים של הבדיקות נמצא בתל אביב", "איפה מסד הנתונים", "הפגישה השבועית מתקיימת ביום שלישי"),
    "Cyrillic": ("Тестовая база данных слушает порт пять тысяч", "порт тестовой базы данных", "Совещание проходит по вторникам утром"),
    "Greek": ("Η βάση δεδομένων βρίσκεται στην Αθήνα", "βάση δεδομένων Αθήνα", "Η συνάντηση γίνεται κάθε Τρίτη"),
    "Hindi": ("परीक्षण डेटाबेस दिल्ली में है", "परीक्षण डेटाबेस", "बैठक मंगलवार को होती है"),
    "Thai": ("ฐานข้อมูลทดสอบอยู่ที่กรุงเทพ", "ฐานข้อมูลทดสอบ", "ประชุมทุกวันอังคารตอนเช้า"),
    "German": ("Größenänderungen müssen über den Änderungsausschuß laufen", "Änderungsausschuß", "Die Sitzung ist jeden Dienstag"),
    "Turkish": ("İstanbul sunucusu ışık hızında çalışıyor", "İstanbul sunucusu", "Toplantı salı günü yapılır"),
    "emoji": ("Deploy on 🟢 days only, never on 🔴 ones", "🟢 deploy days", "Lunch is at noon on Fridays"),
    "code": ("Call `await asyncio.gather(*tasks)` inside get_user_by_id()", "get_user_by_id asyncio.gather", "Lint with ruff before pushing"),
    "mixed": ("在 staging 环境使用 PostgreSQL 16 端口 5433", "staging PostgreSQL 端口", "使用 Redis 作为缓存"),
}  # fmt: skip


@pytest.mark.parametrize("language", SPOKEN)
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_statement_is_found_in_its_own_language(tmp_path: Path, language: str, mode: str) -> None:
    statement, question, neighbour = SPOKEN[language]
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        wanted, other = mem.add(statement), mem.add(neighbour)
        mem.add_batch([{"statement": text} for name, (text, *_) in SPOKEN.items() if name != language])
        assert wanted.id != other.id
        assert mem.get(wanted.id).statement == statement
        assert mem.search(question, mode=mode)[0].text == statement


def test_all_languages_are_stored_together(tmp_path: Path) -> None:
    texts = [text for pair in SPOKEN.values() for text in (pair[0], pair[2])]
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        made = [mem.learn(text, source="human") for text in texts]
        assert all(decision.has_new_memory for decision in made), [d for d in made if not d.has_new_memory]
        assert sorted(memory.statement for memory in mem.list(limit=None, status="any")) == sorted(texts)
        again = [mem.learn(text, source="human") for text in texts]
        assert {decision.outcome for decision in again} == {"DUPLICATE"}
        for text in texts:
            mem.observe("talk", "user", text)
        assert [event.content for event in mem.store.events("talk")] == texts
    assert_consistent(tmp_path / "home", tmp_path / "cache")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("端口是五四三三", "端口是五四三四"),
        ("порт 5433 открыт", "порт 5434 открыт"),
        ("🟢 means go", "🔴 means go"),
        ("use tabs", "use  TABS!"),
        ("café", "cafe"),
        ("a < b", "a > b"),
    ],
)
def test_statements_with_a_relevant_difference_are_distinguished(tmp_path: Path, one: str, two: str) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        first, second = mem.add(one), mem.add(two)
        same = two == "use  TABS!"
        assert (first.id == second.id) is same
