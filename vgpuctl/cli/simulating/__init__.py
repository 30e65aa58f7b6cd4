"""Commands for the simulators, and the demo that runs on them."""
