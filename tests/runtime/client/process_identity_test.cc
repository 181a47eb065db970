// Method: ProcessIdentity over a ControlClient on a socketpair; a coroutine with an authority
// answers for the head, with certificates of a chosen age, or refuses.
#include "runtime/client/process_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/runtime/client/paired_client.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::client {
namespace {

using async::Task;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const ActorId kActor(3, 4);
constexpr std::uint64_t kHourUs = 3600ull * 1'000'000;

class Identity : public PairedClientTest {
 protected:
  void SetUp() override {
    Pair([this](std::shared_ptr<net::Connection> connection) {
      return Serve(this, std::move(connection));
    });
  }
  static Task<void> Serve(Identity* self, std::shared_ptr<net::Connection> connection) {
    for (;;) {
      StatusOr<wire::Message> question = co_await connection->Receive();
      if (!question.ok()) co_return;
      const wire::Message answer = self->Answer(*question);
      if (!connection->Send(answer).ok()) co_return;
    }
  }
  wire::Message Answer(const wire::Message& question) {
    ++asked_;
    wire::Message answer;
    answer.reply_to = question.id;
    if (refuse_) {
      wire::ErrorReply error;
      error.code = static_cast<std::uint16_t>(ErrorCode::kJoinRefused);
      error.text = "no such actor here";
      answer.body = error;
      return answer;
    }
    const auto& ask = wire::Get<wire::CertifyProcess>(question.body);
    const std::uint64_t issued = cluster_.clock.WallTimeUs() - age_hours_ * kHourUs;
    wire::ProcessCertificate given;
    given.certificate =
        *cluster_.authority.Issue(ask.request, wire::Role::kProcess, kActor, issued);
    given.ca_certificate = cluster_.authority.certificate().Pem();
    answer.body = given;
    return answer;
  }

  net::TestCluster cluster_;
  std::atomic<int> asked_{0};
  std::atomic<bool> refuse_{false};
  std::atomic<std::uint64_t> age_hours_{0};
};

TEST_F(Identity, NothingIsAskedBeforeItIsNeededAndOnceForMany) {
  ProcessIdentity identity(client_);
  EXPECT_EQ(asked_, 0);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto shown = identity.Get();
      if (shown.ok() && (*shown)->credentials.certificate.identity()->id == kActor) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(asked_, 1);
}

TEST_F(Identity, WhatJoiningBroughtServesWithoutAsking) {
  ProcessIdentity identity(client_, cluster_.Issue(wire::Role::kClient));
  ASSERT_TRUE(identity.Get().ok());
  EXPECT_EQ(asked_, 0);
}

TEST_F(Identity, ARefusalIsToldAndTheNextNeedAsksAgain) {
  refuse_ = true;
  ProcessIdentity identity(client_);
  EXPECT_THAT(MessageOf(identity.Get().status()), HasSubstr("no such actor here"));
  refuse_ = false;
  EXPECT_TRUE(identity.Get().ok());
}

TEST_F(Identity, AtTwoThirdsOfItsLifeANewOneIsShownWithAnotherKey) {
  age_hours_ = 20;
  ProcessIdentity identity(client_);
  const auto old = identity.Get();
  ASSERT_TRUE(old.ok()) << old.status();
  age_hours_ = 0;
  const auto renewed = identity.Get();
  ASSERT_TRUE(renewed.ok());
  EXPECT_EQ(asked_, 2);
  EXPECT_NE((*old)->credentials.certificate.KeyHash(),
            (*renewed)->credentials.certificate.KeyHash());
  ASSERT_TRUE(identity.Get().ok());
  EXPECT_EQ(asked_, 2);
}

TEST_F(Identity, TheOldOneServesWhileRenewalFails) {
  age_hours_ = 20;
  ProcessIdentity identity(client_);
  ASSERT_TRUE(identity.Get().ok());
  refuse_ = true;
  EXPECT_TRUE(identity.Get().ok());
  EXPECT_TRUE(identity.Get().ok());
  EXPECT_EQ(asked_, 2) << "not at every use";
}

TEST_F(Identity, WithoutItsChannelThereIsNone) {
  client_->Close();
  ProcessIdentity identity(client_);
  EXPECT_THAT(MessageOf(identity.Get().status()), HasSubstr("no certificate"));
}

}  // namespace
}  // namespace troupe::client
