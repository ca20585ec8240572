"""Four MCP servers, the hooks of two users and two scripts on one store at once: nothing may fail, be lost, or stay behind.

python -m benchmarks.traffic [--seconds 60] [--url postgresql://…] [--keep FOLDER] [--json]
"""

from pathlib import Path
from typing import Any

from benchmarks.command import URL_HELP, parser, print_report, whole
from benchmarks.traffic.mixture import SECONDS, measure, text


def main() -> None:
    """Measure with the options of the command line."""
    options = parser(
        "traffic", "Four MCP servers, hooks and the command line on one store: errors, lost writes, waits."
    )
    options.add_argument("--seconds", type=whole(1), default=SECONDS, help=f"how long (default: {SECONDS})")
    options.add_argument("--url", help=URL_HELP)
    options.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="where to copy the store if anything is wrong with it"
    )
    given = options.parse_args()

    def work() -> dict[str, Any]:
        return measure(seconds=given.seconds, url=given.url, keep=given.keep)

    print_report(work, as_json=given.json, text=text)


if __name__ == "__main__":
    main()
