"""``python -m pairwright`` is the command ``pairwright``, and both begin here.

The command line is imported inside, so that Ctrl-C while Python still imports it ends as at any other time.
"""

import sys


def run() -> None:
    """Run the command line; see `pairwright.cli.main.run`."""
    try:
        from pairwright.datasets.garbage_collection import collect_rarely

        collect_rarely()  # before the imports of the command
        from pairwright.cli.main import run as command
    except KeyboardInterrupt:
        print("pairwright: stopped before anything was done.", file=sys.stderr)  # noqa: T201 - errors go to stderr
        sys.exit(130)
    command()


if __name__ == "__main__":
    run()
