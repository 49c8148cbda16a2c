"""The feature space: what a program may have that matters for bugs, and how it is recognised in what ran."""
