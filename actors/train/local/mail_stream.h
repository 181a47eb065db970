// Sends and receives between two ranks on different nodes: the mailboxes between them (mail.h),
// each end of which is in its own process, and a connection that takes bytes from one to the other.
//
// What a mailbox holds bounds what is on its way and not asked for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "actors/train/local/shared_area.h"
#include "actors/train/local/wire.h"
#include "runtime/base/mutex.h"

namespace troupe::train {

class MailStream final : public Stream {
 public:
  /// `changed` is called when bytes have gone or come, or no more will. What is given must outlive
  /// it.
  MailStream(UniqueFd fd, std::size_t mailbox_bytes, Waker& waker, std::function<void()> changed);
  ~MailStream() override;

  Mailbox& incoming() const { return *in_; }
  Mailbox& outgoing() const { return *out_; }
  /// Something was put into the one, or taken from the other.
  void Ring();
  /// Nothing more comes than what is in the mailbox, and nothing is taken.
  bool ended() const { return ended_.load(); }

  int fd() const override { return fd_.get(); }
  short Wants() override;
  void Move() override;
  void End() override;

 private:
  bool MoveOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MoveIn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const UniqueFd fd_;
  const std::size_t bytes_;
  Waker& waker_;
  const std::function<void()> changed_;
  void* memory_ = nullptr;
  Mailbox* in_ = nullptr;
  Mailbox* out_ = nullptr;
  std::atomic<bool> begun_{false}, ended_{false};
  Mutex mutex_;
};

}  // namespace troupe::train
