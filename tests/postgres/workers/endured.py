"""What became of the writes of enduring writers: what each was told, held against what the tables say."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.postgres.workers.enduring import DONE, REFUSED

Told = Iterable[Mapping[str, Any]]
PARTS_OF_A_BATCH = 4
_TRACES = {
    "learn": "SELECT statement, count(*) FROM engram.agent_memory GROUP BY 1",
    "add_batch": "SELECT split_part(statement, ' part ', 1), count(*) FROM engram.agent_memory WHERE statement LIKE '% part %' GROUP BY 1",
    "observe": "SELECT record ->> 'content', count(*) FROM engram.agent_events GROUP BY 1",
    "feedback": "SELECT session, count(*) FROM engram.memory_uses WHERE kind = 'rated' GROUP BY 1",
    "begun": "SELECT id || '/begin', count(*) FROM engram.agent_sessions GROUP BY 1",
    "ended": "SELECT id || '/end', count(*) FROM engram.agent_sessions WHERE summary = 'ended' GROUP BY 1",
    "start_task": "SELECT record ->> 'goal', count(*) FROM engram.agent_task_runs GROUP BY 1",
    "checkpoint": "SELECT record ->> 'summary', count(*) FROM engram.agent_checkpoints GROUP BY 1",
    "change_task": "SELECT id || '/end', count(*) FROM engram.agent_task_runs WHERE status = 'completed' GROUP BY 1",
    "spend_tokens": "SELECT day::text, tokens FROM engram.model_spend",
    "jobs": "SELECT id, (record ->> 'attempts')::integer FROM engram.memory_jobs",
}
"""Each kind of write: the key of each attempt that left a trace, and how often it did."""


@dataclass(slots=True)
class Endured:
    """What was told, and what was found; each list holds the keys of attempts."""

    answers: Mapping[str, Mapping[str, Any]]

    told: Counter[str] = field(default_factory=Counter)
    """How many attempts were done, refused or unknown; "" are those of a writer that was killed before it was told."""
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    halves: list[str] = field(default_factory=list)
    told_wrongly: list[str] = field(default_factory=list)
    """Refused, and there all the same."""
    ids_given_twice: list[str] = field(default_factory=list)

    @property
    def troubles(self) -> dict[str, list[str]]:
        """Everything that must not be."""
        found = {
            "lost": self.lost,
            "doubled": self.doubled,
            "halves": self.halves,
            "told wrongly": self.told_wrongly,
            "ids given twice": self.ids_given_twice,
        }
        return {name: [f"{key}: {self.answers.get(key)}" for key in keys] for name, keys in found.items() if keys}

    def during(self, key: str, begin: float, end: float) -> bool:
        """Whether an attempt that was done was answered after `begin` and had begun before `end`."""
        answer = self.answers[key]
        return float(answer["at"]) > begin and float(answer["began"]) < end


def endured(url: str, tenant: str, told: Told) -> Endured:
    """What the tables of a tenant hold of all that was told."""
    lines = list(told)
    attempts = {line["attempt"]: line["verb"] for line in lines if "attempt" in line}
    answers = {line["key"]: line for line in lines if "key" in line}
    refused = {key for key, answer in answers.items() if answer["told"] == REFUSED}
    traces = _traces(url, tenant, attempts, refused)
    result = Endured(answers)
    for key, verb in attempts.items():
        said = answers.get(key, {}).get("told", "")
        whole = PARTS_OF_A_BATCH if verb == "add_batch" else 1
        _judge(result, key, said, traces[verb][key], whole)
    ids = Counter(i for line in answers.values() for i in line.get("ids", ()))
    result.ids_given_twice = [i for i, times in ids.items() if times > 1]
    return result


def _judge(result: Endured, key: str, said: str, found: int, whole: int) -> None:
    result.told[said] += 1
    if found % whole:
        result.halves.append(key)
    elif found > whole:
        result.doubled.append(key)
    elif said == DONE and not found:
        result.lost.append(key)
    elif said == REFUSED and found:
        result.told_wrongly.append(key)


def _traces(url: str, tenant: str, attempts: Mapping[str, str], refused: set[str]) -> dict[str, Counter[str]]:
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT set_config('engram.tenant', %s, true)", (tenant,))
        found: dict[str, Counter[str]] = {
            verb: Counter(dict(connection.execute(query.encode()).fetchall())) for verb, query in _TRACES.items()
        }
    found["save_session"] = found.pop("begun") + found.pop("ended")
    return found | _job_traces(found.pop("jobs"), attempts, refused)


def _job_traces(held: Counter[str], attempts: Mapping[str, str], refused: set[str]) -> dict[str, Counter[str]]:
    """A job that is done leaves no trace: one that is gone after it was to be settled has been there, and was leased.

    Where settling it was refused, the job itself was lost: a standby that lagged never had it.
    """
    found = {verb: Counter[str]() for verb in ("enqueue", "lease_jobs", "settle_job")}
    for key, verb in attempts.items():
        job = key.rpartition("/")[0]
        settled = f"{job}/settle"
        gone = settled in attempts and settled not in refused and job not in held
        if verb in found:
            traces = {"enqueue": job in held or gone, "lease_jobs": 1 if gone else held[job], "settle_job": gone}
            found[verb][key] = int(traces[verb])
    return found
