// Sends and receives between two ranks, beside the collectives: through a ring of bytes for each
// ordered pair, all of a rank's at once, by one thread that begins with the first of them.
//
//   message: bytes u64, tag i32, mark u32, the bytes; in the order of the sends to that rank
//
//   MA1  Messages of one tag come in the order in which they were sent.
//   MA2  One with another tag than what is asked for is put aside, at most kAsideBytesMax of a
//        group; with more, the group stops and says so.
//   MA3  What has come from a rank that is gone is still received.
//
// A send is done when all of it is in the ring, a small one at once, a large one as it is taken;
// one to another node when the system has it, so that it arrives whatever becomes of this process.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/train/local/local_work.h"
#include "actors/train/local/mailboxes.h"
#include "runtime/base/mutex.h"

namespace troupe::train {

inline constexpr std::size_t kAsideBytesMax = 64 << 20;

class Mail {
 public:
  /// `ended` makes what a caller is told of what went wrong. All must outlive it.
  Mail(const Mailboxes& boxes, const Clock& clock, std::function<Status(const Status&)> ended);
  /// The area must be stopped, or nothing outstanding. Blocks until the thread has ended.
  ~Mail();
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  /// Sends and receives, as one work; at most kStartedMax are outstanding, then it waits. Any
  /// thread.
  void Start(const std::shared_ptr<LocalWork>& work, const std::vector<Operation>& operations);
  /// Blocks until nothing is outstanding.
  void Drain();

 private:
  /// An operation of a work.
  struct Letter {
    std::shared_ptr<LocalWork> work;
    std::shared_ptr<std::size_t> left;  // the work's operations that are not done
    Operation operation;
    Instant until;
    std::size_t moved = 0;     // bytes, a send's header included
    bool is_bound = false;     // a message goes into it
    std::uint64_t end_at = 0;  // place where a send that has moved ends in its mailbox
  };
  using Letters = std::list<Letter>;
  struct Aside {
    int tag;
    std::vector<std::byte> bytes;
  };
  /// The input from one rank.
  struct Incoming {
    bool begun = false;
    std::uint64_t bytes = 0, got = 0;
    int tag = 0;
    Letters::iterator into;  // target; else the last of `aside`
    bool is_aside = false;
    std::deque<Aside> aside;
  };

  void Run();
  void TakeNew();
  bool MoveAll();
  bool CanMove() const;
  bool MoveSend(Letters::iterator at);
  bool Receive(int peer);
  bool BeginMessage(int peer, Incoming& from);
  bool FromAside(Letters::iterator at);
  Letters::iterator Wanting(int peer, int tag);
  bool IsAwaited(int peer) const;
  int LostPeer(const Letter& letter) const;
  void EndLate(Instant now);
  void EndGone();
  void Done(Letters::iterator at, int source);
  void End(const Status& why);
  Instant Earliest() const;

  const Mailboxes boxes_;
  SharedArea& area_;
  const Clock& clock_;
  const std::function<Status(const Status&)> ended_;
  // The thread's own.
  Letters letters_;
  std::vector<Incoming> incoming_;
  std::size_t aside_bytes_ = 0;

  Mutex mutex_;
  CondVar changed_;
  Letters new_ ABSL_GUARDED_BY(mutex_);
  std::size_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> has_new_{false};
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::train
