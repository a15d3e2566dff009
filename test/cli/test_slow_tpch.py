"""The same as test_tpch.py at scale factor 1."""

import test_tpch

if __name__ == "__main__":
    test_tpch.main("1")
