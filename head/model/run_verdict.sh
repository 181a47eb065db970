#!/usr/bin/env bash
# Checks the model of the verdict on a failed epoch: the plain model must pass, every mutant must be
# rejected. Exits non-zero unless every verdict is the expected one. Seconds.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../scripts/spin_verdict.sh"
enter_work_folder "$here/verdict.pml"
safety() {
  # shellcheck disable=SC2086
  spin -a $1 verdict.pml >/dev/null && gcc -w -O2 -DSAFETY -DNOCLAIM -o pan pan.c && timeout 300 ./pan -m1000000 2>&1
}
liveness() {
  # shellcheck disable=SC2086
  spin -a $1 verdict.pml >/dev/null && gcc -w -O2 -DNFAIR=4 -o pan pan.c && timeout 300 ./pan -a -f -m1000000 2>&1
}
verdict pass "safety" "$(safety "")"
for mutant in BUG_FIRST_WORD BUG_EARLY_ANSWER BUG_SUCCESS; do
  verdict reject "mutant $mutant" "$(safety "-D$mutant")"
done
verdict pass "liveness" "$(liveness "")"
verdict reject "liveness mutant BUG_FORGOTTEN" "$(liveness "-DBUG_FORGOTTEN")"
exit $bad
