set -euo pipefail
#@settings

#@room

#@fetch

#@port

if ! command -v curl >/dev/null; then
  echo 'curl is not installed here; install it first'
  exit 1
fi
if [ ! -f "$root/main.py" ]; then
  echo "no ComfyUI in $root: write the block again with --root"
  exit 1
fi
if [ -n "$(listening "$port")" ]; then
  echo "something listens on port $port already, most likely a ComfyUI that the image started, open to others."
  echo "Stop it first, or start the container without it, and paste the block again"
  exit 1
fi
work=$(mktemp -d)
cat >"$work/models.txt" <<'CARDFIT_LIST'
#@list
CARDFIT_LIST
cat >"$root/cardfit_model_paths.yaml" <<'CARDFIT_PATHS'
#@paths
CARDFIT_PATHS
fetch "$work/models.txt" "$models" || echo 'not everything is there; ComfyUI is started all the same'
cd -- "$root"
nohup "${start[@]}" >"$root/comfyui.log" 2>&1 </dev/null &
for _ in $(seq 90); do
  if answers "http://127.0.0.1:$port"; then break; fi
  sleep 2
done
if ! answers "http://127.0.0.1:$port"; then
  tail -n 20 "$root/comfyui.log"
  echo 'ComfyUI does not answer; its last lines are above'
  exit 1
fi
if [ -n "$(open_to_others "$port")" ]; then
  echo "port $port listens on more than loopback: stop it"
  exit 1
fi
echo "ComfyUI is ready on 127.0.0.1:$port of this container. Now the tunnel, on your own machine"
