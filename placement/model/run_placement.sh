#!/usr/bin/env bash
# Checks the reservation model (minutes). Exits non-zero unless every verdict is the expected one. A
# head that crashes and a node that dies are looked at in turn: both at once is too much for a small
# machine.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../scripts/spin_verdict.sh"
enter_work_folder "$here/placement.pml"
death="-DDEATHS=1 -DCRASHES=0"
safety() {
  # shellcheck disable=SC2086
  spin -a $1 placement.pml >/dev/null &&
    gcc -w -O2 -DSAFETY -DNOCLAIM -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c && timeout 600 ./pan -m1000000 2>&1
}
claim() {  # ltl-name spin-options gcc-options pan-options
  # shellcheck disable=SC2086
  spin -a $2 placement.pml >/dev/null && gcc -w -O2 $3 -DMEMLIM=5000 -DCOLLAPSE -o pan pan.c &&
    timeout 600 ./pan -a $4 -N "$1" -m2000000 2>&1
}
verdict pass "safety (P1, P2)" "$(safety "")"
verdict pass "safety (P1, P2), a node dies" "$(safety "$death -DLOSSES=0")"
for mutant in BUG_HEAD_ACCOUNTING BUG_EARLY_CREATED BUG_NO_TOMBSTONE BUG_FREE_BEFORE_DRAINED; do
  verdict reject "mutant $mutant" "$(safety "-D$mutant")"
done
for mutant in BUG_ATTEMPT_OUTLIVES_NODE BUG_REPLACE_ONE_BUNDLE; do
  verdict reject "mutant $mutant" "$(safety "$death -D$mutant")"
done
verdict pass "P4 no leak" "$(claim noleak "-DMAXA=1" "-DNFAIR=4" "-f")"
verdict pass "P4 no leak, a node dies" "$(claim noleak "$death -DLOSSES=0 -DMAXA=1" "-DNFAIR=4" "-f")"
verdict reject "mutant BUG_NO_RECONCILE" "$(claim noleak "-DMAXA=1 -DBUG_NO_RECONCILE" "-DNFAIR=4" "-f")"
verdict pass "P3 created keeps all bundles" "$(claim holds "" "" "")"
verdict pass "P3 created keeps all bundles, a node dies" "$(claim holds "$death -DLOSSES=0" "" "")"
verdict reject "mutant BUG_DEATH_UNNOTICED" "$(claim holds "$death -DBUG_DEATH_UNNOTICED" "" "")"
exit $bad
