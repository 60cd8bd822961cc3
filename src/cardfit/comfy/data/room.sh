# asked_size URL: the bytes that the server says an address has, or "-".
asked_size() {
  local header='' found
  case $1 in
    https://huggingface.co/*) [ -z "${HF_TOKEN:-}" ] || header="Authorization: Bearer $HF_TOKEN" ;;
  esac
  found=$(curl --silent --fail --head --location --proto =https --proto-redir =https --max-time 20 --header @- -- "$1" \
    <<<"$header" 2>/dev/null | tr -d '\r' | sed -n 's/^content-length: *\([0-9]\{1,15\}\)$/\1/Ip' | tail -n 1)
  printf '%s\n' "${found:--}"
}

# room LIST MODELS: whether the disk of MODELS holds what LIST names and is not there yet.
room() {
  local list=$1 models=$2 size path url need=0 unknown=0 free
  while IFS='|' read -r size _ path url || [ -n "$size" ]; do
    case $size in '' | '#'*) continue ;; esac
    [ ! -e "$models/$path" ] || continue
    if [ "$size" = - ] && [ "$url" != - ]; then size=$(asked_size "$url"); fi
    if [ "$size" = - ]; then
      unknown=$((unknown + 1))
    else
      need=$((need + size))
      [ ! -f "$models/$path.part" ] || need=$((need - $(stat -c %s -- "$models/$path.part")))
    fi
  done <"$list"
  free=$(df --output=avail -B1 -- "$models" | tail -n 1)
  printf 'still to fetch: %s, and %d files of unknown size; free on the disk: %s\n' \
    "$(numfmt --to=iec-i --suffix=B -- "$need")" "$unknown" "$(numfmt --to=iec-i --suffix=B -- "$free")"
  [ "$need" -le "$free" ]
}
