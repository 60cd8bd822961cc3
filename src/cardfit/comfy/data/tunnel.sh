#!/usr/bin/env bash
# Run on your own machine: ComfyUI of the server on http://127.0.0.1 here, for as long as this runs.
# bash tunnel.sh [USER@SERVER] [SSH PORT] [LOCAL PORT]
set -euo pipefail
#@settings
server=${1:-$server}
ssh_port=${2:-$ssh_port}
local_port=${3:-$local_port}
if [ -z "$server" ]; then
  echo 'name the server: bash tunnel.sh user@server' >&2
  exit 2
fi
echo "open http://127.0.0.1:$local_port    stop with Ctrl-C" >&2
exec ssh -N -L "127.0.0.1:$local_port:127.0.0.1:$port" -o ExitOnForwardFailure=yes \
  -o ServerAliveInterval=30 -p "$ssh_port" -- "$server"
