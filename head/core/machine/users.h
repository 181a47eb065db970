// The users of a cluster: the people whose tokens its clients came by, with what is known of each.
//
// View: the cluster's; the reducer's (state.h). A user is a name: the owner of a token, and for who
// comes without one (a process on the head's host, of the same uid) the name of the user that the
// head runs as.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "placement/fair_share.h"
#include "placement/resources.h"
#include "runtime/base/time.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

/// The most that all of a user's requests may have together; a kind that is missing has no limit.
using Caps = std::map<wire::CapKind, std::uint64_t>;
/// So much of each kind of cap.
using CapAmounts = std::array<std::uint64_t, 4>;
inline std::uint64_t& Of(CapAmounts& amounts, wire::CapKind kind) {
  return amounts[static_cast<std::size_t>(kind)];
}

/// The sum of all top-level requests of a user now.
struct Account {
  placement::Resources held;  // by those that have a place
  std::uint32_t running = 0;  // launches with a place, but for those that a job has made
  std::uint32_t queued = 0;   // launches without one

  friend bool operator==(const Account&, const Account&) = default;
};

struct User {
  // durable
  Caps caps;
  placement::UsageWindow used;  // by lived time (lived_time.h)
  // volatile
  Account account;
  placement::Resources counted;  // holdings from `counted_us` on, not in `used` yet
  std::uint64_t counted_us = 0;    // lived time
  std::uint64_t noted_hour = 0;    // the latest of `used` that is journaled, at least in part
  bool unnoted = false;            // `used` has more than the journal
  Instant first_granted_at{};      // the first of the requests that waited got a place
};

struct Users {
  std::map<std::string, User> by_name;
  // volatile
  std::string self;                // the user that the head runs as
  std::set<std::string> changed;  // users whose account has changed in this turn
  bool freed = false;  // true if groups that waited for a quota may go on
  placement::Resources total;  // resources of all nodes that are not dead
  bool total_stale = true;
  Instant noted_at{};              // when usage was journaled

  /// The user that a record names; records older than users name none.
  const std::string& Named(const std::string& name) const { return name.empty() ? self : name; }
};

}  // namespace troupe::head
