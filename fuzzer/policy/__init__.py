"""Policy: what to try next and what was it worth. Pure: no clock, no disk, no process; randomness is passed in."""
