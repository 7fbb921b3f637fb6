"""The command line as a file for spark-submit, which takes files that end in .py alone."""

from sfumato.cli import main

if __name__ == "__main__":
    main()
