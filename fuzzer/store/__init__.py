"""The campaign directory: the one place, besides the worker pool, where Eddy touches the outside world."""
