// Links for large values over TLS: through an actor's door, for the session they belong to and
// nobody else.
#include "actors/bulk/bulk_mover.h"

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/bulk/bulk_session.h"
#include "actors/net/call_dial.h"
#include "actors/net/tls_loop.h"
#include "tests/actors/tls_support.h"

namespace troupe::actors {
namespace {

const Id128 kCaller{1, 9};
const Id128 kOther{2, 9};
const SessionId kSession(77, 78);

std::string Shown(const Id128& client) { return "client " + IdToHex(client); }

/// Threads that use the TLS library end before it does.
class Threads : public testing::Environment {
 public:
  void TearDown() override {
    TlsLoop::StopCurrent();
    BulkMover::StopCurrent();
  }
};
[[maybe_unused]] const auto* const kThreads = testing::AddGlobalTestEnvironment(new Threads);

class ObjectMoverTest : public testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<store::Writing> writing = store_.pool().Begin(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) writing->data[i] = static_cast<char>(i >> 4);
    id_ = store_.Put(*writing, CallReactor::Current().NextLocalId(), {});
    actors_side_ = BulkSession::Actor(kSession, Shown(kCaller));
    actors_side_->Give({id_});
  }
  void TearDown() override { store_.DropHandles({id_}); }

  std::shared_ptr<BulkSession> Caller() {
    std::shared_ptr<BulkSession> made = BulkSession::Caller(5s);
    made->Begun(kSession, actor_.target(), cluster_.Identity(wire::Role::kClient, kCaller));
    return made;
  }
  /// "right", "wrong", or why it did not come.
  std::future<std::string> Pull(BulkSession& bulk_session) {
    auto promise = std::make_shared<std::promise<std::string>>();
    std::future<std::string> future = promise->get_future();
    bulk_session.PullResult(
        id_, {},
        [this, promise](StatusOr<store::Writing> writing, const std::vector<store::ObjectId>&) {
          if (!writing.ok()) return promise->set_value(MessageOf(writing.status()));
          bool right = writing->bytes == kBytes;
          for (std::size_t i = 0; right && i < kBytes; ++i)
            right = writing->data[i] == static_cast<char>(i >> 4);
          store_.pool().GiveUp(*writing);
          promise->set_value(right ? "right" : "wrong");
        });
    return future;
  }
  StatusOr<CallStream> Dial(const Id128& client) {
    RemoteActor target = actor_.target();
    target.objects = true;
    auto promise = std::make_shared<std::promise<StatusOr<CallStream>>>();
    auto future = promise->get_future();
    TlsLoop::Current().Spawn(
        "dial", Reach(target, cluster_.Identity(wire::Role::kClient, client), promise));
    return future.get();
  }
  static async::Task<void> Reach(RemoteActor target, IdentitySource identity,
                                 std::shared_ptr<std::promise<StatusOr<CallStream>>> promise) {
    std::function<bool()> wanted = [] { return true; };
    auto dialling = DialActor(std::move(target), std::move(identity), 5s, std::move(wanted));
    StatusOr<CallStream> stream = co_await std::move(dialling);
    promise->set_value(std::move(stream));
  }
  static std::string HelloAndRead(const store::ObjectId& id) {
    std::string bytes;
    BulkFrame hello;
    hello.session = kSession;
    AppendBulkFrame(bytes, hello);
    BulkFrame read;
    read.word = BulkWord::kRead;
    read.id = id;
    read.bytes = 100;
    AppendBulkFrame(bytes, read);
    return bytes;
  }

  static constexpr std::size_t kBytes = (5u << 20) + 17;
  ObjectStore& store_ = *ObjectStore::Current();
  TestCluster cluster_;
  TlsActor actor_{cluster_};
  store::ObjectId id_;
  std::shared_ptr<BulkSession> actors_side_;
};

TEST_F(ObjectMoverTest, TheSessionsCallerGetsWhatItWasGiven) {
  const std::shared_ptr<BulkSession> caller = Caller();
  EXPECT_EQ(Pull(*caller).get(), "right");
  actors_side_->TakeBack({id_});
  EXPECT_EQ(Pull(*caller).get(), "the process that had it has let go of it");
}

TEST_F(ObjectMoverTest, WhoShowsAnotherCertificateGetsNothing) {
  StatusOr<CallStream> stranger = Dial(kOther);
  ASSERT_TRUE(stranger.ok()) << MessageOf(stranger.status());
  const std::string asks = HelloAndRead(id_);
  ASSERT_EQ(stranger->TryWrite(asks.data(), asks.size()).bytes, asks.size());
  const std::shared_ptr<BulkSession> caller = Caller();
  EXPECT_EQ(Pull(*caller).get(), "right");
  std::vector<char> space(1 << 16);
  EXPECT_EQ(stranger->TryRead(space.data(), space.size()).bytes, 0u);
}

TEST_F(ObjectMoverTest, ASessionThatIsClaimedLaterFindsItsLink) {
  const SessionId session(5, 5);
  const std::shared_ptr<BulkSession> caller = BulkSession::Caller(5s);
  caller->Begun(session, actor_.target(), cluster_.Identity(wire::Role::kClient, kCaller));
  caller->Give({id_});  // reason to dial
  const std::shared_ptr<BulkSession> actors_side = BulkSession::Actor(session, Shown(kCaller));
  actors_side->Give({id_});
  EXPECT_EQ(Pull(*actors_side).get(), "right");
  EXPECT_EQ(Pull(*caller).get(), "right");
}

TEST_F(ObjectMoverTest, AnEndedSessionEndsItsPulls) {
  const std::shared_ptr<BulkSession> caller = BulkSession::Caller(5s);
  caller->Begun(SessionId(6, 6), actor_.target(), cluster_.Identity(wire::Role::kClient, kCaller));
  std::future<std::string> came = Pull(*caller);
  caller->End("the actor is gone");
  EXPECT_EQ(came.get(), "the actor is gone");
  EXPECT_EQ(Pull(*caller).get(), "the connection to its actor is over");
}

}  // namespace
}  // namespace troupe::actors
