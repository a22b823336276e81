"""`python -m textcls` is `textcls`."""

from textcls.cli import main

if __name__ == "__main__":
    main(prog_name="textcls")
