"""Start the child: ``python -m cardfit.measure.runner`` with a job on stdin."""

from cardfit.measure.runner.child import main

main()
