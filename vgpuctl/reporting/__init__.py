"""What is said about a fleet, a plan and its history. Pure functions; they decide nothing."""
