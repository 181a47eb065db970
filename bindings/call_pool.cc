#include "bindings/call_pool.h"

#include <nanobind/nanobind.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "actors/concurrency_groups.h"
#include "bindings/call_errors.h"
#include "bindings/gil.h"

namespace nb = nanobind;

namespace troupe::bindings {

/// What the threads share; it outlives the executor with the last of them.
class PoolExecutor::Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(const std::vector<int>& limits, std::shared_ptr<ActorExit> exit)
      : groups_(limits), exit_(std::move(exit)) {}

  void Submit(DeferredCallPtr call) {
    const std::size_t group = call->group();
    std::optional<DeferredCallPtr> now = groups_.Begin(group, std::move(call));
    while (now && !Give(*now)) {  // no thread for it: that is its answer
      (*now)->Answer(nullptr, /*flush=*/true);
      now = groups_.End(group);
    }
  }
  /// One that waits is answered so; one that runs may ask.
  void Cancel(const actors::Peer& peer, std::uint64_t sequence) {
    const auto matches = [&](const auto& call) { return call->Is(peer, sequence); };
    if (const std::optional<DeferredCallPtr> waiting = groups_.Withdraw(matches)) {
      return (*waiting)->AnswerCancelled("before it began", /*flush=*/true);
    }
    for (DeferredCall* call : begun_) {
      if (matches(call)) call->running().cancelled = true;
    }
  }
  void Stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  /// A thread's life.
  void Work() {
    while (DeferredCallPtr call = Take()) {
      while (call != nullptr) call = Execute(std::move(call));
    }
  }

 private:
  /// False: an error is set, no thread could be started, and the call is left as it was.
  bool Give(DeferredCallPtr& call) {
    begun_.insert(call.get());
    bool need_thread = false;
    {
      const std::lock_guard lock(mutex_);
      need_thread = ready_.size() >= idle_;
    }
    if (need_thread && !StartThread()) {
      begun_.erase(call.get());
      return false;
    }
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(call));
    wake_.notify_one();
    return true;
  }
  /// Waits without the GIL. nullptr: the pool is over.
  DeferredCallPtr Take() {
    DeferredCallPtr call;
    {
      const GilReleased released;
      std::unique_lock lock(mutex_);
      ++idle_;
      wake_.wait(lock, [this] { return stopping_ || !ready_.empty(); });
      --idle_;
      if (stopping_) return nullptr;
      call = std::move(ready_.front());
      ready_.pop_front();
    }
    return call;
  }
  /// Runs and answers one; the next of its group, if that waits.
  DeferredCallPtr Execute(DeferredCallPtr call) {
    const Running running(&call->running());
    PyObject* result = call->Run();
    if (result != nullptr && call->items() != nullptr) {
      ItemSender& items = *call->items();
      result = SendItems(result, items, [&items] {
        items.AwaitRoom();
        return true;
      });
    }
    const bool leaves = result == nullptr && PyErr_ExceptionMatches(PyExc_SystemExit);
    if (leaves) exit_->KeepRaised();
    call->Answer(result, /*flush=*/true);
    begun_.erase(call.get());
    if (leaves) exit_->Stop();
    if (leaves) return nullptr;
    DeferredCallPtr next = groups_.End(call->group()).value_or(nullptr);
    if (next != nullptr) begun_.insert(next.get());
    return next;
  }
  bool StartThread();

  actors::ConcurrencyGroups<DeferredCallPtr> groups_;  // the GIL's
  std::set<DeferredCall*> begun_;                      // likewise: given to a thread, not over
  const std::shared_ptr<ActorExit> exit_;
  std::mutex mutex_;  // never held while the GIL is taken
  std::condition_variable wake_;
  std::deque<DeferredCallPtr> ready_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

bool PoolExecutor::Pool::StartThread() {
  try {
    const nb::object work = nb::cpp_function([pool = shared_from_this()] { pool->Work(); });
    const nb::object type = nb::module_::import_("threading").attr("Thread");
    type(nb::arg("target") = work, nb::arg("name") = "actor", nb::arg("daemon") = true).attr("start")();
    return true;
  } catch (nb::python_error& error) {
    error.restore();
    return false;
  }
}

PoolExecutor::PoolExecutor(PyExecutorOptions options)
    : PyExecutor(std::move(options)),
      pool_(std::make_shared<Pool>(limits(), exit())) {}

PoolExecutor::~PoolExecutor() { pool_->Stop(); }

void PoolExecutor::Submit(DeferredCallPtr call) { pool_->Submit(std::move(call)); }

void PoolExecutor::Cancel(const actors::Peer& peer, std::uint64_t sequence) {
  pool_->Cancel(peer, sequence);
}

}  // namespace troupe::bindings
