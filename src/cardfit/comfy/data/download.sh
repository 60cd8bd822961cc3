#!/usr/bin/env bash
# Run on the server: fetches what models.txt lists into the models folder. Run it again after a break: it goes on.
# HF_TOKEN=... for gated files; ALLOW_PICKLE=1 for formats that can run code when they are loaded.
set -euo pipefail
#@settings
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

#@room

#@fetch

fetch "$here/models.txt" "${MODELS:-$models}"
