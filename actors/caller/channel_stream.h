// The connection that a channel has just now: its stream, and what came over it.
//
// Takes no lock. Two threads share it without one: who leads the reactor reads (Read, in,
// WhyEnded), who holds the channel's mutex does all else. Lose needs both, and Begin a stream that
// is not attached, which nobody reads. Never blocks.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "actors/core/call/byte_buffer.h"
#include "actors/core/call/call_frame.h"
#include "actors/core/call/io_result.h"
#include "actors/core/session/send_window.h"
#include "actors/net/call_stream.h"

namespace troupe::actors {

class ChannelStream {
 public:
  ChannelStream() = default;
  ChannelStream(const ChannelStream&) = delete;
  ChannelStream& operator=(const ChannelStream&) = delete;

  /// There is a connection, which may be written to. Any thread; true means for the leader that all
  /// of it is there to be read.
  bool attached() const { return attached_.load(std::memory_order_acquire); }
  /// Returns true if the socket took no more when it was written to: only reading tells why.
  bool broken() const { return broken_; }
  /// -1: none.
  int fd() const { return stream_.fd(); }

  void Begin(CallStream stream) {
    stream_ = std::move(stream);
    broken_ = false;
    attached_.store(true, std::memory_order_release);
  }
  /// The connection is gone, and what it brought that was no whole frame with it.
  void Lose();
  /// Ends both directions. The descriptor is closed with this: the leader may be reading it.
  void Shutdown() { stream_.Shutdown(); }

  struct Wrote {
    bool any = false;      // the socket took something
    bool blocked = false;  // takes no more just now
  };
  /// Writes what `window` has until the socket takes no more. A connection that turns out to be
  /// over is `broken` from then on: answers that came before may still be unread.
  Wrote Write(SendWindow& window);

  /// Reads what is there into `in`, which is given room for what has to come.
  IoResult Read(const CallLimits& limits);
  ByteBuffer& in() { return in_; }
  /// Marks bytes as used: memory that an idle connection does not need is freed.
  void Used(std::size_t bytes);
  std::string WhyEnded(const IoResult& ended) const { return stream_.WhyEnded(ended); }

 private:
  std::atomic<bool> attached_{false};
  CallStream stream_;
  bool broken_ = false;
  ByteBuffer in_;
};

}  // namespace troupe::actors
