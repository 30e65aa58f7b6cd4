"""Commands for the simulators, and the demo on them."""
