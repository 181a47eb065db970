// Several people in a run of faults: callers with tokens of owners, whose quotas change meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/client_host.h"
#include "tests/sim/people/administrator.h"
#include "tests/sim/people/people_checker.h"

namespace troupe::sim {

/// A token of this owner that every head of the cluster knows.
wire::TokenWritten TokenOf(const std::string& owner, std::uint64_t number);
/// Looks at the owners after each step of the head.
void Watch(HeadHost& head, PeopleChecker& checker);

class Colleagues {
 public:
  /// Half of the seeds have none.
  Colleagues(std::uint64_t seed, SimLoop& loop, const FaultPlan& plan, Checker& checker,
             HeadHost& head, std::size_t workers);

  /// Gives each caller an owner, before they start; plans changes of quotas.
  void Start(const std::vector<std::unique_ptr<ClientHost>>& clients);
  /// From now on the quotas are such that whatever was submitted can run, one after the other.
  void Heal();
  void CheckEnd();

 private:
  head::Caps DrawCaps();

  SimLoop& loop_;
  Checker& checker_;
  HeadHost& head_;
  const std::size_t workers_;
  Prng random_;  // beside the draws of older seeds
  std::vector<std::string> owners_;
  Administrator administrator_;
  PeopleChecker people_;
};

}  // namespace troupe::sim
