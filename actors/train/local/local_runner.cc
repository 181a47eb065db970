#include "actors/train/local/local_runner.h"

#include <utility>

#include "runtime/base/signals_blocked.h"
#include "runtime/obs/trace.h"

namespace troupe::train {
namespace {

/// A work that is over, as a span of the process's ring.
void Record(obs::Span& span, const LocalWork& work, const std::vector<Operation>& operations) {
  span.end = obs::TraceNow();
  span.name = operations.empty() ? "nothing" : NameOf(operations.front().kind);
  span.value = work.seq();
  obs::AddSpan(span);
}

}  // namespace

LocalRunner::LocalRunner(SharedArea& area, std::unique_ptr<Collectives> collectives,
                         std::function<Status(const Status&)> ended)
    : area_(area), ended_(std::move(ended)), collectives_(std::move(collectives)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

LocalRunner::~LocalRunner() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void LocalRunner::Start(std::shared_ptr<LocalWork> work, std::vector<Operation> operations) {
  Started started{std::move(work), std::move(operations), {}};
  for (auto& operation : started.operations)
    for (auto* counts : {&operation.send_counts, &operation.recv_counts})
      if (!counts->empty()) *counts = started.counts.emplace_back(counts->begin(), counts->end());
  MutexLock lock(mutex_);
  while (started_.size() >= kStartedMax) changed_.Wait(mutex_);
  started_.push_back(std::move(started));
  changed_.NotifyAll();
}

void LocalRunner::Drain() {
  MutexLock lock(mutex_);
  while (!started_.empty()) changed_.Wait(mutex_);
}

void LocalRunner::Run() {
  for (;;) {
    Started* next = nullptr;
    {
      MutexLock lock(mutex_);
      while (started_.empty() && !ending_) changed_.Wait(mutex_);
      if (started_.empty()) return;
      next = &started_.front();  // stays where it is while others come behind it
    }
    Status status;
    if (area_.stopped()) status = MakeError(ErrorCode::kCancelled, "stopped");
    obs::Span span;
    span.kind = obs::SpanKind::kCollective;
    if (obs::Tracing()) span.begin = obs::TraceNow();
    for (const auto& operation : next->operations)
      if (status.ok()) status = collectives_->Run(operation, next->work->seq());
    if (obs::Tracing()) Record(span, *next->work, next->operations);
    const auto work = next->work;
    // The text of the end may depend on messages that are still to come.
    const Status told = status.ok() ? status : ended_(status);
    {
      MutexLock lock(mutex_);
      started_.pop_front();
      changed_.NotifyAll();
    }
    work->Finish(told);
  }
}

}  // namespace troupe::train
