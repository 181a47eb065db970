#!/usr/bin/env bash
# Checks the reservation model (about a minute on an idle machine). Exits non-zero unless every verdict
# is the expected one.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/placement.pml" "$work"
cd "$work" || exit 1
bad=0
verdict() {  # expected(pass|reject) name output
  errors=$(printf '%s' "$3" | grep -oE 'errors: [0-9]+' | grep -oE '[0-9]+')
  got=none
  [ "${errors:-x}" = 0 ] && got=pass
  [ "${errors:-0}" -gt 0 ] 2>/dev/null && got=reject
  echo "$2: expected $1, got $got"
  [ "$1" = "$got" ] || bad=1
}
safety() {
  # shellcheck disable=SC2086
  spin -a $1 placement.pml >/dev/null &&
    gcc -w -O2 -DSAFETY -DNOCLAIM -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c && timeout 400 ./pan -m1000000 2>&1
}
claim() {  # ltl-name spin-options gcc-options pan-options
  # shellcheck disable=SC2086
  spin -a $2 placement.pml >/dev/null && gcc -w -O2 $3 -DMEMLIM=5000 -DCOLLAPSE -o pan pan.c &&
    timeout 500 ./pan -a $4 -N "$1" -m2000000 2>&1
}
verdict pass "safety (P1, P2)" "$(safety "")"
for mutant in BUG_HEAD_ACCOUNTING BUG_EARLY_CREATED BUG_NO_TOMBSTONE; do
  verdict reject "mutant $mutant" "$(safety "-D$mutant")"
done
verdict pass "P4 no leak" "$(claim noleak "-DMAXA=1" "-DNFAIR=4" "-f")"
verdict reject "mutant BUG_NO_RECONCILE" "$(claim noleak "-DMAXA=1 -DBUG_NO_RECONCILE" "-DNFAIR=4" "-f")"
verdict pass "P3 created keeps all bundles" "$(claim holds "" "" "")"
exit $bad
