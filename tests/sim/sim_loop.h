// Virtual time: one event queue ordered by (time, random tie, sequence).
//
// The random tie is what explores interleavings of what happens at the same instant. Everything of
// a run is drawn from one seed; the trace hash covers every event's time and name, so that two runs
// of a seed can be compared.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/base/time.h"

namespace troupe::sim {

class SimLoop final : public Clock {
 public:
  explicit SimLoop(std::uint64_t seed) : random_(seed) {}

  Instant Now() const override { return now_; }
  std::uint64_t WallTimeUs() const override {
    return 1'700'000'000'000'000ull + static_cast<std::uint64_t>((now_ - Instant{}).count() / 1000);
  }
  Prng& random() { return random_; }
  Duration Between(Duration least, Duration most) {
    const auto span = static_cast<std::uint64_t>((most - least).count()) + 1;
    return least + Duration(static_cast<Duration::rep>(random_.Next() % span));
  }

  /// `name` must outlive the loop (a literal).
  void At(Instant due, std::string_view name, std::function<void()> run) {
    queue_.push({due < now_ ? now_ : due, random_.Next(), ++sequence_, name, std::move(run)});
  }
  void In(Duration delay, std::string_view name, std::function<void()> run) {
    At(now_ + delay, name, std::move(run));
  }
  /// False when nothing is left before `until`; time then stands at `until`.
  bool Step(Instant until) {
    if (queue_.empty() || queue_.top().due > until) {
      now_ = until;
      return false;
    }
    // The top is only read by const reference; it is taken, since an entry may carry a whole
    // message.
    Entry entry = std::move(const_cast<Entry&>(queue_.top()));
    queue_.pop();
    now_ = entry.due;
    Mix(static_cast<std::uint64_t>((now_ - Instant{}).count()));
    for (const char c : entry.name) Mix(static_cast<std::uint64_t>(c));
    ++events_;
    entry.run();
    return true;
  }
  void Mix(std::uint64_t value) { trace_ = (trace_ ^ value) * 0x100000001b3ull; }
  std::uint64_t trace() const { return trace_; }
  std::uint64_t events() const { return events_; }

 private:
  struct Entry {
    Instant due;
    std::uint64_t tie;
    std::uint64_t sequence;
    std::string_view name;
    std::function<void()> run;
    friend bool operator<(const Entry& a, const Entry& b) {
      if (a.due != b.due) return a.due > b.due;
      return a.tie != b.tie ? a.tie > b.tie : a.sequence > b.sequence;
    }
  };
  Prng random_;
  Instant now_{std::chrono::seconds(1000)};
  std::priority_queue<Entry> queue_;
  std::uint64_t sequence_ = 0;
  std::uint64_t trace_ = 0xcbf29ce484222325ull;
  std::uint64_t events_ = 0;
};

}  // namespace troupe::sim
