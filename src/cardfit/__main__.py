"""``python -m cardfit``: the command line without the script on the path."""

from cardfit.cli.main import main

main()
