// Holdings of users, kept with every event of a group.
//
//   AC-1  The accounts are what a count over all groups gives, after every event.
//
// Pure; view: the cluster.
#pragma once

#include <map>
#include <string>

#include "head/core/machine/state.h"

namespace troupe::head {

/// Takes a group's part out of its user's account, and at its end puts in what it is then. While
/// state is replayed nothing is counted: CountAccounts follows (usage.h).
class Recount {
 public:
  Recount(State& state, const GroupId& group);
  ~Recount();
  Recount(const Recount&) = delete;
  Recount& operator=(const Recount&) = delete;

 private:
  State& state_;
  const GroupId group_;
  std::string user_;
  Account before_;
};

/// The accounts by a count over all groups.
std::map<std::string, Account> AccountsOf(const State& state);

/// Returns true if a group is a launch that counts among its user's. One that a job has made does
/// not: it runs because its job runs, which would wait for ever for a cap that it fills itself.
bool CountsAsLaunch(const State& state, const Group& group);
/// Returns the part of a user's quota that a group needs to get a place.
CapAmounts NeedsOf(const State& state, const Group& group);
/// Returns the sum of the bundles of a group that is no launch's.
Resources WantedBy(const wire::GroupSubmitted& spec);
/// The journal's words for what there is of a user.
wire::QuotaWritten QuotaOf(const std::string& name, const Caps& caps);
wire::UsageNoted NoteOf(const std::string& name, std::uint64_t hour,
                        const placement::UsageWindow::Sums& sums);
/// Returns the resources of all living nodes.
const Resources& TotalOf(State& state);

}  // namespace troupe::head
