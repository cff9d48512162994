"""``python -m tests.prose``: list the words and phrases to replace; exits with 1 if there are any."""

from __future__ import annotations

import sys

from tests.prose.lint import check_tree, read_words

found = check_tree(read_words())
print(*found, f"{len(found)} words or phrases to replace", sep="\n")
sys.exit(bool(found))
