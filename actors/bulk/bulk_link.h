// One end of the bulk exchange of a call session between hosts: the values it gives, those it pulls, and the
// link they go over, which may be lost and come again.
//
// Belongs to the mover's thread (bulk_mover.h) and is not locked. Nothing blocks but new memory. What is
// given is read from where it lies and encrypted as the socket takes it, what comes is written where it stays:
// memory for a value is taken when its size is known, and nothing else grows with it. Limits: who asks for
// more than kReadsMax parts at once breaks the rules, as does whatever bulk_pulls.h says; that ends the link
// alone. A pull for which nothing comes for kSilence ends. A result that is not taken is given up kKept
// after both connections to who it is for are gone; so is what was lent to it, and what came of it is lost.
//
// Only what was given to this very session can be read over its link.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "actors/bulk/remote_refs.h"
#include "actors/core/remote/bulk_pulls.h"
#include "actors/net/call_stream.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_store.h"
#include "runtime/base/time.h"
#include "runtime/store/pool.h"

namespace troupe::actors {

class BulkLink {
 public:
  static constexpr std::size_t kReadsMax = 64;
  static constexpr std::chrono::seconds kSilence{30};  // from the last byte, or the pull's begin
  static constexpr std::chrono::seconds kKept{30};     // from the loss of the second connection
  /// The memory with the value, which is the receiver's to lend or give up; or why there is none.
  using Done = std::function<void(StatusOr<store::Writing>)>;

  explicit BulkLink(ObjectStore& store);
  BulkLink(const BulkLink&) = delete;
  BulkLink& operator=(const BulkLink&) = delete;

  /// The other end may read it, until as many TakeBacks.
  void Give(const store::ObjectId& id) { ++given_[id]; }
  void TakeBack(const store::ObjectId& id);
  /// A result: until it is taken. So long the references inside it, by these names, may be held.
  void GiveResult(const store::ObjectId& id, Handles handles, std::vector<store::ObjectId> inside);
  void WithdrawResult(const store::ObjectId& id);
  /// A result is here for somebody who may come for it.
  bool AwaitsTaker() const { return !results_.empty() && (attached_ || linked()); }
  std::uint64_t given_bytes() const { return given_bytes_; }
  void Pull(const store::ObjectId& id, Done done, Instant now);
  /// References of the other end's (remote_refs.h).
  void TakeRefs(const std::vector<store::ObjectId>& names, RemoteRefs::Then then, Instant now);
  RemoteRefs& refs() { return refs_; }
  /// A result of the other end's is not needed any more.
  void Took(const store::ObjectId& id);
  /// Whether there is anything for a link to do.
  bool WantsLink() const { return !given_.empty() || !pulling_.empty() || !took_.empty() || !RefsSettled(); }
  /// No link has to be made for references. While the other end is there it is also to hear of those let go of: it
  /// would keep them for as long.
  bool RefsSettled() const { return attached_ ? refs_.idle() : refs_.Over(); }
  /// Whether the session's call connection is there.
  void Attached(bool attached, Instant now);

  /// `came`: what was read from it before. False: the other end broke the rules.
  bool Link(CallStream stream, std::string_view came, const std::string& hello, Instant now);
  void Unlink(Instant now);
  bool linked() const { return stream_.has_value(); }
  int fd() const { return stream_->fd(); }
  /// Something came over it.
  bool heard() const { return heard_; }
  enum class Went { kIdle, kMore, kWrites, kOver };
  /// Reads and writes some. kMore: there is more to do at once; kWrites: when the socket takes more. `round` counts
  /// how often what was posted was done: who asks for what is not given may have heard of it since then, and is
  /// told so in a later round only.
  Went Run(Instant now, std::uint64_t round);
  /// Why the link is over.
  const std::string& why() const { return why_; }

  /// All pulls end with that; so do, with `refs`, those of references' values, and what was asked of them.
  void FailPulls(const Status& why, bool refs = true);
  /// The session is over: nothing is given, its pulls end. References stay. True: there are none, and nothing is left
  /// for a link to do.
  bool EndCalls(const Status& why, Instant now);
  bool Over() const { return linked() ? refs_.idle() : refs_.Over(); }
  /// The other end is gone.
  void EndRefs(const std::string& why) { refs_.End(kOwnerDied, "the process that the ref came from is gone: " + why); }
  /// All of it is over.
  void GiveUp(const Status& why);
  std::optional<Instant> Deadline() const;
  /// The deadline is over. True: the link is of no use.
  bool Expire(Instant now);

 private:
  struct Pulling {
    Done done;
    bool of_ref = false;
    std::optional<store::Writing> writing;
  };
  struct GivenResult {
    Handles handles;
    std::vector<store::ObjectId> inside;
  };
  struct Giving {
    ObjectView view;  // or:
    std::shared_ptr<const void> kept;
    std::string_view bytes;
    std::uint64_t offset = 0;
    std::uint64_t left = 0;
  };
  Went ReadSome(Instant now);
  Went WriteSome(std::uint64_t round);
  bool Take(std::string_view bytes);
  Status TakeFrame(const BulkFrame& frame);
  Status BeginPart(const BulkFrame& frame);
  void EndPull(BulkPulls::PullId pull, StatusOr<store::Writing> result);
  enum class Filled { kYes, kNothing, kInDoubt };
  Filled Fill(std::uint64_t round);
  bool Gives(const store::ObjectId& id) const { return given_.count(id) != 0 || results_.count(id) != 0; }
  bool DropTaken(std::uint64_t round);
  void BeginGiving(const BulkFrame& read);
  void BeginPull(const store::ObjectId& id, bool of_ref, Done done, Instant now);
  bool Waits() const { return !pulling_.empty() || refs_.Awaits(); }
  /// Nobody at the other end has been there for kKept.
  bool Deserted(Instant now) const { return !attached_ && !linked() && now - lonely_since_ >= kKept; }

  ObjectStore& store_;
  std::map<store::ObjectId, std::uint64_t> given_;
  std::map<store::ObjectId, GivenResult> results_;
  std::uint64_t given_bytes_ = 0;
  std::set<store::ObjectId> took_;  // and the other end has not said kDropped
  BulkPulls pulls_;
  std::map<BulkPulls::PullId, Pulling> pulling_;
  Instant progress_{};
  RemoteRefs refs_;

  std::optional<CallStream> stream_;
  bool attached_ = true;
  Instant lonely_since_{};  // neither connection is there
  bool heard_ = false;
  std::string why_;
  std::string head_;  // of a frame that is not whole
  char* place_ = nullptr;  // of the bytes that come next; nullptr: nowhere
  std::deque<BulkFrame> reads_;
  Doubt read_doubt_;  // of the first of them
  std::deque<store::ObjectId> taken_;  // results that the other end needs no more
  Doubt taken_doubt_;
  std::string words_;  // to be said at the next frame's end
  std::string out_;    // frames, the last one's bytes may be in giving_
  std::size_t sent_ = 0;  // of out_
  std::optional<Giving> giving_;
};

}  // namespace troupe::actors
