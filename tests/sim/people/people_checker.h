// Invariants of the owners of a simulated cluster, looked at after every step of the head.
//
//   PE-1  Nobody is granted anything that takes them over a cap on GPUs, CPUs or running launches,
//         and no launch is taken that is over a cap by itself or has no place in its owner's queue
//         (QT-1, QT-2).
//   PE-2  The accounts are what a count over all reservations gives (AC-1).
//   PE-3  No owner starves: whoever has a request that waits is granted one within a given time,
//         anew when a node is lost with what they had.
//   PE-4  Over a day, the dominant shares of owners who always have requests of one size differ by
//         5 % at most.
//   PE-5  What the head says that an owner has held is what they held while a head ran, but for
//         five minutes at each crash (AC-2).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "head/core/machine/accounts.h"
#include "tests/sim/checkers.h"

namespace troupe::sim {

class PeopleChecker {
 public:
  PeopleChecker(const SimLoop& loop, Checker& checker) : loop_(loop), checker_(checker) {}

  /// After a step or a start of the head that is in its `life`th life.
  void OnState(const head::State& state, std::uint64_t life);
  /// The head is away from now on.
  void OnCrash();
  /// PE-3; nullopt: not looked at.
  void set_granted_within(Duration most) { granted_within_ = most; }

  /// At the end of a day: PE-4 of `equals`.
  void CheckShares(const std::set<std::string>& equals);
  /// At the end of a day: PE-5.
  void CheckUsage(const head::State& state);
  std::uint64_t grants() const { return grants_; }
  /// The longest that an owner who had a request that waited was granted none.
  Duration longest_wait() const { return longest_wait_; }
  /// By which part the smallest share of `equals` is less than the largest one.
  double SpreadOf(const std::set<std::string>& equals) const;

 private:
  struct Owner {
    head::Account account;              // at the step before
    std::map<std::string, double> seconds;  // by resource: of all that there was
    double part_max = 0;
    Instant since{};  // last time that a request of theirs waits, was granted or lost its place;
                      // zero: none waits
  };
  void CheckAccounts(const head::State& state) const;
  void CheckCaps(const head::User& user, const std::string& name, const Owner& before);
  void CheckSubmitted(const head::State& state);
  void CheckWaits(const head::State& state);
  void AddHeld(const head::State& state);

  const SimLoop& loop_;
  Checker& checker_;
  std::map<std::string, Owner> owners_;
  std::set<LaunchId> launches_;
  std::set<GroupId> granted_;
  std::uint64_t life_ = 0;
  std::uint64_t orders_ = 0;
  std::optional<Instant> counted_;  // until then `seconds` are; nullopt: no head runs
  head::Resources total_;
  std::optional<Duration> granted_within_;
  Duration longest_wait_{};
  std::uint64_t grants_ = 0;
  std::uint64_t changes_ = 0;  // crashes of the head, and changes of what the cluster has
};

}  // namespace troupe::sim
