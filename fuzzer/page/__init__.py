"""What a person reads in the morning: one HTML page about a campaign, and the same for CI."""
