#!/usr/bin/env bash
# Paste this into a terminal of the container, as it is. ComfyUI then listens on loopback alone: the host's own proxy
# address finds nothing, and the tunnel reaches it.
set +H 2>/dev/null # or a ! in a name would be taken for a word to the shell's history
bash <<'CARDFIT_POD'
#@inner
CARDFIT_POD
