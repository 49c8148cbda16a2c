"""Seeds made of other people's code: compiler tests, scripts, recorded calls."""
