"""What the fuzzer knows about the code under test, as typed views of plain data."""
