"""``python -m pairwright`` is the command ``pairwright``."""

from pairwright.cli.main import run

if __name__ == "__main__":
    run()
