// The thread that moves the bytes of large values between the processes of different hosts, each
// call session over a link of its own beside its call connection: small calls never wait behind
// them.
//
// A link is TLS like the call connection, to the same port and process, and says by ALPN what it
// is. Who calls dials, when something is to go either way, and again when it is lost; the actor's
// CallDoor admits it. It belongs to the session whose id it begins with (128 random bits that the
// two ends alone know) and to nobody who shows another certificate than who began that session.
// Links whose session is not claimed yet (the actor is busy) wait, kWaitingMax of them; nothing
// beyond their hello is looked at.
//
// One per process, made at its first use, never destroyed; a forked child gets another one, and
// what it inherited is inert. Other threads say what is to be done by BulkSession (bulk_session.h);
// all else here is the thread's own. No lock is held while bytes are copied, encrypted or sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "actors/bulk/bulk_link.h"
#include "actors/core/session/redial_policy.h"
#include "actors/net/call_stream.h"
#include "actors/net/call_tls.h"
#include "actors/net/fork_guard.h"
#include "runtime/async/task.h"
#include "runtime/base/ids.h"
#include "runtime/base/mutex.h"
#include "runtime/base/time.h"

namespace troupe::actors {

/// A call session as the mover knows it; used by the mover's thread only, but for `over`.
struct BulkRoute {
  /// A caller's data: where the actor is, who this process is, how long it is looked for.
  struct Way {
    RemoteActor target;
    IdentitySource identity;
  };
  using Then = std::function<void(StatusOr<store::ObjectId>)>;
  BulkRoute(ObjectStore& store, Duration grace)
      : end(store), redial(grace, /*once=*/false), limit(grace) {}

  BulkLink end;
  SessionId session;     // nil: not begun yet
  std::string identity;  // at an actor: who the caller is
  std::optional<Way> way;
  RedialPolicy redial;
  const Duration limit;
  bool dialling = false;
  bool ended = false;  // the session is; references may be held over it still
  std::atomic<bool> over{false};
  std::uint64_t id = 0;  // id of its link in the epoll set; 0: none
  bool watches_writes = false;
  std::map<store::ObjectId, store::ObjectId> copies;  // pulled, and maybe here still
  std::map<store::ObjectId, std::vector<Then>> copying;
};

class BulkMover {
 public:
  static constexpr std::size_t kWaitingMax = 256;
  /// nullptr: no descriptor or memory is left for one.
  static BulkMover* Current();

  /// Runs there soon, in the order of the posts. Any thread.
  void Post(std::function<void()> work);
  /// A link that was established at this process's door. Any thread.
  void Admit(CallStream stream);
  /// Before this process ends: until all results that others are to get were taken, or nothing went
  /// to them for `quiet`, or `most` passed since the call. Any thread but its own.
  static void AwaitTaken(Duration quiet, Duration most);
  /// Ends the thread of this process's, if there is one: before the libraries it uses go away.
  static void StopCurrent();
  std::uint32_t generation() const { return generation_; }

  // On its thread:
  /// The session is an actor's, and may be linked.
  void Claim(const std::shared_ptr<BulkRoute>& road);
  /// Something changed.
  void Kick(const std::shared_ptr<BulkRoute>& road);
  /// Ends a route whose session is over: it is kept while references are held over it.
  void End(const std::shared_ptr<BulkRoute>& road, const Status& why);
  /// If it was kept for that, and nothing is held any more, it is over.
  void Settle(const std::shared_ptr<BulkRoute>& road);

 private:
  struct Stranger {
    CallStream stream;
    std::string came;
    SessionId session;  // once it said so
  };
  BulkMover();
  void Run();
  bool RunPosted();
  void OnEvent(std::uint64_t id, std::uint32_t events);
  void OnStranger(std::uint64_t id, std::uint32_t events);
  bool TryClaim(std::uint64_t id, Stranger& stranger);
  void Link(const std::shared_ptr<BulkRoute>& road, CallStream stream, const std::string& came,
            const std::string& hello);
  void Serve(const std::shared_ptr<BulkRoute>& road);
  void Lose(const std::shared_ptr<BulkRoute>& road);
  void DialAgain(const std::shared_ptr<BulkRoute>& road, const std::string& why);
  void Finish(const std::shared_ptr<BulkRoute>& road);
  void Dial(const std::shared_ptr<BulkRoute>& road, RedialPolicy::Step step);
  static async::Task<void> Reach(BulkMover* mover, std::shared_ptr<BulkRoute> road,
                                 BulkRoute::Way way, RedialPolicy::Step step);
  void Reached(const std::shared_ptr<BulkRoute>& road, StatusOr<CallStream> stream);
  bool Watch(int fd, std::uint64_t id, std::uint32_t events, bool add);
  int NextTimeoutMs();
  void Expire();
  void TellAwaiting();
  bool AwaitNewsLocked(Instant until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::uint32_t generation_ = ForkGuard::generation();
  GuardedFd epoll_;
  GuardedFd wake_;
  Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  CondVar told_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool awaited_ ABSL_GUARDED_BY(mutex_) = false;
  bool all_taken_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t given_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes

  // The thread's:
  std::uint64_t round_ = 0;     // counts what was posted
  std::uint64_t next_id_ = 16;  // below: the wake-up
  std::set<std::shared_ptr<BulkRoute>> roads_;
  std::map<std::uint64_t, std::shared_ptr<BulkRoute>> linked_;
  std::map<std::uint64_t, Stranger> strangers_;
  std::set<std::uint64_t> more_;  // links that are not done
  std::thread thread_;
};

}  // namespace troupe::actors
