"""Small pure helpers that know nothing of vGPUs: reading within bounds, names and ranges, durations, numbers, memos."""
