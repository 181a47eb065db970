// Usage of users: sums of what they hold (accounts.h) over lived time, and their shares of the
// cluster.
//
//   AC-2  What a user has held in the last 24 hours outlives the head, but for the last five
//         minutes before it was killed.
//
// Pure; view: the cluster.
#pragma once

#include <string>

#include "head/core/machine/turn.h"

namespace troupe::head {

/// After replay: makes the accounts.
void CountAccounts(Turn& turn);
/// At the end of a turn: adds what was held until now to what has been held.
void SettleUsage(Turn& turn);
/// With every input: journals what has been held, every five minutes while somebody holds anything.
void NoteUsage(Turn& turn);

/// A user's dominant share of the last 24 hours. `ahead_s`: with what they hold now counted for so
/// long in addition.
double ShareOf(Turn& turn, const std::string& user, double ahead_s = 0);

void OnGetUsage(Turn& turn, const Request& request, const wire::GetUsage& message);
/// Returns the answer to GetUsage for one user.
wire::UsageList UsageOf(Turn& turn, const Request& request, const std::string& user);

}  // namespace troupe::head
