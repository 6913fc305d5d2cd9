"""The one kind of error that is the user's to mend."""


class UserError(Exception):
    """Bad input or configuration: one line that names the file, line, key or id and says what to do.

    Commands print it without a traceback and exit with code 2 (`espnet_ext.cli.run`).
    """
