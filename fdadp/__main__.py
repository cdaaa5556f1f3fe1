"""``python -m fdadp``."""

from fdadp.cli import main

if __name__ == "__main__":
    main()
