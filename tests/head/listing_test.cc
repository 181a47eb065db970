// Method: many requests wait on a node that is in use, and a list of them is asked for.
#include "head/core/machine/listing.h"

#include <algorithm>
#include <string>

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

class Listings : public HeadFixture {
 protected:
  void SetUp() override {
    Boot();
    node_ = Join(1, 1000);
    client_ = Open(wire::Role::kClient, Id128{9, 1});
    Create(GroupId(4, 1), 1000);
    Serve(node_);
  }

  void Create(GroupId id, std::uint64_t cpus) {
    wire::CreateGroup create;
    create.group = id;
    create.bundles.resize(1);
    create.bundles[0].resources = Amounts(cpus);
    Say(client_, create, 50);
  }

  std::vector<wire::GroupInfo> List() {
    Say(client_, wire::ListGroups(), 60);
    std::vector<wire::GroupInfo> groups = Last<wire::GroupList>(client_).groups;
    std::sort(groups.begin(), groups.end(),
              [](const auto& a, const auto& b) { return a.group < b.group; });
    return groups;
  }

  FakeNode node_;
  SessionId client_;
};

TEST_F(Listings, EachThatWaitsHasItsPlaceAndWhatItMisses) {
  for (std::uint64_t i = 1; i <= 20; ++i) Create(GroupId(5, i), 1 + i % 2);
  const std::vector<wire::GroupInfo> groups = List();
  ASSERT_EQ(groups.size(), 21u);
  EXPECT_EQ(groups[0].state, wire::GroupState::kCreated);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(groups[i].queue_place, i);
    const std::string cpus = std::to_string(1 + i % 2);
    EXPECT_EQ(groups[i].reason, "{CPU: " + cpus + "}: node-a in use: " + cpus + " more CPU needed");
  }
}

TEST_F(Listings, OfTooManyKindsOneSaysWhereToAsk) {
  for (std::uint64_t i = 1; i <= Listing::kExplainedMax + 1; ++i) Create(GroupId(5, i), i);
  const std::vector<wire::GroupInfo> groups = List();
  ASSERT_EQ(groups.size(), Listing::kExplainedMax + 2);
  EXPECT_NE(groups[Listing::kExplainedMax].reason.find("100 more CPU needed"), std::string::npos);
  EXPECT_EQ(groups.back().queue_place, Listing::kExplainedMax + 1);
  EXPECT_EQ(groups.back().reason, "room: troupe explain 00000000 says what is missing");
}

}  // namespace
}  // namespace troupe::head
