"""Patterns of a user run under a time limit: none can stall a write, and what people write is not affected."""

import subprocess
import sys
from pathlib import Path

import pytest

from engram import Engram
from engram.gates.policies import MemoryPolicy, SlotRule, TypeRule
from engram.gates.policies.policy import MAX_RULE_CHARS, PatternTimeout
from engram.model.errors import Refused
from engram.model.memory import Memory

SLOW = r"(a+)+$"
STALLING = "a" * (MAX_RULE_CHARS - 1) + "!"
HOSTILE = [
    SLOW,
    r"(a|a)*b",
    r"\w*\w*\w*!!",
    r"(\w+\s*)+$",
    r"(a*)*b",
    r"(x+x+)+y",
    r"(?:a|ab)*c",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(?=(a+)+$)b",
    r"(?:a{0,50}){0,50}b",
    r"(?P<q>a*)(?P=q)*b",
    r"(?:[^b][^b](?=\b))*?((?=(?=.*b) ))b!!",
]
USUAL = {
    r"the price of (?P<what>[\w ]+) is": "the price of red shoes is 5",
    r"\bno (?:\w+ ){0,3}allerg(?:y|ies)\b": "She has no known food allergies",
    r"\bfirst\b.{2,200}\bthen\b": "first build, then test",
    r"release.*postponed": "The release of May is Postponed",
    r"^.*\bdeadline\b": "the deadline is Friday",
    r"\w+@\w+\.\w+": "mail ann@example.org",
}


def test_no_pattern_stalls_a_statement() -> None:
    for pattern in HOSTILE:
        policy = MemoryPolicy("p", slots=(SlotRule(pattern, critical_slot="k"),))
        for text in (STALLING, "ab" * 1000 + "!", "a b " * 500):
            assert policy.apply_leniently(Memory("", text), typed=False).statement == text


def test_what_people_write_is_matched() -> None:
    missed = [
        pattern
        for pattern, said in USUAL.items()
        if MemoryPolicy("p", (TypeRule(pattern, "fact"),)).apply(Memory("", said), typed=False).type != "fact"
    ]
    assert not missed


@pytest.mark.parametrize("rule", [TypeRule(SLOW, "fact"), TypeRule("a", "fact", unless=SLOW)])
def test_a_pattern_that_times_out_is_named_and_the_rule_does_not_apply(rule: TypeRule) -> None:
    policy = MemoryPolicy("shop", (rule,))
    with pytest.raises(PatternTimeout, match=r"policy 'shop': the pattern .* takes too long"):
        policy.apply(Memory("", STALLING), typed=False)
    assert policy.apply_leniently(Memory("", STALLING, type="decision"), typed=False).type == "decision"


def test_a_statement_that_a_pattern_stalls_on_is_rejected_with_the_reason_and_others_are_stored(tmp_path: Path) -> None:
    policy = MemoryPolicy("shop", (TypeRule(SLOW, "fact"),))
    with Engram.open(home=tmp_path, cache=tmp_path / "cache", policy=policy) as memory:
        decision = memory.learn(STALLING)
        assert (decision.outcome, decision.gate, decision.memory) == ("REJECTED", "policy", None)
        assert SLOW in decision.reason
        with pytest.raises(Refused, match="takes too long"):
            memory.add(STALLING)
        assert memory.learn("The team uses tabs in Makefiles").memory is not None


def test_the_presets_run_without_the_regex_library() -> None:
    program = (
        "import sys; from engram.gates.policies import policy_named; from engram.model.memory import Memory; "
        "policy_named('legal').apply(Memory('', 'The liability cap is $5M'), typed=False); print('regex' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
