// A connection between two processes in the objects' simulation: ordered, cut anywhere, and a frame
// of it may still be read when a newer one is there. What travels are closures.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tests/sim/sim_loop.h"

namespace troupe::sim {

class ObjectsLink : public std::enable_shared_from_this<ObjectsLink> {
 public:
  ObjectsLink(SimLoop& loop, std::uint64_t number) : loop_(loop), number_(number) {}

  std::uint64_t number() const { return number_; }
  bool open() const { return open_; }

  /// Delivers to one end (0 or 1), after everything sent to it before. `late`: what remains of a
  /// frame that was cut off, told to be of an old connection; may be empty.
  void Send(int end, std::function<void()> deliver) {
    if (!open_) return;
    Direction& way = ways_[end];
    way.last = std::max(way.last + Duration(1), loop_.Now() + Latency());
    auto self = shared_from_this();
    loop_.At(way.last, "frame", [self, &way, deliver = std::move(deliver)] {
      const bool in_time = self->loop_.Now() < way.cut;
      // A frame that was cut off is lost, or read after the next connection was made.
      if (in_time || self->loop_.random().Chance(150)) {
        if (in_time) return deliver();
        self->loop_.In(self->loop_.Between(Duration{}, std::chrono::milliseconds(800)),
                       "late frame", deliver);
      }
    });
  }
  /// Both directions end: each delivers a prefix of what is under way.
  void Cut() {
    if (!open_) return;
    open_ = false;
    for (Direction& way : ways_) way.cut = loop_.Now() + Latency() / 2;
  }

 private:
  struct Direction {
    Instant last{};
    Instant cut = Instant::max();
  };
  Duration Latency() {
    return loop_.Between(std::chrono::microseconds(50), std::chrono::milliseconds(5));
  }

  SimLoop& loop_;
  std::uint64_t number_;
  bool open_ = true;
  Direction ways_[2];
};

}  // namespace troupe::sim
