"""The pure core: values in, values out. No IO, no clock, no randomness; time and ids are arguments."""
