"""What whoever runs the simulators may do to them: count calls, add faults, change durations, stop the clock."""
