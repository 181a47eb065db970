// Permitted requests to a worker by role: the table against this test's own, for every kind of the
// wire.
#include "runtime/wire/role_table.h"

#include <gtest/gtest.h>

#include <set>

#include "worker/service.h"

namespace troupe::worker {
namespace {

using wire::Role;

template <class Kind>
constexpr std::size_t kOf = wire::KindOf<wire::BodyFamily, Kind>::value;

std::set<Role> WhoMay(std::size_t kind) {
  std::set<Role> found;
  for (const Role role : {Role::kNone, Role::kClient, Role::kWorker, Role::kHead, Role::kProcess,
                          Role::kObserver}) {
    if (wire::MayAskWorker(role, kind)) found.insert(role);
  }
  return found;
}

TEST(PeerRolesTest, ABareWorkerFetchesPayloadsAndDoesNothingElse) {
  for (std::size_t kind = 0; kind < std::size(wire::BodyFamily::kOperations); ++kind) {
    const bool fetches = kind == kOf<wire::GetBlob>;
    EXPECT_EQ(wire::MayAskWorker(Role::kWorker, kind), fetches) << kind;
    const bool logs = kind == kOf<wire::ReadLog> ||
                      kind == kOf<wire::ReadLogs>;
    EXPECT_EQ(wire::MayAskWorker(Role::kObserver, kind), logs) << kind;
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
