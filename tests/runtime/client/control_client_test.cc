// Method: a ControlClient talks over a Unix socketpair, or through a real listener, to a server
// written as one coroutine on a thread of its own; the server answers late, out of order, with
// errors, or goes away.
#include "runtime/client/control_client.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "runtime/async/loop_thread.h"
#include "runtime/client/request_table.h"
#include "tests/runtime/client/paired_client.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::client {
namespace {

namespace asio = async::asio;
using async::Task;
using net::Connection;
using wire::Message;
using namespace std::chrono_literals;

Message Note(const std::string& text) {
  Message message;
  wire::Ok body;
  body.text = text;
  message.body = body;
  return message;
}
std::string TextOf(const Message& message) { return wire::Get<wire::Ok>(message.body).text; }

// Answers "fail" with an error, "silence" never, "heard, then silence" with a push alone, "die" by
// closing; "pushes N" by N pushes first; two questions "hold" are answered in the reverse order.
Task<void> Serve(std::shared_ptr<Connection> connection) {
  std::vector<std::uint64_t> held;
  for (;;) {
    StatusOr<Message> question = co_await connection->Receive();
    if (!question.ok()) co_return;
    const std::string text = TextOf(*question);
    Message answer = Note("re: " + text);
    answer.reply_to = question->id;
    answer.attachment = question->attachment;
    if (text == "silence") continue;
    if (text == "heard, then silence") {
      if (!connection->Send(Note("heard")).ok()) co_return;
      continue;
    }
    if (text == "die")
      co_return connection->Close(MakeError(ErrorCode::kConnection, "the test closes"));
    if (text == "fail") {
      wire::ErrorReply error;
      error.code = static_cast<std::uint16_t>(ErrorCode::kNotFound);
      error.text = "no such actor";
      answer.body = error;
    }
    if (text.substr(0, 6) == "pushes") {
      for (int i = 0; i < std::stoi(text.substr(7)); ++i) {
        if (!connection->Send(Note("push " + std::to_string(i))).ok()) co_return;
      }
    }
    if (text == "hold") {
      held.push_back(question->id);
      if (held.size() < 2) continue;
      while (!held.empty()) {
        Message late = Note("answer to " + std::to_string(held.back()));
        late.reply_to = held.back();
        held.pop_back();
        if (!connection->Send(late).ok()) co_return;
      }
      continue;
    }
    if (!connection->Send(answer).ok()) co_return;
  }
}

Task<void> ServeAndTell(std::shared_ptr<Connection> connection, std::promise<void>* over) {
  co_await Serve(std::move(connection));
  over->set_value();
}

class ControlClientTest : public PairedClientTest {
 protected:
  void SetUp() override {
    Pair([this](std::shared_ptr<Connection> connection) {
      return ServeAndTell(std::move(connection), &served_);
    });
  }
  StatusOr<Message> Ask(const std::string& text, std::optional<Duration> limit = 10s) {
    return client_->Request(Note(text), limit);
  }

  std::promise<void> served_;
};

TEST_F(ControlClientTest, AQuestionGetsItsAnswerWithTheAttachment) {
  Message question = Note("hello");
  question.attachment = std::string(2 << 20, 'x');
  const auto answer = client_->Request(question, 10s);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(TextOf(*answer), "re: hello");
  EXPECT_EQ(answer->attachment, question.attachment);
}

TEST_F(ControlClientTest, ManyThreadsShareItAndAnswersFindTheirQuestion) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t, &wrong] {
      for (int i = 0; i < 100; ++i) {
        const std::string text = std::to_string(t) + "/" + std::to_string(i);
        const auto answer = Ask(text);
        if (!answer.ok() || TextOf(*answer) != "re: " + text) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ControlClientTest, AnswersOutOfOrderAreMatchedById) {
  auto first = std::async(std::launch::async, [this] { return Ask("hold"); });
  auto second = std::async(std::launch::async, [this] { return Ask("hold"); });
  const auto a = first.get(), b = second.get();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(TextOf(*a), "answer to " + std::to_string(std::stoi(TextOf(*a).substr(10))));
  EXPECT_NE(TextOf(*a), TextOf(*b));
}

TEST_F(ControlClientTest, AnErrorReplyBecomesItsStatus) {
  const auto answer = Ask("fail");
  EXPECT_EQ(ErrorCodeOf(answer.status()), ErrorCode::kNotFound);
  EXPECT_EQ(MessageOf(answer.status()), "no such actor");
}

TEST_F(ControlClientTest, OfWhatNobodyWaitsForOnlyARefusalIsHeard) {
  const auto asked = client_->Ask(Note("hello"));
  const auto refused = client_->Ask(Note("fail"));
  ASSERT_TRUE(asked.ok() && *asked && refused.ok() && *refused);
  const auto error = client_->NextPush(10s);
  ASSERT_TRUE(error.ok() && *error);
  EXPECT_EQ(wire::Get<wire::ErrorReply>((*error)->body).text, "no such actor");
  ASSERT_NE((*error)->asked, nullptr);
  EXPECT_EQ(TextOf(*(*error)->asked), "fail");
}

TEST_F(ControlClientTest, SoMuchIsAskedAtATimeAndNoMore) {
  for (std::size_t i = 0; i < kAskedMax; ++i) {
    const auto asked = client_->Ask(Note("silence"));
    ASSERT_TRUE(asked.ok() && *asked) << i;
  }
  const auto one_more = client_->Ask(Note("silence"));
  ASSERT_TRUE(one_more.ok());
  EXPECT_FALSE(*one_more);
  EXPECT_TRUE(Ask("still there").ok());
}

TEST_F(ControlClientTest, ADeadlineEndsAWaitAndNamesWhatWasAsked) {
  const auto answer = Ask("silence", 30ms);
  EXPECT_EQ(ErrorCodeOf(answer.status()), ErrorCode::kTimeout);
  EXPECT_EQ(MessageOf(answer.status()), "timed out after 0.0 s: the answer of the worker to Ok");
  EXPECT_TRUE(Ask("still there").ok());
}

TEST_F(ControlClientTest, ThePollHookEndsAWait) {
  int polls = 0;
  const auto hook = [&polls]() -> Status {
    return ++polls < 2 ? Status() : MakeError(ErrorCode::kCancelled, "Ctrl-C");
  };
  const auto answer = client_->Request(Note("silence"), std::nullopt, hook);
  EXPECT_EQ(ErrorCodeOf(answer.status()), ErrorCode::kCancelled);
  EXPECT_EQ(polls, 2);
}

TEST_F(ControlClientTest, ALostConnectionEndsEveryWaitAndNamesThePeer) {
  auto waiting =
      std::async(std::launch::async, [this] { return Ask("heard, then silence", std::nullopt); });
  // else the server might close on it unread: a reset, not an end
  ASSERT_TRUE(client_->NextPush(10s).ok());
  auto pushes = std::async(std::launch::async, [this] { return client_->NextPush(std::nullopt); });
  const auto dying = Ask("die");
  for (const Status& status : {dying.status(), waiting.get().status(), pushes.get().status(),
                               Ask("later").status(), client_->status()}) {
    EXPECT_EQ(ErrorCodeOf(status), ErrorCode::kConnection);
    EXPECT_EQ(MessageOf(status), "the worker closed the connection");
  }
}

TEST_F(ControlClientTest, PushesAreQueuedInOrder) {
  ASSERT_TRUE(Ask("pushes 3").ok());
  for (int i = 0; i < 3; ++i) {
    const auto push = client_->NextPush(10s);
    ASSERT_TRUE(push.ok() && *push);
    EXPECT_EQ(TextOf(**push), "push " + std::to_string(i));
  }
  const auto none = client_->NextPush(10ms);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(*none);
}

TEST_F(ControlClientTest, AnUnknownKindIsNotCalledBack) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd theirs(ends[1]);
  const auto refused =
      ControlClient::Adopt(UniqueFd(ends[0]), "the worker", {{"Nonsense", [](const Message&) {}}});
  EXPECT_EQ(ErrorCodeOf(refused.status()), ErrorCode::kInvalid);
}

TEST_F(ControlClientTest, CloseSendsWhatIsQueuedAndLaterCallsSaySo) {
  ASSERT_TRUE(client_->Send(Note("one-way")).ok());
  client_->Close();
  client_->Close();
  EXPECT_EQ(MessageOf(Ask("late").status()), "the connection to the worker was closed here");
}

TEST_F(ControlClientTest, AForkedChildHasAnInertClientAndNotItsSocket) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto answer = client_->Request(Note("hello"), std::nullopt);
    const bool inert = MessageOf(answer.status()).find("forked child") != std::string::npos;
    client_.reset();
    _exit(inert ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Ask("the parent goes on").ok());
}

TEST_F(ControlClientTest, SomebodyElsesChildDoesNotKeepTheConnectionOpen) {
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(gate[1]);
    char byte;
    _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);  // until the parent closes its end
  }
  close(gate[0]);
  client_->Close();
  // The server sees the end although the child lives.
  EXPECT_EQ(served_.get_future().wait_for(10s), std::future_status::ready);
  close(gate[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// ---- through a listener ----

Task<void> Welcome(std::shared_ptr<Connection> connection, net::TestCluster* cluster) {
  const auto admitted =
      co_await net::Authenticate(connection, cluster->rules, cluster->clock, cluster->random);
  if (admitted.ok()) co_await Serve(connection);
}

class ConnectTest : public ::testing::Test {
 protected:
  net::Address Listen(net::Address address) {
    std::promise<net::Address> bound;
    asio::post(server_.executor(), [&] {
      scope_ = std::make_unique<async::Scope>(server_.executor(), "server");
      net::ListenOptions options;
      options.address = std::move(address);
      options.tls = cluster_.Server();
      listener_ = *net::Listener::Open(server_.executor(), std::move(options));
      listener_->Start([this](std::shared_ptr<Connection> connection) {
        scope_->Spawn("welcome", Welcome(std::move(connection), &cluster_));
      });
      bound.set_value(listener_->address());
    });
    return bound.get_future().get();
  }
  void TearDown() override {
    server_.Stop();
    listener_.reset();
  }
  static net::OpenOptions To(const net::Address& address) {
    net::OpenOptions options(address);
    options.hello.role = wire::Role::kClient;
    return options;
  }

  net::TempFolder folder_;
  net::TestCluster cluster_;
  async::LoopThread server_{"server"};
  std::unique_ptr<async::Scope> scope_;
  std::unique_ptr<net::Listener> listener_;
};

TEST_F(ConnectTest, ByUnixSocketAsTheSameUser) {
  const auto client = ControlClient::Connect(To(Listen(*net::UnixAddress(folder_.path() + "/s"))));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->joined().welcome.cluster_id, cluster_.authority.cluster_id());
  EXPECT_TRUE((*client)->Request(Note("hello"), 10s).ok());
}

TEST_F(ConnectTest, ByTokenOverTls) {
  net::OpenOptions options = To(Listen(*net::TcpAddress("127.0.0.1", 0)));
  options.token = cluster_.NewToken(wire::Role::kClient);
  const auto client = ControlClient::Connect(std::move(options));
  ASSERT_TRUE(client.ok()) << client.status();
  Message question = Note("hello");
  question.attachment = std::string(5 << 20, 'b');
  const auto answer = (*client)->Request(question, 10s);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->attachment, question.attachment);
}

TEST_F(ConnectTest, WithoutATokenTheErrorSaysHowToGetOne) {
  const auto client = ControlClient::Connect(To(Listen(*net::TcpAddress("127.0.0.1", 0))));
  EXPECT_EQ(ErrorCodeOf(client.status()), ErrorCode::kJoinRefused);
  EXPECT_NE(MessageOf(client.status()).find("troupe token create > token"), std::string::npos);
}

TEST_F(ConnectTest, NobodyListens) {
  net::OpenOptions options = To(*net::UnixAddress(folder_.path() + "/none"));
  const auto client = ControlClient::Connect(std::move(options));
  EXPECT_EQ(ErrorCodeOf(client.status()), ErrorCode::kConnection);
  EXPECT_NE(MessageOf(client.status()).find("nobody listens on unix:"), std::string::npos);
}

// Two pushes of one kind around one of another, before anybody asked anything.
Task<void> PushAtOnce(std::shared_ptr<Connection> connection) {
  static_cast<void>(connection->Send(Note("first")));
  Message other;
  other.body = wire::ErrorReply();
  static_cast<void>(connection->Send(other));
  static_cast<void>(connection->Send(Note("second")));
  static_cast<void>(co_await connection->Receive());  // end of the connection
}

class CalledBackTest : public PairedClientTest {};

TEST_F(CalledBackTest, WhatComesFirstIsTakenTooAndNothingOfItsKindIsQueued) {
  std::vector<std::string> taken;
  std::promise<void> both;
  const auto take = [&](const Message& push) {
    taken.push_back(TextOf(push));
    if (taken.size() == 2) both.set_value();
  };
  Pair(PushAtOnce, {{"Ok", take}});
  ASSERT_EQ(both.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_EQ(taken, (std::vector<std::string>{"first", "second"}));
  const auto queued = client_->NextPush(10s);
  ASSERT_TRUE(queued.ok() && *queued);
  EXPECT_TRUE(wire::Holds<wire::ErrorReply>((*queued)->body));
  EXPECT_FALSE(client_->NextPush(Duration(0))->has_value());
}

}  // namespace
}  // namespace troupe::client
