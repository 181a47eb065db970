#include "head/journal/journal_thread.h"

#include <chrono>
#include <iterator>
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
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  wake_.NotifyOne();
  ends_.NotifyOne();
  thread_.join();
}

void JournalThread::Submit(std::vector<Row> rows) {
  if (rows.empty()) return;
  {
    const MutexLock lock(mutex_);
    waiting_.insert(waiting_.end(), std::make_move_iterator(rows.begin()),
                    std::make_move_iterator(rows.end()));
  }
  wake_.NotifyOne();
}

void JournalThread::SubmitSnapshot(std::uint64_t sequence, std::vector<wire::Event> events) {
  {
    const MutexLock lock(mutex_);
    snapshot_ = PendingSnapshot{sequence, std::move(events)};
  }
  wake_.NotifyOne();
}

JournalThread::Woke JournalThread::AwaitWork(std::vector<Row>* batch,
                                             std::optional<PendingSnapshot>* snapshot) {
  const bool short_of_room = journal_.low_space();
  const MutexLock lock(mutex_);
  while (!ending_ && waiting_.empty() && !snapshot_) {
    if (!short_of_room) {
      wake_.Wait(mutex_);
    } else if (!wake_.WaitFor(mutex_, kRoomPause)) {
      break;
    }
  }
  if (!ending_ && waiting_.empty() && !snapshot_) return Woke::kNeither;
  if (waiting_.empty() && (ending_ || !snapshot_)) return Woke::kEnd;
  batch->swap(waiting_);
  snapshot->swap(snapshot_);
  return Woke::kWork;
}

void JournalThread::Run() {
  std::vector<Row> batch;
  std::optional<PendingSnapshot> snapshot;
  for (;;) {
    const Woke woke = AwaitWork(&batch, &snapshot);
    if (woke == Woke::kEnd) return;
    if (woke == Woke::kNeither) {  // checks whether there is room again
      journal_.Reclaim();
      if (!journal_.low_space()) on_durable_(0, false);
      continue;
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
    Log(LogLevel::kError, "the disk is full: nothing is acknowledged until there is room",
        {{"why", MessageOf(status)}});
    const MutexLock lock(mutex_);
    if (!ending_) ends_.WaitFor(mutex_, kRoomPause);  // rows that come meanwhile do not end it
    if (ending_) return false;
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
