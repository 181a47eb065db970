// Method: real sockets in a folder of the test; both ends in one process.
#include "runtime/net/handover.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <vector>

#include "runtime/net/fd_passing.h"

namespace troupe::net {
namespace {

using ::testing::HasSubstr;

class Handover : public ::testing::Test {
 protected:
  Handover() {
    std::string name = "/tmp/troupe-test-XXXXXX";
    folder_ = mkdtemp(name.data());
    path_ = HandoverPath(folder_ + "/p1");
  }
  ~Handover() override { std::filesystem::remove_all(folder_); }
  static std::array<UniqueFd, 2> Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
  std::string folder_, path_;
};

TEST(HandoverNames, TheSecondSocketOfAProcessIsAskedForByNameAndLiesBesideItsFirst) {
  EXPECT_EQ(AsideSocket("/tmp/p1"), "/tmp/p1.a");
  EXPECT_EQ(ProcessAskedAside(AsideName("00ff")), "00ff");
  for (const char* name : {"", "00ff", "00ff.", "00ff.b", "a"})
    EXPECT_FALSE(ProcessAskedAside(name)) << name;
}

TEST_F(Handover, AConnectionArrivesWholeThoughItsGiverHasLeft) {
  const auto listener = ListenForHandovers(path_);
  ASSERT_TRUE(listener.ok()) << listener.status();
  struct stat file{};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  auto [ours, theirs] = Pair();
  ASSERT_EQ(send(ours.get(), "early", 5, 0), 5);  // unread, so it must be there afterwards
  ASSERT_TRUE(HandOver(path_, theirs.get()).ok());
  theirs.Reset();
  const auto giver = AcceptHandover(listener->get());
  ASSERT_TRUE(giver.ok() && giver->valid());
  const auto taken = TakeHandover(giver->get());
  ASSERT_TRUE(taken.ok()) << taken.status();
  char text[8] = "";
  EXPECT_EQ(recv(taken->get(), text, sizeof text, 0), 5);
  EXPECT_STREQ(text, "early");
  EXPECT_NE(fcntl(taken->get(), F_GETFD) & FD_CLOEXEC, 0);
  const auto none = AcceptHandover(listener->get());
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->valid());
}

TEST_F(Handover, NobodyThereIsAnErrorAndAFullQueueIsOneToo) {
  auto [ours, theirs] = Pair();
  EXPECT_THAT(MessageOf(HandOver(path_, theirs.get())), HasSubstr(path_));
  const auto listener = ListenForHandovers(path_);
  ASSERT_TRUE(listener.ok());
  int passed = 0;
  while (passed < 10'000 && HandOver(path_, theirs.get()).ok()) ++passed;
  EXPECT_GE(passed, 64);
  EXPECT_LT(passed, 10'000);  // refused instead of waiting
}

TEST_F(Handover, WhatIsNoConnectionIsRefused) {
  const auto listener = ListenForHandovers(path_);
  ASSERT_TRUE(listener.ok());
  auto [ours, theirs] = Pair();
  ASSERT_TRUE(SendFds(ours.get(), "caller", {}).ok());
  EXPECT_EQ(ErrorCodeOf(TakeHandover(theirs.get()).status()), ErrorCode::kInvalid);
}

TEST_F(Handover, ASocketLeftOverIsReplacedAndALongPathSaysSo) {
  {
    ASSERT_TRUE(ListenForHandovers(path_).ok());
  }
  EXPECT_TRUE(ListenForHandovers(path_).ok());
  EXPECT_EQ(ErrorCodeOf(ListenForHandovers(std::string(200, 'x')).status()), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace troupe::net
