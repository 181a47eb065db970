// The large values of a call session between hosts: gives those that calls and results name to its
// other end, and gets that end's. Its owner's view of a BulkRoute (bulk_mover.h).
//
// Made by a Channel or a CallerConnection when the first large value comes up. Thread-safe; every
// function returns at once, what has come is told on the mover's thread, where nothing may block.
// In a forked child it is inert.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/bulk/bulk_mover.h"

namespace troupe::actors {

class BulkSession {
 public:
  /// From this size on values go over the session's link; smaller ones fit into frames.
  static constexpr std::size_t kFromBytes = 1u << 20;

  /// Makes the caller's end, which tries for at most `grace` to make the link, at first and after
  /// each loss. nullptr: no descriptor is left.
  static std::shared_ptr<BulkSession> Caller(Duration grace);
  /// Makes the actor's end of `session`, for the link of a caller whose certificate says
  /// `identity`. nullptr: no descriptor is left.
  static std::shared_ptr<BulkSession> Actor(const SessionId& session, std::string identity);
  ~BulkSession();
  BulkSession(const BulkSession&) = delete;
  BulkSession& operator=(const BulkSession&) = delete;

  /// Tells the caller's end that the session has begun, and with which actor: the link may be made.
  void Begun(const SessionId& session, RemoteActor target, IdentitySource identity);
  /// Says whether the session's call connection is there.
  void Attached(bool attached);
  /// The session is over: whatever is still to come will not. References that are held over it
  /// stay, until they are let go of.
  void End(const std::string& why);
  /// The other end's process is gone, and with it all that it held, or had.
  void Dead(const std::string& why);

  /// Lets the other end read these objects until TakeBack.
  void Give(std::vector<store::ObjectId> ids);
  void TakeBack(std::vector<store::ObjectId> ids);
  /// The other end may read this result, and hold what lies inside it, until it says that it needs
  /// it no more.
  void GiveResult(const store::ObjectId& id, Handles handles, std::vector<store::ObjectId> inside);
  /// Takes back a result that was given: its reply was not received, and will not be sent again.
  void WithdrawResult(const store::ObjectId& id);

  /// A copy of the other end's object in this process's memory: one that is here still, or a new
  /// one. `then` gets it with one handle.
  void Copy(const store::ObjectId& id, BulkRoute::Then then);
  /// References of the other end's, by their names there: see RemoteRefs::Take. None of a session
  /// that is over.
  void TakeRefs(std::vector<store::ObjectId> names,
                std::function<void(std::shared_ptr<Handles>)> then);
  using ResultDone =
      std::function<void(StatusOr<store::Writing>, const std::vector<store::ObjectId>&)>;
  /// Pulls a result of the other end's, which then lets go of it. `done` gets its bytes, and the
  /// names here of the references `inside` it.
  void PullResult(const store::ObjectId& id, std::vector<store::ObjectId> inside, ResultDone done);
  /// Takes over the references `inside` a result whose bytes came in a frame, and lets the other
  /// end let go of it. `done` gets their names here, and a Writing without memory.
  void TakeResult(const store::ObjectId& id, std::vector<store::ObjectId> inside, ResultDone done);
  /// Lets the other end let go of a result that nobody wants here; its bytes are not pulled.
  void Decline(const store::ObjectId& id);

 private:
  BulkSession(BulkMover& mover, std::shared_ptr<BulkRoute> road)
      : mover_(mover), road_(std::move(road)) {}
  static std::shared_ptr<BulkSession> New(Duration grace, const SessionId& session,
                                          std::string identity);
  void FetchResult(const store::ObjectId& id, bool pulls, std::vector<store::ObjectId> inside,
                   ResultDone done);
  template <class Work>
  void Do(Work work);

  BulkMover& mover_;
  const std::shared_ptr<BulkRoute> road_;
};

}  // namespace troupe::actors
