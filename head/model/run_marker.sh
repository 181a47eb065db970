#!/usr/bin/env bash
# Checks the marker model: the plain model must pass, every mutant must be rejected. Exits non-zero
# unless every verdict is the expected one. `--quick`: one head crash and one lost message instead
# of two, and no liveness of the plain model (about two minutes instead of fifteen).
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../scripts/spin_verdict.sh"
enter_work_folder "$here/marker.pml"
quick=0
small=""
if [ "${1:-}" = "--quick" ]; then
  quick=1
  small="-DCRASHES=1 -DLOSSES=1"
fi
safety() {  # a first error is enough: a mutant's search stops there
  # shellcheck disable=SC2086
  spin -a $1 marker.pml >/dev/null && gcc -w -O2 -DSAFETY -DNOCLAIM -DMEMLIM=3000 -o pan pan.c &&
    timeout 400 ./pan -m1000000 2>&1
}
liveness() {
  # shellcheck disable=SC2086
  spin -a $1 marker.pml >/dev/null && gcc -w -O2 -DNFAIR=4 -DMEMLIM=6000 -o pan pan.c &&
    timeout 600 ./pan -a -f -m2000000 2>&1
}
verdict pass "safety" "$(safety "$small")"
for mutant in BUG_NOFENCE BUG_VISIBLE_FIRST BUG_OVERWRITE BUG_VOLATILE_EPOCH BUG_MEMORY_ONLY BUG_LOST_IS_DONE; do
  verdict reject "mutant $mutant" "$(safety "$small -D$mutant")"
done
verdict reject "vacuity: success by attempt 2 after every crash and loss is reachable" "$(safety "$small -DREACH")"
if [ "$quick" = 0 ]; then
  verdict pass "liveness" "$(liveness "")"
fi
verdict reject "liveness mutant BUG_NO_EXPIRY" "$(liveness "$small -DBUG_NO_EXPIRY")"
exit $bad
