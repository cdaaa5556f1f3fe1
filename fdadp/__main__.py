"""``python -m fdadp``."""

from fdadp.cli.main import main

if __name__ == "__main__":
    main()
