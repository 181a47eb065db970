// The worker's end of a process's control channel: an inherited Unix stream socket with control
// frames both ways.
//
// View: one process of this node; on the worker's loop. Send() queues and returns; what is queued
// before the other end is passed on is read by the process later. Messages are handed over in
// order. DrainNow() hands over all that has arrived: after the process's exit nothing more can
// come, even where a forked child still holds the socket open. `on_end` is called once: at the end
// of the stream, or with the reason when the peer broke the protocol or let 64 MiB pile up.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "runtime/async/fd_watch.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/wire/frame.h"

namespace troupe::worker {

class ProcessChannel {
 public:
  using OnMessage = std::function<void(wire::Message)>;
  using OnEnd = std::function<void(const Status&)>;

  /// A channel and the end to be given to the process.
  static StatusOr<std::unique_ptr<ProcessChannel>> Open(const async::Executor& executor,
                                                        OnMessage on_message, OnEnd on_end,
                                                        UniqueFd* other_end);
  void Send(const wire::Message& message);
  void SendFrame(std::string frame);
  void DrainNow();
  /// Returns true if a sent message was not read: for a process that has ended, for ever.
  bool LeftUnread() const;
  bool ended() const { return ended_; }

 private:
  ProcessChannel(const async::Executor& executor, UniqueFd fd, OnMessage on_message, OnEnd on_end);
  void ReadSome(bool all);
  void Flush();
  void End(const Status& reason);

  UniqueFd fd_;
  OnMessage on_message_;
  OnEnd on_end_;
  wire::FrameReader reader_;
  std::deque<std::string> queue_;
  std::size_t sent_of_first_ = 0;
  std::size_t queued_bytes_ = 0;
  bool waiting_to_write_ = false;
  bool ended_ = false;
  bool reset_ = false;  // ended with something unread
  std::unique_ptr<async::FdWatch> watch_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace troupe::worker
