"""Months of a daemon's life in virtual time: outages, crashes, people, files that change, and a judge of its own."""
