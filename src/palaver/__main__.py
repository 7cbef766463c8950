"""`python -m palaver` is `palaver`."""

from .cli import main

if __name__ == "__main__":
    main()
