#!/usr/bin/env bash
# Checks the model of the group directory: the plain model must pass, every mutant must be rejected.
# Exits non-zero unless every verdict is the expected one. Some minutes.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../scripts/spin_verdict.sh"
enter_work_folder "$here/regroup.pml"
safety() {
  # shellcheck disable=SC2086
  spin -a $1 regroup.pml >/dev/null && gcc -w -O2 -DSAFETY -DNOCLAIM -DMEMLIM=3000 -o pan pan.c && timeout 300 ./pan -m1000000 2>&1
}
liveness() {
  # shellcheck disable=SC2086
  spin -a $1 regroup.pml >/dev/null && gcc -w -O2 -DNFAIR=4 -DMEMLIM=6000 -o pan pan.c && timeout 600 ./pan -a -f -m1000000 2>&1
}
verdict pass "safety" "$(safety "")"
verdict pass "safety, two of three must be left" "$(safety "-DLEAST=2")"
for mutant in BUG_STALE_JOIN BUG_VOLATILE_FORMED BUG_RAISED_IS_A_DEATH; do
  verdict reject "mutant $mutant" "$(safety "-D$mutant")"
done
verdict reject "mutant BUG_NO_MINIMUM" "$(safety "-DBUG_NO_MINIMUM -DLEAST=2")"
verdict pass "safety, replaced" "$(safety "-DREPLACE -DKILLS=1 -DCRASHES=0")"
for mutant in BUG_STALE_LIFE BUG_EMPTY_PLACE; do
  verdict reject "mutant $mutant" "$(safety "-DREPLACE -DKILLS=2 -D$mutant")"
done
verdict pass "liveness, replaced" "$(liveness "-DREPLACE -DKILLS=1 -DCRASHES=0")"
verdict reject "liveness mutant BUG_NO_ROOM_LIMIT" "$(liveness "-DREPLACE -DKILLS=1 -DCRASHES=0 -DBUG_NO_ROOM_LIMIT")"
verdict pass "liveness" "$(liveness "")"
verdict pass "liveness after one death" "$(liveness "-DKILLS=1")"
for mutant in BUG_NO_LIMIT BUG_RETURNED_AWAITED; do
  verdict reject "liveness mutant $mutant" "$(liveness "-D$mutant -DKILLS=1")"
done
exit $bad
