"""Programs for the command line: argument parsing and printing, the work is done by the layers below."""
