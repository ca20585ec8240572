"""Feedback and facts, compared part by part, and judged where nobody asked to store them."""

from typing import Any

import pytest

from engram.gates.comparison import compare_forms
from engram.gates.quality import form_problems
from engram.model.memory import Memory, render_form


def feedback(situation: str, action: str, behavior: str = "did something else", impact: str = "lost a day") -> Memory:
    form = {"behavior": behavior, "impact": impact, "action": action}
    return Memory("ENG-1", render_form(form), type="feedback", form=form, situation=situation)


def fact(subject: str, predicate: str, value: str, situation: str = "building the project") -> Memory:
    form = {"subject": subject, "predicate": predicate, "object": value}
    return Memory("ENG-1", render_form(form), type="fact", form=form, situation=situation)


FACTS = (
    (("engram", "uses", "targ"), ("Engram", "uses", "targ"), "same"),
    (("the engram", "uses", "the targ build system"), ("engram", "use", "targ build system"), "same"),
    (("engram", "uses", "targ"), ("engram", "uses", "make"), "opposite"),
    (("the API", "listens on", "port 8080"), ("the API", "listens on", "port 9090"), "opposite"),
    (("the parser", "is", "thread-safe"), ("the parser", "is", "not thread-safe"), "opposite"),
    (("engram", "uses", "targ"), ("myapp", "uses", "make"), "distinct"),
    (("engram", "uses", "targ"), ("engram", "is written in", "Go"), "distinct"),
    (("エングラム", "使う", "targ"), ("エングラム", "使う", "make"), "opposite"),
    (("エングラム", "使う", "targ"), ("プラグイン", "使う", "make"), "distinct"),
    (("Python 3.11", "is used by", "the worker"), ("Python 3.12", "is used by", "the api"), "distinct"),
    (("the API", "listens on", "port 8080"), ("the admin API", "listens on", "port 9090"), "distinct"),
    (("engram", "uses", "targ for builds on Linux"), ("engram", "uses", "targ"), "distinct"),
)
FEEDBACK = (
    (("writing Go tests", "use t.Parallel in each test"), ("writing async tests in Go", "call t.Parallel() in every test"), "same"),
    (("adding a new feature", "write a failing test first"), ("implementing new features", "always write failing test first (TDD)"), "same"),
    (("testing code with timers", "use a fake clock"), ("testing code that uses time", "mock the clock"), "same"),
    (("committing changes", "lint before each commit"), ("committing", "run the linter before committing"), "same"),
    (("merging a branch", "squash commits before merging"), ("merging branches", "never squash commits before merging"), "opposite"),
    (("formatting code", "use tabs"), ("formatting code", "use spaces"), "opposite"),
    (("asking for reviews", "ask for one review first"), ("asking for a review", "ask for two reviews first"), "opposite"),
    (("writing Go tests", "use tabs"), ("deploying to production", "use spaces"), "distinct"),
    (("writing Go tests", "wait on a channel"), ("writing Go tests", "name tests after behaviour"), "distinct"),
    (("writing Go tests", "do not test private functions"), ("writing Go tests", "avoid globals in tests"), "distinct"),
    (("answering questions", "answer briefly"), ("writing SQL", "use bind parameters"), "distinct"),
)  # fmt: skip


def test_facts_with_one_subject_and_predicate_repeat_or_contradict_each_other() -> None:
    found = [(new, old, compare_forms(fact(*new), fact(*old)).relation) for new, old, _ in FACTS]
    assert found == list(FACTS)


def test_a_fact_is_the_same_in_whatever_situation() -> None:
    new, old = fact("engram", "uses", "targ", "running CI"), fact("engram", "uses", "targ", "writing documentation")
    assert compare_forms(new, old).relation == "same"


def test_feedback_repeats_or_contradicts_what_is_asked_for_in_a_similar_situation() -> None:
    found = [(new, old, compare_forms(feedback(*new), feedback(*old)).relation) for new, old, _ in FEEDBACK]
    assert found == list(FEEDBACK)


def test_feedback_that_asks_for_what_other_feedback_warns_of_contradicts_it() -> None:
    old = feedback("merging branches", "ask for a review", behavior="merge without a review")
    found = compare_forms(feedback("merging a branch", "merge without a review"), old)
    assert (found.relation, found.why) == ("opposite", "one asks for what the other warns of")


def test_a_situation_among_several_counts() -> None:
    old = feedback("writing SQL; formatting code", "use tabs")
    assert compare_forms(feedback("formatting code", "use spaces"), old).relation == "opposite"


GATED: tuple[tuple[Memory, str, str], ...] = (
    (feedback("implementing new features", "always write failing test first (TDD red phase)"), "", ""),
    (feedback("implementing new features", "write the failing test before the code"), "", ""),
    (feedback("fixing a bug", "run the new test without the fix first, so that it is seen to fail"), "", ""),
    (feedback("fixing a bug", "The failing test needs a longer timeout"), "specificity", "the failing test"),
    (fact("engram", "uses", "targ build system for all build/test/check operations"), "", ""),
    (feedback("deploying to staging", "take a backup before each deploy"), "", ""),
    (fact("CI", "runs on", "self-hosted arm64 runners", "configuring CI"), "", ""),
    (feedback("formatting code", "use tabs"), "", ""),
    (feedback("データベースの移行", "移行の前にバックアップを取る"), "", ""),
    (feedback("reviewing a pull request", "maybe look twice at the diff"), "behavioral", "guess"),
    (feedback("reviewing a pull request", "should we look twice?"), "behavioral", "question"),
    (fact("the cache", "is probably", "too small"), "behavioral", "guess"),
    (feedback("releasing", "bump the version, then tag, then push, finally publish"), "documentation", "a skill"),
    (feedback("editing TypeScript", "never use any in src/**/*.ts"), "documentation", ".claude/rules"),
    (feedback("running the suite", "Run `make test-all` with four workers"), "documentation", "CLAUDE.md"),
    (fact("The session store", "is defined in", "the auth package"), "documentation", "documentation"),
    (fact("The login check", "is at", "auth.py:12"), "documentation", "the code itself"),
    (feedback("fixing ENG-1234", "reproduce the bug first"), "specificity", "ENG-1234"),
    (feedback("releasing on 2026-03-04", "tag before publishing"), "specificity", "2026-03-04"),
    (feedback("writing code", "be careful and write good code"), "specificity", "vague"),
    (fact("staging", "is down", "for now", "deploying to staging"), "scope", "three months"),
)


@pytest.mark.parametrize(("memory", "gate", "words"), GATED, ids=lambda value: getattr(value, "statement", None))
def test_recurs_actionable_and_right_home(memory: Memory, gate: str, words: str) -> None:
    found: Any = next(((name, why) for name, why in form_problems(memory) if why), ("", ""))
    assert found[0] == gate, found
    assert words in found[1]


def test_a_better_home_is_suggested() -> None:
    (why,) = [why for _, why in form_problems(feedback("releasing", "first tag, then push, then publish")) if why]
    assert "a better home is a skill" in why
