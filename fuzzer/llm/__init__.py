"""The language model in the loop: writes programs, beside the template engine; never waited for, never trusted."""
