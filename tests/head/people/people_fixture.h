// A head with users: clients that came by tokens with an owner, and launches of theirs.
#pragma once

#include <string>

#include "head/core/machine/accounts.h"
#include "tests/head/head_fixture.h"

namespace troupe::head {

inline constexpr char kAdministrator[] = "root";

class PeopleFixture : public HeadFixture {
 protected:
  PeopleFixture() {
    options_.user = kAdministrator;
    options_.keep_after = std::chrono::hours(8);
    // Nodes that are silent for days are not lost.
    options_.suspect_after = options_.dead_after = std::chrono::hours(1000);
    Start();
  }
  void Start() {
    Boot();
    admin_ = Open(wire::Role::kClient, Id128{9, ++clients_});
  }

  /// A client that came by a new token of this owner.
  SessionId OpenAs(const std::string& user, wire::Role role = wire::Role::kClient) {
    wire::CreateToken create;
    create.role = role;
    create.user = user;
    Say(admin_, create, 1);
    return OpenBy(Last<wire::TokenCreated>(admin_).id, role);
  }
  SessionId OpenBy(const TokenId& token, wire::Role role = wire::Role::kClient) {
    SessionOpened opened;
    opened.session = SessionId(100, ++sessions_);
    opened.role = role;
    opened.subject = Id128{9, ++clients_};
    opened.token = token;
    Feed(opened);
    return opened.session;
  }
  void SetQuota(const std::string& user, std::vector<wire::Cap> caps) {
    wire::SetQuota quota;
    quota.user = user;
    quota.caps = std::move(caps);
    Say(admin_, quota, 2);
  }
  /// A launch of one rank.
  LaunchId SubmitOne(SessionId client, std::uint64_t cpus, std::uint64_t gpus = 0) {
    wire::SubmitLaunch submit;
    submit.spec.ranks = 1;
    submit.spec.per_rank = Amounts(cpus, gpus);
    submit.spec.detached = true;
    submit.request = RequestId(11, ++requests_);
    Say(client, submit, 1000 + requests_);
    const auto known = core_->state().requests.find(submit.request);
    return known == core_->state().requests.end() ? LaunchId() : known->second;
  }
  void Answer(const FakeNode& node) {
    for (int step = 0; step < 3; ++step) Serve(node);
  }
  void End(const FakeNode& node, LaunchId id) {
    Finish(node, id, 0);
    Answer(node);
  }
  bool Runs(LaunchId id) const { return LaunchOf(id).on_nodes(); }
  wire::LaunchInfo Info(LaunchId id) {
    wire::GetLaunch get;
    get.launch = id;
    Say(admin_, get, 70);
    return Last<wire::LaunchUpdate>(admin_).info;
  }
  std::string Refusal(SessionId client) { return Last<wire::ErrorReply>(client).text; }
  wire::UserUsage UsageOfUser(const std::string& user) {
    wire::GetUsage get;
    get.user = user;
    Say(admin_, get, 71);
    return Last<wire::UsageList>(admin_).users.at(0);
  }
  /// AC-1: the accounts that are kept are those that a count gives.
  void CheckAccounts() const {
    std::map<std::string, Account> kept;
    for (const auto& [name, user] : core_->state().users.by_name) {
      if (user.account != Account()) kept[name] = user.account;
    }
    EXPECT_EQ(kept, AccountsOf(core_->state()));
  }

  SessionId admin_;
  std::uint64_t clients_ = 0;
};

}  // namespace troupe::head
