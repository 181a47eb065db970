// A channel's calls that wait for their arguments (pending_calls.h).
#include <utility>

#include "actors/caller/channel.h"
#include "actors/caller/pending_calls.h"
#include "actors/caller/reactor.h"

namespace troupe::actors {

class Channel::LineEnds : public Completion {
 public:
  explicit LineEnds(std::shared_ptr<PendingCalls> line) : line_(std::move(line)) {}
  void Run() override { line_->ChannelEnded(); }

 private:
  const std::shared_ptr<PendingCalls> line_;
};

PendingCalls& Channel::Line(const ArgumentCodec& values) {
  MutexLock lock(mutex_);
  if (line_ == nullptr) {
    line_ = std::make_shared<PendingCalls>(weak_from_this(), options_.description, options_.ordered,
                                           values);
    line_seen_.store(line_.get(), std::memory_order_release);
  }
  return *line_;
}

void Channel::IssueKept(ByteBuffer& frame, std::uint16_t flags, Answer* answer,
                        std::shared_ptr<ItemStream> items) {
  AnswerList finished;
  {
    MutexLock lock(mutex_);
    line_->Taken();
    const std::uint64_t sequence = ring_.next_sequence();
    answer->set_call(id_ << 40 | sequence);
    items_.Add(sequence, std::move(items));
    IssueLocked(frame, flags, answer);
    finished.swap(finished_);
  }
  NotifyFinished(finished, false);
}

std::size_t Channel::OutstandingLocked() const {
  return ring_.size() + (line_ != nullptr ? line_->untaken() : 0);
}

/// Fails the calls in the line, which can be sent no more.
void Channel::EndLineLocked() {
  if (line_ != nullptr) reactor_.Post(std::make_unique<LineEnds>(line_));
}

}  // namespace troupe::actors
