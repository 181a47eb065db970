// Who may ask a worker what: the table against what is said here, for every kind of the wire.
#include "worker/peer_roles.h"

#include <gtest/gtest.h>

#include <set>

#include "worker/service.h"

namespace troupe::worker {
namespace {

using wire::Role;

std::set<Role> WhoMay(std::size_t kind) {
  std::set<Role> found;
  for (const Role role : {Role::kNone, Role::kClient, Role::kWorker, Role::kHead, Role::kProcess,
                          Role::kObserver}) {
    if (MayAsk(role, kind)) found.insert(role);
  }
  return found;
}

TEST(PeerRolesTest, ABareWorkerFetchesPayloadsAndDoesNothingElse) {
  for (std::size_t kind = 0; kind < std::size(wire::BodyFamily::kOperations); ++kind) {
    const bool fetches = kind == peer_rows::Of<wire::GetBlob>();
    EXPECT_EQ(MayAsk(Role::kWorker, kind), fetches) << kind;
    const bool logs = kind == peer_rows::Of<wire::ReadLog>() ||
                      kind == peer_rows::Of<wire::ReadLogs>();
    EXPECT_EQ(MayAsk(Role::kObserver, kind), logs) << kind;
  }
}

TEST(PeerRolesTest, WhatAWorkerAnswersHasARow) {
  const std::set<Role> all = {Role::kClient, Role::kHead, Role::kProcess};
  for (std::size_t kind = 0; kind < std::size(wire::BodyFamily::kOperations); ++kind) {
    const bool handled = Service::Handles(wire::Body::OfKind(kind));
    std::set<Role> who = WhoMay(kind);
    who.erase(Role::kWorker);
    who.erase(Role::kObserver);
    EXPECT_EQ(who, handled ? all : std::set<Role>()) << kind;
  }
}

}  // namespace
}  // namespace troupe::worker
