"""A server whose event loop never gets a turn ends; one that only works hard does not."""

import signal
import subprocess
import sys
import textwrap

LIMIT_S = 0.5


def run_beside_the_watchdog(work: str) -> int:
    """The exit status of a process in which a thread does some work while the watchdog runs."""
    script = f"""
        import re, time
        import anyio
        from engram.mcp.transport import end_if_blocked

        async def main():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(end_if_blocked, {LIMIT_S})
                await anyio.sleep(0)
                await anyio.to_thread.run_sync(work)
                tasks.cancel_scope.cancel()

        def work():
            {work}

        anyio.run(main)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], stderr=subprocess.DEVNULL, check=False)
    return done.returncode


def test_a_match_that_never_ends_ends_the_process() -> None:
    assert run_beside_the_watchdog('re.fullmatch(r"(a+)+b", "a" * 200)') == -signal.SIGVTALRM


def test_work_that_lets_the_loop_run_may_take_longer() -> None:
    assert run_beside_the_watchdog(f"while time.process_time() < {6 * LIMIT_S}: pass") == 0
