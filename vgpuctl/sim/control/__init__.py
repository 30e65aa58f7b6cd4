"""Control of running simulators: count calls, add faults, change durations, stop the clock."""
