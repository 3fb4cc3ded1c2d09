"""Prints the packages that a process has loaded when it has run the commands of its arguments."""

import sys

from pairwright.cli.main import run

if __name__ == "__main__":
    try:
        run()
    finally:
        sys.stdout.write(f"\n{' '.join({name.partition('.')[0] for name in sys.modules})}\n")
