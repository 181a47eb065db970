#include "bindings/actor/pool.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <semaphore>
#include <set>
#include <utility>
#include <vector>

#include "actors/core/policy/concurrency_groups.h"
#include "bindings/support/gil.h"
#include "bindings/support/nanobind.h"
#include "bindings/values/errors.h"

namespace nb = nanobind;

namespace troupe::bindings {

/// State that the threads of one group share; it outlives the executor with the last of them.
/// Guarded by the GIL.
///
///   PT-1  There are at least as many threads as calls were given out and are not over: each of
///         them has one to run it.
///   PT-2  While calls wait for a thread, one that was woken is on its way, or the serving thread
///         is about to wake it (Suspend, LetBegin). It wakes the next before it runs what it took:
///         so calls that keep the GIL are run one after the other by one thread, and one that lets
///         go of it holds no other up.
///   PT-3  Who fell asleep last is woken first.
class PoolExecutor::Pool : public std::enable_shared_from_this<Pool> {
 public:
  /// The semaphore on which a thread sleeps.
  using Bed = std::shared_ptr<std::binary_semaphore>;

  Pool(int limit, std::shared_ptr<ActorExit> exit) : group_({limit}), exit_(std::move(exit)) {}

  void Submit(DeferredCallPtr call) {
    std::optional<DeferredCallPtr> now = group_.Begin(0, std::move(call));
    while (now && !Give(*now)) {  // no thread for it: that is its answer
      (*now)->Conclude(nullptr, /*flush=*/true);
      now = group_.End(0);
    }
  }
  /// Cancels a call: a waiting one is answered so; a running one may ask. False: the call is not
  /// here.
  bool Cancel(const actors::CallerConnection& peer, std::uint64_t sequence, bool recursive) {
    const auto matches = [&](const auto& call) { return call->Is(peer, sequence); };
    if (const std::optional<DeferredCallPtr> waiting = group_.Withdraw(matches)) {
      (*waiting)->AnswerCancelled("before it began", /*flush=*/true);
      return true;
    }
    for (DeferredCall* call : begun_) {
      if (!matches(call)) continue;
      call->running().cancelled = true;
      if (recursive) CancelStartedBy(call->running().number);
      return true;
    }
    return false;
  }
  void Stop() {
    over_ = true;
    for (const Bed& bed : std::exchange(asleep_, {})) bed->release();
  }
  bool runs() const { return !begun_.empty(); }
  /// Returns the thread to wake (PT-2), by release(); nullptr: none.
  Bed Next() {
    if (ready_.empty() || coming_ != 0 || asleep_.empty()) return nullptr;
    Bed bed = std::move(asleep_.back());
    asleep_.pop_back();
    ++coming_;
    return bed;
  }
  void Wake() {
    if (const Bed bed = Next()) bed->release();
  }
  /// A thread's life.
  void Work() {
    const Bed bed = std::make_shared<std::binary_semaphore>(0);
    while (true) {
      --coming_;
      while (!over_ && !ready_.empty()) {
        DeferredCallPtr call = std::move(ready_.front());
        ready_.pop_front();
        Wake();
        while (call != nullptr) call = Execute(std::move(call));
      }
      if (over_) return;
      asleep_.push_back(bed);
      const GilReleased released;
      bed->acquire();
    }
  }

 private:
  /// False: an error is set, no thread could be started, and the call is left as it was.
  bool Give(DeferredCallPtr& call) {
    begun_.insert(call.get());
    if (begun_.size() > threads_ && !StartThread()) {
      begun_.erase(call.get());
      return false;
    }
    ready_.push_back(std::move(call));
    return true;
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
      if (result != nullptr && items.cut_off()) call->AnswerCancelled("while it ran", true);
    }
    const ActorExit::How how = result == nullptr ? ActorExit::HowRaised() : ActorExit::How::kStays;
    const bool leaves = how != ActorExit::How::kStays;
    if (leaves) exit_->KeepRaised();
    if (how == ActorExit::How::kCrashes) {
      PyErr_Clear();
    } else {
      call->Conclude(result, /*flush=*/!leaves);
    }
    begun_.erase(call.get());
    if (leaves) {
      over_ = true;  // calls that wait for a thread do not begin any more
      exit_->Stop();  // flushes: a caller that has its answer is not served any more
      return nullptr;
    }
    DeferredCallPtr next = group_.End(0).value_or(nullptr);
    if (next != nullptr) begun_.insert(next.get());
    return next;
  }
  bool StartThread();

  actors::ConcurrencyGroups<DeferredCallPtr> group_;  // used only without groups
  std::set<DeferredCall*> begun_;                     // given out, not over
  std::deque<DeferredCallPtr> ready_;  // ready calls that no thread took yet
  std::vector<Bed> asleep_;
  std::size_t threads_ = 0;
  std::size_t coming_ = 0;  // started or woken, and have not looked at what is ready yet
  bool over_ = false;
  const std::shared_ptr<ActorExit> exit_;
};

bool PoolExecutor::Pool::StartThread() {
  ++threads_;
  ++coming_;
  try {
    const nb::object work = nb::cpp_function([pool = shared_from_this()] { pool->Work(); });
    const nb::object type = nb::module_::import_("threading").attr("Thread");
    type(nb::arg("target") = work, nb::arg("name") = "actor", nb::arg("daemon") = true)
        .attr("start")();
    return true;
  } catch (nb::python_error& error) {
    error.restore();
    --threads_;
    --coming_;
    return false;
  }
}

PoolExecutor::PoolExecutor(PyExecutorOptions options) : PyExecutor(std::move(options)) {
  for (const int limit : limits()) pools_.push_back(std::make_shared<Pool>(limit, exit()));
}

PoolExecutor::~PoolExecutor() {
  for (const auto& pool : pools_) pool->Stop();
}

void PoolExecutor::Submit(DeferredCallPtr call) {
  Pool& pool = *pools_[call->group()];
  pool.Submit(std::move(call));
}

bool PoolExecutor::RunsElsewhere() const {
  return std::any_of(pools_.begin(), pools_.end(), [](const auto& pool) { return pool->runs(); });
}

void PoolExecutor::LetBegin() {
  for (const auto& pool : pools_) pool->Wake();
}

void PoolExecutor::Suspend() {
  absl::InlinedVector<Pool::Bed, 4> woken;
  for (const auto& pool : pools_) {
    if (Pool::Bed next = pool->Next()) woken.push_back(std::move(next));
  }
  PyExecutor::Suspend();
  for (const Pool::Bed& bed : woken) bed->release();  // after it: who wakes finds the GIL free
}

void PoolExecutor::Cancel(const actors::CallerConnection& peer, std::uint64_t sequence,
                          bool recursive) {
  for (const auto& pool : pools_) {
    if (pool->Cancel(peer, sequence, recursive)) return;
  }
}

}  // namespace troupe::bindings
