"""The commands below `comfy`.

In: words. Out: an exit code, from the command that they name.
"""

from __future__ import annotations

from cyclopts import App

from cardfit.cli.comfy_deploy import check, deploy, inventory, record
from cardfit.cli.comfy_plan import plan
from cardfit.messages import say

comfy = App(name="comfy", help=say("help-comfy"))
for _command in (plan, deploy, check, inventory, record):
    comfy.command(_command)
