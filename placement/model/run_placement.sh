#!/usr/bin/env bash
# Checks the reservation model (about a minute on an idle machine). Exits non-zero unless every verdict
# is the expected one.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../scripts/spin_verdict.sh"
enter_work_folder "$here/placement.pml"
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
