"""An agent that remembers: two sessions, no model needed to see it work. Run: python examples/agent_loop.py"""
# ruff: noqa: T201

from engram import Engram

SCOPE = "project:shop"


def answer(prompt: str, memory: str) -> str:
    """Stands in for a language model: says what it was told before it began."""
    lessons = [line for line in memory.splitlines() if line.startswith("- ")]
    return f"({len(lessons)} lessons in my prompt) I will {prompt[0].lower()}{prompt[1:]}"


def work(mem: Engram, task: str) -> None:
    """One session: what memory has to say goes into the prompt; what is said goes into the ledger."""
    with mem.session(task, scope=SCOPE) as session:
        print(f"\n== {task}")
        print(session.injection.text or "(memory has nothing to say yet)")
        session.observe("user", task)
        session.observe("assistant", answer(task, session.injection.text))
        for item in session.injection.items:
            session.feedback(item.memory.id, "positive")
        session.end(f"done: {task}")


def main() -> None:
    """The first session knows nothing; the second one is told what the first one taught."""
    with Engram.open(ephemeral=True) as mem:
        work(mem, "Deploy the payment service")
        lesson = mem.learn(
            "Never deploy the payment service by hand: the deploy job runs the migrations after its health check",
            type="correction",
            scope=SCOPE,
        )
        print(lesson.outcome, lesson.reason)
        work(mem, "Deploy the payment service again")
        best = mem.search("payment deploy", explain=True)[0]
        print(f"strength grew by use: {best.memory.activation if best.memory else ''}")
        for event in mem.search("deploy", kinds=("event",), limit=2):
            print(f"the ledger remembers: {event.text}")


if __name__ == "__main__":
    main()
