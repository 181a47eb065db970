// Method: the thread of held replies with one peer over a socket pair; how often it was woken is
// what the kernel counted.
#include "actors/server/reply_flusher.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "actors/net/now.h"
#include "tests/actors/server/connected_peer.h"

namespace troupe::actors {
namespace {

/// The voluntary context switches of this process's threads of that name.
long SwitchesOf(const std::string& thread_name) {
  long switches = 0;
  DIR* const tasks = ::opendir("/proc/self/task");
  while (const dirent* const task = ::readdir(tasks)) {
    const std::string folder = std::string("/proc/self/task/") + task->d_name;
    std::string name, word;
    std::getline(std::ifstream(folder + "/comm"), name);
    std::ifstream status(folder + "/status");
    while (name == thread_name && status >> word) {
      long count = 0;
      if (word == "voluntary_ctxt_switches:" && status >> count) switches += count;
    }
  }
  ::closedir(tasks);
  return switches;
}

/// Until it ticks no more.
void AwaitAsleep() {
  for (long before = -1, now = 0; before != now; now = SwitchesOf("troupe-replies")) {
    before = now;
    std::this_thread::sleep_for(20 * ReplyFlusher::kTick);  // lint-ok: so many ticks, or none
  }
}

using ReplyFlusherTest = ConnectedPeer;

TEST_F(ReplyFlusherTest, ShortBatchesOneAfterTheOtherDoNotWakeItEach) {
  ReplyFlusher flusher;
  const Instant begin = Now();
  long batches = 0;
  for (Instant now = begin; now - begin < std::chrono::milliseconds(200); ++batches) {
    flusher.Expose(peer_);
    flusher.Cover();
    for (const Instant over = now; (now = Now()) - over < std::chrono::microseconds(100);) {
    }
  }
  const long elapsed_ms = Millis(Now() - begin);
  // Awake it ticks each millisecond.
  EXPECT_LE(SwitchesOf("troupe-replies"), 2 * elapsed_ms + 50)
      << batches << " batches in " << elapsed_ms << " ms";
}

TEST_F(ReplyFlusherTest, WhatIsHeldForLongIsFlushedEachTime) {
  ReplyFlusher flusher;
  for (int i = 0; i < 3; ++i) {
    ByteBuffer frame;
    frame.Extend(kFrameHeadBytes);
    peer_->Reply(static_cast<std::uint64_t>(i + 1), kFlagReply, frame);
    flusher.Expose(peer_);
    char byte[kFrameHeadBytes];
    const Instant begin = Now();
    while (::recv(ends_[1], byte, sizeof byte, 0) < 0) {
      ASSERT_LT(Now() - begin, std::chrono::seconds(30)) << "reply " << i << " is still held";
    }
    flusher.Cover();
    AwaitAsleep();  // the next one has to wake it
  }
}

}  // namespace
}  // namespace troupe::actors
