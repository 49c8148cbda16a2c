"""``eddy web``: the report page live, on loopback, with buttons to say what a finding is."""
