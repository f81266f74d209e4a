"""The policy file as a shell sees it: read strictly, laid under the command line, watched, and written the first time."""
