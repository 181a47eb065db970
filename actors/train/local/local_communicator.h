// A group's communicator over the memory of its nodes and TCP between them: tensors on CPUs, no
// library beside it.
//
//   TROUPE_ASSIGN(Door door, Door::Open());                    // its card goes to the other ranks
//   auto group = LocalCommunicator::Form(supervisor, {.name = "dp", .rank = r, .size = n,
//                                        .secret = secret, .cards = cards}, std::move(door));
//   TROUPE_TRY(group->AwaitReady());
//   TROUPE_ASSIGN(auto work, group->Start({{...}}));
//   supervisor.Stop({group->id()}, "rank 3 was killed");      // on word of a death, any thread
//   work->Wait(...)                                           // kFenced, within microseconds
//
//   LC1  A peer's death is seen by the end of its connection. An operation that still needs it
//        waits `verdict_within` for a word that names the cause, then says what was seen; one that
//        has all it needs ends well.
//   LC2  Who stops tells its peers why, so that all ranks of a group give the same reason; of
//        theirs too only what needs it ends, at once, whoever else has yet to come.
//   LC3  A work has ended only once no thread of the group touches its buffers.
//   LC4  Whatever kills a process, nothing of the group is left behind: memory without a name,
//        sockets without a file.
//
// Start hands operations to the group's thread. Release: says to the peers that this rank leaves,
// after what it has started; it does not wait for them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/train/communicator.h"
#include "actors/train/core/places.h"
#include "actors/train/local/connections.h"
#include "actors/train/local/local_runner.h"
#include "actors/train/local/mail.h"
#include "actors/train/local/peer_watch.h"
#include "actors/train/local/shared_area.h"
#include "actors/train/supervisor.h"
#include "runtime/base/mutex.h"
#include "runtime/base/secret.h"

namespace troupe::train {

struct LocalSpec {
  std::string name;
  std::uint64_t epoch = 1;
  int rank = 0, size = 1;
  Secret secret;            // the group's, the same on all ranks
  std::vector<Card> cards;  // every rank's, in order
  GroupTimes times = {};
  Duration verdict_within{};
};

class LocalCommunicator final : public Communicator,
                                public Supervised,
                                public std::enable_shared_from_this<LocalCommunicator> {
 public:
  /// The callback for a group's state, on the supervisor's thread: returns at once.
  using OnState = std::function<void(GroupState, const std::string&)>;

  /// Begins to form it; returns at once. The supervisor must outlive it.
  static std::shared_ptr<LocalCommunicator> Form(Supervisor& supervisor, LocalSpec spec, Door door,
                                                 OnState on_state = {});
  /// Blocks until its threads have ended, which they do once it is stopped or released. Not on a
  /// thread of its own.
  ~LocalCommunicator() override;

  /// Blocks until it is formed. kFenced: stopped meanwhile, or not formed in time, with the reason.
  Status AwaitReady();
  /// Blocks until nothing of it is left; ok also after a stop.
  void AwaitReleased();
  Supervisor::Id id() const { return id_; }

  StatusOr<std::shared_ptr<Work>> Start(std::span<const Operation> operations) override;
  /// Start for whoever wants to be called at the end.
  StatusOr<std::shared_ptr<LocalWork>> StartLocal(std::span<const Operation> operations);
  void Stop(const std::string& reason) override;
  Status Release() override;
  /// Begins the release; returns at once. It may be dropped then.
  void Leave();
  std::uint64_t seq() const override { return seq_; }
  int rank() const override { return spec_.rank; }
  int size() const override { return spec_.size; }

  // Functions for the supervisor.
  int device() const override { return -1; }
  void Wake(const std::string& reason) override;
  void Tell(GroupState state, const std::string& text) override;
  Status Watch(Instant now, std::optional<Instant>& again) override;
  Status Init() override;
  Status Revoke() override;
  Status Finalize() override;
  Status Destroy() override;
  void AbortTogether(std::span<Supervised* const> all) override;

 private:
  LocalCommunicator(Supervisor& supervisor, LocalSpec spec, Door door, OnState on_state);

  std::string Name() const;
  Status StoppedError() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// A connection for each channel with each rank; those of this node have but one.
  StatusOr<std::vector<Met>> Meet(const Patience& patience);
  StatusOr<std::unique_ptr<SharedArea>> Share(std::vector<PeerLink>& links,
                                              const Patience& patience);
  void Begin(std::unique_ptr<SharedArea> area, std::vector<PeerLink> links, std::vector<Met> met)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The observed end of a peer; `is_judged`: a verdict that knows more may follow.
  struct PeerEnd {
    std::string text;
    bool is_judged = false;
  };
  /// The ranks of this node that have not come to a piece, less one of them, "1, 3".
  std::string AbsentHere(std::uint64_t number, int but = -1) const;
  std::string Absent(std::uint64_t number);
  void OnGone(const PeerLink& peer, PeerFate fate);
  void Note(int peer, PeerEnd end);
  /// Returns the caller's error for an operation that did not end well.
  Status Ended(const Status& why);
  /// Returns the observed end of a peer, or waits for the verdict on it.
  Status AwaitVerdict(int peer);
  Status Fail(const std::string& why);

  Supervisor& supervisor_;
  const LocalSpec spec_;
  const Places places_;
  Door door_;  // until it is formed
  const OnState on_state_;
  const UniqueFd stop_;  // readable once it is stopped
  std::atomic<Supervisor::Id> id_{0};

  Mutex start_mutex_;  // serialises starts; before mutex_
  std::atomic<std::uint64_t> seq_{0}, messages_{0};
  Mutex mutex_;
  CondVar changed_;
  GroupState state_ ABSL_GUARDED_BY(mutex_) = GroupState::kForming;
  std::optional<std::string> stopped_ ABSL_GUARDED_BY(mutex_);
  std::vector<PeerEnd> ends_ ABSL_GUARDED_BY(mutex_);  // every peer's
  // Members made when the group forms, until it is destroyed; the later ones use the earlier ones.
  std::unique_ptr<SharedArea> area_;
  std::unique_ptr<Connections> connections_;  // to other nodes, where the group has several
  std::unique_ptr<PeerWatch> watch_;
  std::unique_ptr<LocalRunner> runner_;
  std::unique_ptr<Mail> mail_;
};

}  // namespace troupe::train
