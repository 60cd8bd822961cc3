#!/usr/bin/env bash
# Run on the server: driver, disk, encoder, and whether the port is really closed to others.
# bash check.sh [PUBLIC ADDRESS...]   for example the address by which the host's proxy would show the port
set -uo pipefail
#@settings
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
failed=0
good() { printf 'ok    %s\n' "$*"; }
odd() { printf 'warn  %s\n' "$*"; }
bad() {
  printf 'FAIL  %s\n' "$*"
  failed=1
}

#@room

#@port

# inside COMMAND...: where ComfyUI runs
inside() {
  if [ "$pod" = 1 ]; then
    "$@"
  else
    docker compose --project-directory "$here" exec -T comfyui "$@"
  fi
}

check_card() {
  local cards driver_cuda torch_cuda newest
  if ! cards=$(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>&1); then
    bad "nvidia-smi does not answer: $cards"
    return
  fi
  good "card and driver: ${cards//$'\n'/; }"
  driver_cuda=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[A-Z ]* Version: *\([0-9.]*\).*/\1/p' | head -n 1)
  torch_cuda=$(inside "$python" -c 'import torch; print(torch.version.cuda or "")' 2>/dev/null | tr -d '\r')
  if [ -z "$driver_cuda" ] || [ -z "$torch_cuda" ]; then
    odd "CUDA not compared: the driver says '${driver_cuda}', torch says '${torch_cuda}' (is ComfyUI running?)"
  else
    newest=$(printf '%s\n%s\n' "$driver_cuda" "$torch_cuda" | sort -V | tail -n 1)
    if [ "$newest" = "$driver_cuda" ]; then
      good "the driver knows CUDA $driver_cuda, torch was built for $torch_cuda"
    elif [ "${driver_cuda%%.*}" = "${torch_cuda%%.*}" ]; then
      odd "torch was built for CUDA $torch_cuda, the driver knows up to $driver_cuda: kernels compiled at run time may fail"
    else
      bad "torch was built for CUDA $torch_cuda, the driver knows up to $driver_cuda: update the driver or take an older image"
    fi
    if inside "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
      good 'torch sees the card'
    else
      bad 'torch sees no card: is the NVIDIA container toolkit installed on the host?'
    fi
  fi
  if printf '%s\n' "$cards" | grep -qE "$without_encoder"; then
    odd 'this card has no video encoder: videos are coded on the processor'
  elif inside "$python" -c 'import ctypes; ctypes.CDLL("libnvidia-encode.so.1")' 2>/dev/null; then
    good 'the encoder is seen where ComfyUI runs'
  else
    bad 'the encoder is not seen where ComfyUI runs: NVIDIA_DRIVER_CAPABILITIES needs video'
  fi
}

check_disk() {
  local kind said
  if [ ! -d "$models" ]; then
    bad "$models is not there; run download.sh first"
    return
  fi
  if said=$(room "$here/models.txt" "$models"); then good "$said"; else bad "$said"; fi
  kind=$(df --output=fstype -- "$models" | tail -n 1)
  case $kind in
    nfs* | cifs | smb* | 9p | fuse* | ceph | lustre) odd "$models lies on $kind, over a network: models load slowly from there" ;;
    *) good "$models lies on $kind" ;;
  esac
}

check_closed() {
  local found address name
  if [ "$pod" = 1 ] && [ -z "$(listening "$port")" ]; then odd "nothing listens on port $port"; fi
  found=$(open_to_others "$port")
  if [ -n "$found" ]; then
    bad "port $port listens on more than loopback ($found)"
  else
    good "port $port listens on loopback alone"
  fi
  if [ "$pod" = 0 ]; then
    found=$(docker ps --format '{{.Ports}}' 2>/dev/null | tr ',' '\n' | sed 's/^ *//' | grep -E -- "->$port/" | grep -vE '^(127\.|\[::1\]|[0-9]+/)')
    if [ -n "$found" ]; then bad "docker publishes it to others: $found (a firewall such as ufw does not stop docker)"; fi
  fi
  for address in $(hostname -I 2>/dev/null); do
    case $address in *:*) address="[$address]" ;; esac
    set -- "$@" "http://$address:$port"
  done
  if [ -n "${RUNPOD_POD_ID:-}" ]; then set -- "$@" "https://$RUNPOD_POD_ID-$port.proxy.runpod.net"; fi
  name=VAST_TCP_PORT_$port
  if [ -n "${PUBLIC_IPADDR:-}" ] && [ -n "${!name:-}" ]; then set -- "$@" "http://$PUBLIC_IPADDR:${!name}"; fi
  for address in "$@"; do
    case $address in *://*) ;; *) address="http://$address:$port" ;; esac
    if answers "$address"; then
      bad "ComfyUI answers at $address: anyone can run code there. Close it now"
    else
      good "no ComfyUI at $address"
    fi
  done
}

check_running() {
  local path
  if ! answers "http://127.0.0.1:$port"; then
    bad "ComfyUI does not answer on 127.0.0.1:$port"
    return
  fi
  good "ComfyUI answers on 127.0.0.1:$port"
  for path in manager/version v2/manager/version; do
    if curl --silent --fail --max-time 8 --output /dev/null -- "http://127.0.0.1:$port/$path"; then
      odd 'the Manager is on: who reaches this port can install code'
    fi
  done
}

check_card
check_disk
check_closed "$@"
check_running
exit "$failed"
