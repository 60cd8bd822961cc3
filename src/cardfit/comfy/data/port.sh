# listening PORT: the addresses that listen on it here, as the kernel writes them.
listening() {
  local hex at state
  hex=$(printf '%04X' "$1")
  while read -r _ at _ state _; do
    if [ "$state" = 0A ] && [ "${at##*:}" = "$hex" ]; then printf '%s\n' "${at%:*}"; fi
  done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
}

# open_to_others PORT: those of them beyond loopback (127.x.x.x, ::1 and ::ffff:127.x.x.x, bytes turned round).
open_to_others() {
  local at
  while read -r at; do
    case $at in
      ??????7F | 00000000000000000000000001000000 | 0000000000000000FFFF0000??????7F) ;;
      *) printf '%s\n' "$at" ;;
    esac
  done < <(listening "$1")
}

# answers ADDRESS: whether a ComfyUI answers there without a login.
answers() {
  local body
  body=$(curl --silent --insecure --location --max-time 8 --max-filesize 1000000 -- "$1/system_stats" 2>/dev/null | tr -d '\0')
  case $body in *comfyui_version* | *'"devices"'*) return 0 ;; esac
  return 1
}
