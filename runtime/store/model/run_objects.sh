#!/usr/bin/env bash
# Checks the object model (1.7 GB; under four minutes on an idle machine): the plain model must
# pass, every mutant must be rejected by the invariant it is meant to break. Exits non-zero unless
# every verdict is the expected one.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../scripts/spin_verdict.sh"
enter_work_folder "$here/objects.pml"
build() {  # spin-options gcc-options
  # shellcheck disable=SC2086
  spin -a $1 objects.pml >/dev/null && gcc -w -O2 $2 -DCOLLAPSE -DMEMLIM=1700 -o pan pan.c
}
whole() {  # a search that did not finish is no verdict: its count of errors is left out
  local output
  output=$(cat)
  if grep -q 'not completed\|max search depth too small' <<<"$output"; then
    output=${output/errors: 0/errors unknown}
  fi
  printf '%s' "$output"
}
safety() { build "$1" "-DSAFETY -DNOCLAIM" && timeout 900 ./pan -m1000000 -w22 2>&1 | whole; }
liveness() { build "$1" "" && timeout 900 ./pan -a -m1000000 -w22 2>&1 | whole; }
mutant() {  # invariant mutant options
  verdict reject "mutant $2 breaks O$1" "$(safety "-D$2 -DONLY=$1 ${3:-}")"
}
verdict pass "borrowing: O1 O2 O3 O5 O6, up to 2 faults" "$(safety "")"
verdict pass "borrowing: every run ends, and ends quiet (1 fault)" "$(liveness "-DFAULTS=1")"
verdict reject "the same, mutant BUG_NO_OWNER_VERDICT" "$(liveness "-DFAULTS=1 -DBUG_NO_OWNER_VERDICT")"
for m in BUG_LOAN_FORGOTTEN BUG_NO_BORROWER_VERDICT; do mutant 2 $m; done
for m in BUG_EOF_RELEASES BUG_TIMEOUT_FORGETS BUG_DEATH_RELEASES BUG_FORK_CLEAN BUG_DUP_DROP \
    BUG_VIEW_UNCOUNTED BUG_MAP_AFTER_RELEASE BUG_STALE_LICENCE; do
  mutant 1 $m
done
mutant 1 BUG_HELLO_CLEAN "-DGIVES=1 -DDEATHS=0 -DSTRIKES=0"
for m in BUG_NO_RESEND BUG_NO_OWNER_VERDICT; do mutant 3 $m; done
for m in BUG_NO_LOAN_PIN BUG_SETTLE_EARLY; do mutant 6 $m; done
verdict reject "vacuity: a segment is rewritten after a hand-on and 2 faults" "$(safety -DREACH)"
verdict reject "vacuity: a reference is lost, a forked child reads an abandoned segment" "$(safety -DREACH2)"

transfer="-DTRANSFER -DCALLS=3 -DLOSSES=2 -DDEATHS=2"
verdict pass "transfer: O1 O2 O3 O7" "$(safety "$transfer")"
verdict pass "transfer: every run ends, and ends quiet" "$(liveness "$transfer")"
for m in BUG_FREE_UNFENCED BUG_OWNER_DEATH_RECYCLES BUG_DUP_REPLY; do mutant 1 $m "$transfer"; done
for m in BUG_VERDICT_BEFORE_DRAIN BUG_NO_ADOPT_ANSWER; do mutant 2 $m "$transfer"; done
for m in BUG_REPLY_BEFORE_ASSIGN BUG_ANSWER_BEFORE_CLOSE BUG_DROP_AT_DEATH; do
  mutant 7 $m "$transfer"
done
verdict reject "vacuity: a value is read after its maker's death" "$(safety "$transfer -DREACH")"
exit $bad
