// The administrator of a simulated cluster, who sets quotas again and again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "head/core/machine/users.h"
#include "tests/sim/checkers.h"
#include "tests/sim/head_host.h"

namespace troupe::sim {

class Administrator {
 public:
  Administrator(SimLoop& loop, const FaultPlan& plan, Checker& checker, HeadHost& head)
      : loop_(loop), plan_(plan), checker_(checker), head_(head) {}

  void Start() { Dial(); }
  /// Sets the owner's caps: asks until the head has answered.
  void Set(const std::string& owner, head::Caps caps);
  /// The head has answered for all of them.
  bool satisfied() const { return wanted_.empty(); }

 private:
  void Dial();
  void Ask(const std::string& owner);
  void OnMessage(const wire::Message& message);

  SimLoop& loop_;
  const FaultPlan& plan_;
  Checker& checker_;
  HeadHost& head_;
  std::shared_ptr<Link> link_;
  std::uint64_t ids_ = 0;
  std::map<std::string, head::Caps> wanted_;    // not answered yet
  std::map<std::uint64_t, std::string> asked_;  // the latest of each owner
};

}  // namespace troupe::sim
