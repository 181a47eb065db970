# Sourced by the checks of Spin models. They run in a folder of their own with the model in it, print a
# line a verdict, and end with `exit $bad`, which is 1 once a verdict was not the expected one.
# shellcheck shell=bash
bad=0

enter_work_folder() {  # model file
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cp "$1" "$work" && cd "$work" || exit 1
}

verdict() {  # expected(pass|reject) name output
  errors=$(printf '%s' "$3" | grep -oE 'errors: [0-9]+' | grep -oE '[0-9]+')
  got=none
  [ "${errors:-x}" = 0 ] && got=pass
  [ "${errors:-0}" -gt 0 ] 2>/dev/null && got=reject
  echo "$2: expected $1, got $got"
  [ "$1" = "$got" ] || bad=1
}
