#include "head/journal/journal_thread.h"

#include <iterator>
#include <chrono>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/signals_blocked.h"

namespace troupe::head {
namespace {

constexpr std::chrono::milliseconds kRoomPause{500};

}  // namespace

JournalThread::JournalThread(Journal& journal, OnDurable on_durable, OnFailure on_failure)
    : journal_(journal), on_durable_(std::move(on_durable)), on_failure_(std::move(on_failure)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Run(); });
}

JournalThread::~JournalThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void JournalThread::Submit(std::vector<Row> rows) {
  if (rows.empty()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.insert(waiting_.end(), std::make_move_iterator(rows.begin()),
                    std::make_move_iterator(rows.end()));
  }
  wake_.notify_one();
}

void JournalThread::SubmitSnapshot(std::uint64_t sequence, std::vector<wire::Event> events) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    snapshot_ = PendingSnapshot{sequence, std::move(events)};
  }
  wake_.notify_one();
}

void JournalThread::Run() {
  std::vector<Row> batch;
  std::optional<PendingSnapshot> snapshot;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto work = [this] { return ending_ || !waiting_.empty() || snapshot_; };
      // Low on space: look now and then whether there is room again.
      if (!journal_.low_space()) {
        wake_.wait(lock, work);
      } else if (!wake_.wait_for(lock, kRoomPause, work)) {
        lock.unlock();
        journal_.Reclaim();
        if (!journal_.low_space()) on_durable_(0, false);
        continue;
      }
      if (waiting_.empty() && (ending_ || !snapshot_)) return;
      batch.swap(waiting_);
      snapshot.swap(snapshot_);
    }
    if (!batch.empty() && !Append(batch)) return;
    batch.clear();
    if (snapshot) Take(*snapshot);
    snapshot.reset();
  }
}

bool JournalThread::Append(const std::vector<Row>& batch) {
  for (;;) {
    const Status status = journal_.Append(batch);
    if (status.ok()) break;
    if (!IsDiskFull(status)) {
      on_failure_(status);
      return false;
    }
    Log(LogLevel::kError, "the disk is full: nothing is acknowledged until there is room", {{"why", MessageOf(status)}});
    std::unique_lock<std::mutex> lock(mutex_);
    if (wake_.wait_for(lock, kRoomPause, [this] { return ending_; })) return false;
  }
  on_durable_(batch.back().sequence, journal_.low_space());
  return true;
}

void JournalThread::Take(const PendingSnapshot& snapshot) {
  const Status status = journal_.Snapshot(snapshot.sequence, snapshot.events);
  if (status.ok()) return;
  // Everything is in the rows still: the next one is tried when as many have followed.
  Log(LogLevel::kWarning, "no snapshot was taken", {{"why", MessageOf(status)}});
}

}  // namespace troupe::head
