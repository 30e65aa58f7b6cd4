"""The controllers and the scheduler."""
