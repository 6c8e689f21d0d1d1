"""`python -m octopis`, and where the `octopis` command begins.

Nothing else is imported before `main` runs, so that Ctrl-C ends the command in one line also while
the rest is being imported.
"""

import signal
import sys


def main() -> None:
    """Run the command."""
    try:
        from octopis.cli.main import main as run  # noqa: PLC0415 - see above
    except KeyboardInterrupt:
        sys.stderr.write("octopis: stopped\n")
        sys.exit(130)
    try:
        run()
    finally:  # Python's own end is no place for another Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
