# whole FILE NAME SIZE SHA256: whether FILE is what was listed; "-" is not known.
whole() {
  [ "$3" = - ] || [ "$(stat -c %s -- "$1")" = "$3" ] || return 1
  [ "$4" = - ] || [ "$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$4" ] || return 1
  case $2 in # a page that asks for a login is no model
    *.safetensors) [ "$(head -c 9 -- "$1" | tail -c 1 | tr -d '\0')" = '{' ] ;;
    *.gguf) [ "$(head -c 4 -- "$1" | tr -d '\0')" = GGUF ] ;;
  esac
}

# fetch_one MODELS SIZE SHA256 PATH URL: one file, gone on with where it broke off.
fetch_one() {
  local models=$1 size=$2 sha=$3 path=$4 url=$5 target part header='' shown=(--silent --show-error) try status code
  case /$path/ in
    */../* | */./* | *//*)
      printf 'refused   %s: it leaves the models folder\n' "$path"
      return 1
      ;;
  esac
  target=$models/$path
  part=$target.part
  if [ -f "$target" ]; then
    if whole "$target" "$path" "$size" -; then
      printf 'have      %s\n' "$path"
      return 0
    fi
    printf 'differs   %s: not the file that is listed; remove it to fetch it anew\n' "$path"
    return 1
  fi
  if [ "$url" = - ]; then
    printf 'by hand   %s: no address is known; put it there yourself\n' "$path"
    return 1
  fi
  case $path in
    *.ckpt | *.pt | *.pth | *.bin | *.pkl)
      if [ "${ALLOW_PICKLE:-0}" != 1 ]; then
        printf 'pickle    %s: this format can run code when it is loaded; look for a safetensors, or set ALLOW_PICKLE=1\n' "$path"
        return 1
      fi
      ;;
  esac
  mkdir -p -- "$(dirname -- "$target")" || return 1
  case $url in
    https://huggingface.co/*) [ -z "${HF_TOKEN:-}" ] || header="Authorization: Bearer $HF_TOKEN" ;;
  esac
  [ ! -t 2 ] || shown=(--progress-bar)
  printf 'fetching  %s\n' "$path"
  for try in 1 2 3 4 5; do
    status=0
    code=$(curl "${shown[@]}" --fail --location --proto =https --proto-redir =https --connect-timeout 20 \
      --speed-limit 1000 --speed-time 60 --continue-at - --header @- --write-out '%{http_code}' \
      --output "$part" -- "$url" <<<"$header") || status=$?
    case $status:$code in
      0:* | *:416) break ;; # 416: nothing is left to fetch
      33:*) rm -f -- "$part" ;; # this server cannot go on in the middle
      22:4*) break ;;
    esac
    sleep $((2 * try))
  done
  if [ "$status" != 0 ] && [ "$code" != 416 ]; then
    printf 'broke off %s: curl says %s, the server %s; run this again to go on\n' "$path" "$status" "$code"
    return 1
  fi
  if ! whole "$part" "$path" "$size" "$sha"; then
    rm -f -- "$part"
    printf 'wrong     %s: not the size, checksum or format that is listed; it was removed\n' "$path"
    return 1
  fi
  mv -- "$part" "$target"
}

# fetch LIST MODELS: every file of LIST (size|sha256|path|address, "-" is not known).
fetch() {
  local list=$1 models=$2 size sha path url missing=0
  if ! command -v curl >/dev/null; then
    echo 'curl is not installed here; install it first'
    return 2
  fi
  mkdir -p -- "$models" || return 2
  if ! room "$list" "$models"; then
    echo 'the disk is too small for the list'
    return 1
  fi
  while IFS='|' read -r size sha path url || [ -n "$size" ]; do
    case $size in '' | '#'*) continue ;; esac
    fetch_one "$models" "$size" "$sha" "$path" "$url" || missing=$((missing + 1))
  done <"$list"
  printf '%d files of the list are not there yet\n' "$missing"
  [ "$missing" = 0 ]
}
