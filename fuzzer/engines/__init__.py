"""Engines write programs. Each returns text in the program contract; none of them executes anything."""
