"""The same as test_netns.py at scale factor 1."""

import test_netns

if __name__ == "__main__":
    test_netns.main("1")
