// Method: real Unix sockets within this process, and a limit on its descriptors that the test
// lowers to what is open.
#include "actors/server/call_listener.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/net/unix_stream.h"
#include "runtime/base/unique_fd.h"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kEvent = 5;

class CallListenerTest : public ::testing::Test {
 protected:
  CallListenerTest()
      : path_("/tmp/troupe-listener-" + std::to_string(::getpid()) + "-" + std::to_string(++made_)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        listener_(*CallListener::Open(path_, nullptr, epoll_.get(), kEvent, wake_.get())) {}
  void Connect() { callers_.push_back(*UnixStream::Connect(path_)); }
  int Accept() {
    int let_in = 0;
    listener_->Accept([&](CallStream stream) {
      streams_.push_back(std::move(stream));
      ++let_in;
    });
    return let_in;
  }
  /// Returns true if the socket is said to be readable.
  bool Told() {
    epoll_event event{};
    return ::epoll_wait(epoll_.get(), &event, 1, 0) == 1 && event.data.u64 == kEvent;
  }

  static inline int made_ = 0;
  const std::string path_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::unique_ptr<CallListener> listener_;
  std::vector<UnixStream> callers_;
  std::vector<CallStream> streams_;
};

TEST_F(CallListenerTest, LetsInAllWhoWaitAndRemovesItsFile) {
  EXPECT_FALSE(Told());
  EXPECT_EQ(Accept(), 0);
  Connect();
  Connect();
  EXPECT_TRUE(Told());
  EXPECT_EQ(Accept(), 2);
  EXPECT_FALSE(Told());
  EXPECT_TRUE(listener_->TakeFromDoor().empty()) << "it has none";
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
  listener_.reset();
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

TEST_F(CallListenerTest, WithNoDescriptorLeftCallersWaitAndTheSocketIsNotWatched) {
  Connect();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd next(::dup(0));
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(Accept(), 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(listener_->paused_until().has_value());
  EXPECT_FALSE(Told()) << "whoever waits for it would spin";
  EXPECT_EQ(Accept(), 1);
  EXPECT_FALSE(listener_->paused_until().has_value());
  Connect();
  EXPECT_TRUE(Told());
}

TEST_F(CallListenerTest, APathThatCannotBeListenedAtIsAnError) {
  EXPECT_FALSE(
      CallListener::Open("/nowhere/at/all", nullptr, epoll_.get(), kEvent, wake_.get()).ok());
}

}  // namespace
}  // namespace troupe::actors
