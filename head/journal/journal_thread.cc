#include "head/journal/journal_thread.h"

#include <csignal>
#include <iterator>
#include <utility>

namespace troupe::head {
namespace {

// Signals are the main thread's; a thread takes the mask of its maker.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

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

void JournalThread::Run() {
  std::vector<Row> batch;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      batch.swap(waiting_);
    }
    const Status status = journal_.Append(batch);
    if (!status.ok()) {
      on_failure_(status);
      return;
    }
    on_durable_(batch.back().sequence, journal_.low_space());
    batch.clear();
  }
}

}  // namespace troupe::head
