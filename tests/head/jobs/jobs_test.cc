// Method: HeadCore with one node, clients made of words, and launches that start after others.
// JB-1 to JB-3 of head/core/launched/jobs/jobs.h.
#include "head/core/launched/jobs/jobs.h"

#include <algorithm>

#include "tests/head/head_fixture.h"

namespace troupe::head {
namespace {

using wire::LaunchState;
using wire::Outcome;

class Jobs : public HeadFixture {
 protected:
  LaunchId SubmitJob(const std::string& after, const std::string& token = "") {
    wire::SubmitLaunch submit;
    submit.spec.name = "job";
    submit.spec.ranks = 1;
    submit.spec.per_rank = Amounts(1);
    submit.spec.detached = true;
    submit.request = RequestId(12, ++requests_);
    Set(&submit.spec, kJobAfter, after);
    Set(&submit.spec, kJobTokenId, token);
    Say(client_, submit, requests_);
    return Last<wire::LaunchAccepted>(client_).launch;
  }
  static void Set(wire::LaunchSpec* spec, const char* name, const std::string& value) {
    if (value.empty()) return;
    wire::EnvVar& variable = spec->environment.env.emplace_back();
    variable.name = name;
    variable.value = value;
  }
  void Answer() {
    for (int step = 0; step < 3; ++step) Serve(node_);
  }
  void End(LaunchId id, Outcome outcome) {
    Finish(node_, id, 0, LaunchOf(id).epoch, outcome);
    Answer();
  }
  bool Ended(LaunchId id, Outcome outcome) const {
    return LaunchOf(id).marker && LaunchOf(id).marker->outcome == outcome;
  }
  std::string WaitsFor(LaunchId id) {
    wire::GetLaunch get;
    get.launch = id;
    Say(client_, get, 70);
    return Last<wire::LaunchUpdate>(client_).info.waiting_for;
  }
  bool IsRefused(const std::string& after) {
    const std::size_t before = core_->state().launches.size();
    SubmitJob(after);
    return core_->state().launches.size() == before;
  }

  FakeNode node_ = Join(1, 8);
  SessionId client_ = Open(wire::Role::kClient, Id128{9, 1});
};

TEST_F(Jobs, JB1_AJobStartsWhenAllBeforeItHaveSucceeded) {
  const LaunchId first = SubmitJob("");
  const LaunchId second = SubmitJob("");
  const LaunchId third = SubmitJob(first.Hex() + "," + second.Hex());
  const LaunchId other = SubmitJob("");
  Answer();
  EXPECT_EQ(LaunchOf(third).phase, LaunchState::kQueued) << "there is room";
  EXPECT_EQ(LaunchOf(other).phase, LaunchState::kRunning) << "nothing is kept for one that waits";
  EXPECT_NE(WaitsFor(third).find("the end of launch " + first.Short()), std::string::npos);
  End(first, Outcome::kSucceeded);
  EXPECT_EQ(LaunchOf(third).phase, LaunchState::kQueued);
  Boot();
  client_ = Open(wire::Role::kClient, Id128{9, 1});
  EXPECT_EQ(WaitsFor(third).find(first.Short()), std::string::npos);
  EXPECT_NE(WaitsFor(third).find(second.Short()), std::string::npos);
}

TEST_F(Jobs, JB1_TheSuccessOfTheLastOneIsEnoughToStart) {
  const LaunchId first = SubmitJob("");
  const LaunchId second = SubmitJob(first.Hex());
  Answer();
  End(first, Outcome::kSucceeded);
  Answer();
  EXPECT_EQ(LaunchOf(second).phase, LaunchState::kRunning);
}

TEST_F(Jobs, JB2_AFailureFailsAllThatComeAfterIt) {
  const LaunchId first = SubmitJob("");
  std::vector<LaunchId> chain{SubmitJob(first.Hex())};
  for (int i = 0; i < 300; ++i) chain.push_back(SubmitJob(chain.back().Hex()));
  Answer();
  End(first, Outcome::kFailed);
  EXPECT_TRUE(std::all_of(chain.begin(), chain.end(),
                          [&](LaunchId id) { return Ended(id, Outcome::kFailed); }));
  EXPECT_NE(LaunchOf(chain[0]).marker->cause.find(first.Short()), std::string::npos);
  EXPECT_TRUE(core_->state().waiting_after.empty());
}

TEST_F(Jobs, JB2_AfterARestartToo) {
  const LaunchId first = SubmitJob("");
  const LaunchId second = SubmitJob(first.Hex());
  wire::CancelLaunch cancel;
  cancel.launch = first;
  cancel.hard = true;
  auto_commit_ = false;
  Say(client_, cancel, 5);
  // The head is killed when the marker of the first is durable, and that of the second is not.
  for (const Row& row : pending_) {
    const auto* written = wire::GetIf<wire::MarkerWritten>(&row.event.body);
    if (written != nullptr && written->marker.launch == second) break;
    durable_.push_back(row.event);
  }
  auto_commit_ = true;
  Boot();
  EXPECT_TRUE(Ended(first, Outcome::kCancelled));
  EXPECT_TRUE(Ended(second, Outcome::kFailed));
}

TEST_F(Jobs, JB1_WhatNeverCouldStartIsRefused) {
  const LaunchId failed = SubmitJob("");
  Answer();
  End(failed, Outcome::kFailed);
  EXPECT_TRUE(IsRefused(failed.Hex()));
  EXPECT_TRUE(IsRefused(LaunchId(1, 2).Hex()));
  EXPECT_TRUE(IsRefused("nonsense"));
  std::string many = failed.Hex();
  for (std::size_t i = 0; i < kJobAfterMax; ++i) many += "," + failed.Hex();
  EXPECT_TRUE(IsRefused(many));
}

TEST_F(Jobs, JB3_ATokenEndsWithItsJobAndAllThatCameByIt) {
  wire::CreateToken create;
  create.role = wire::Role::kClient;
  Say(client_, create, 1);
  const TokenId used = Last<wire::TokenCreated>(client_).id;
  Say(client_, create, 2);
  const TokenId idle = Last<wire::TokenCreated>(client_).id;
  const LaunchId job = SubmitJob("", used.Hex());
  const LaunchId other = SubmitJob("", idle.Hex());
  Answer();
  Feed(TokenUsed{used});
  SessionOpened opened;
  opened.session = SessionId(200, 1);
  opened.role = wire::Role::kClient;
  opened.subject = Id128(5, 5);
  opened.token = used;
  Feed(opened);
  EXPECT_TRUE(closed_.empty());
  End(job, Outcome::kSucceeded);
  End(other, Outcome::kSucceeded);
  EXPECT_TRUE(core_->state().tokens.at(used).revoked);
  EXPECT_EQ(core_->state().tokens.count(idle), 0u) << "nobody has used it";
  EXPECT_TRUE(std::any_of(closed_.begin(), closed_.end(),
                          [&](const Close& each) { return each.session == opened.session; }));
}

}  // namespace
}  // namespace troupe::head
