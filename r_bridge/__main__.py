"""``python -m r_bridge``."""

from r_bridge.cli import main

if __name__ == "__main__":
    main()
