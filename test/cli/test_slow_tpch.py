"""The same as test_tpch.py at scale factor 1, with fewer ways of reading."""

import test_tpch

if __name__ == "__main__":
    test_tpch.main("1", test_tpch.READING[1::2])
