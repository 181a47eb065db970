// The link of a call session between hosts, at one of its ends: the socket, the memory that
// values come into and are given from, the handles of results. What is given, pulled and awaited,
// and for how long, is decided by BulkExchange (core/remote/bulk_exchange.h); the link may be
// lost and come again. Only what was given to this very session can be read over it.
//
// Belongs to the mover's thread (bulk_mover.h) and holds no lock. Nothing blocks but new memory.
// What is given is read from where it lies and encrypted as the socket takes it, what comes is
// written where it stays: memory for a value is taken when its size is known, and nothing else
// grows with it. An end that breaks the rules loses the link alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/bulk/remote_refs.h"
#include "actors/core/remote/bulk_exchange.h"
#include "actors/net/call_stream.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_store.h"
#include "runtime/base/time.h"
#include "runtime/store/pool.h"

namespace troupe::actors {

class BulkLink {
 public:
  /// The memory with the value, which is the receiver's to lend or give up; or why there is none.
  using Done = std::function<void(StatusOr<store::Writing>)>;

  explicit BulkLink(ObjectStore& store);
  BulkLink(const BulkLink&) = delete;
  BulkLink& operator=(const BulkLink&) = delete;

  /// The other end may read it, until as many TakeBacks.
  void Give(const store::ObjectId& id) { exchange_.Give(id); }
  void TakeBack(const store::ObjectId& id) { exchange_.TakeBack(id); }
  /// A result: until it is taken. So long the references inside it, by these names, may be held.
  void GiveResult(const store::ObjectId& id, Handles handles, std::vector<store::ObjectId> inside);
  void WithdrawResult(const store::ObjectId& id);
  /// A result is here for somebody who may come for it.
  bool AwaitsTaker() const { return exchange_.AwaitsTaker(); }
  std::uint64_t given_bytes() const { return given_bytes_; }
  /// `done` is called once, on this thread, later.
  void Pull(const store::ObjectId& id, Done done, Instant now);
  /// References of the other end's (remote_refs.h).
  void TakeRefs(const std::vector<store::ObjectId>& names, RemoteRefs::Then then, Instant now);
  RemoteRefs& refs() { return refs_; }
  /// A result of the other end's is not needed any more.
  void Took(const store::ObjectId& id) { exchange_.Took(id); }
  /// Returns true if a link has anything to do.
  bool WantsLink() const { return exchange_.WantsLink(RefsNow()); }
  /// No link has to be made for references. While the other end is there it is also to hear of
  /// those let go of: it would keep them for as long.
  bool RefsSettled() const { return exchange_.RefsSettled(RefsNow()); }
  /// Sets whether the session's call connection is there.
  void Attached(bool attached, Instant now) { exchange_.Attached(attached, now); }

  /// `came`: what was read from it before. False: the other end broke the rules.
  bool Link(CallStream stream, std::string_view came, const std::string& hello, Instant now);
  void Unlink(Instant now);
  bool linked() const { return stream_.has_value(); }
  int fd() const { return stream_->fd(); }
  /// Something came over it.
  bool heard() const { return exchange_.heard(); }
  enum class Went { kIdle, kMore, kWrites, kOver };
  /// Reads and writes some. kMore: there is more to do at once; kWrites: when the socket takes
  /// more. `round` counts how often what was posted was done: who asks for what is not given may
  /// have heard of it since then, and is told so in a later round only.
  Went Run(Instant now, std::uint64_t round);
  /// Why the link is over.
  const std::string& why() const { return why_; }

  /// All pulls end with that; so do, with `refs`, those of references' values, and what was asked
  /// of them.
  void FailPulls(const Status& why, bool refs = true);
  /// The session is over: nothing is given, its pulls end. References stay. True: there are none,
  /// and nothing is left for a link to do.
  bool EndCalls(const Status& why, Instant now);
  bool Over() const { return exchange_.Over(RefsNow()); }
  /// The other end is gone.
  void EndRefs(const std::string& why) {
    refs_.End(kOwnerDied, "the process that the ref came from is gone: " + why);
  }
  /// All of it is over.
  void GiveUp(const Status& why);
  std::optional<Instant> Deadline() const { return exchange_.Deadline(RefsNow()); }
  /// The deadline is over. True: the link is of no use.
  bool Expire(Instant now);

 private:
  using PullId = BulkExchange::PullId;
  struct Pulling {
    Done done;
    std::optional<store::Writing> writing;
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
  Status BeginPart(const BulkPulls::Part& part);
  void BeginPull(const store::ObjectId& id, bool of_ref, Done done, Instant now);
  void EndPull(PullId pull, StatusOr<store::Writing> result);
  enum class Filled { kYes, kNothing, kInDoubt };
  Filled Fill(std::uint64_t round);
  void BeginGiving(const BulkFrame& read);
  BulkExchange::Refs RefsNow() const { return {refs_.Awaits(), refs_.idle(), refs_.Over()}; }

  ObjectStore& store_;
  BulkExchange exchange_;
  std::map<store::ObjectId, Handles> results_;
  std::map<PullId, Pulling> pulling_;
  RemoteRefs refs_;
  std::uint64_t given_bytes_ = 0;

  std::optional<CallStream> stream_;
  std::string why_;
  std::string head_;       // a frame's beginning that is not whole
  char* place_ = nullptr;  // target of the next bytes; nullptr: none
  std::string out_;        // frames, the last one's bytes may be in giving_
  std::size_t sent_ = 0;   // so much of out_
  std::optional<Giving> giving_;
};

}  // namespace troupe::actors
