// What a call session between hosts does about large values: gives those that calls and results name to its
// other end, and gets that end's. Its owner's view of a BulkRoute (bulk_mover.h).
//
// Made by a Channel or a CallerConnection when the first large value comes up. Thread-safe; every function returns at
// once, what has come is told on the mover's thread, where nothing may block. In a forked child it is inert.
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

  /// Of who calls; the link is made for at most `grace`, and again after each loss. nullptr: no descriptor
  /// is left.
  static std::shared_ptr<BulkSession> Caller(Duration grace);
  /// Of the actor, with a caller that shows this certificate.
  static std::shared_ptr<BulkSession> Actor(const SessionId& session, std::string identity);
  ~BulkSession();
  BulkSession(const BulkSession&) = delete;
  BulkSession& operator=(const BulkSession&) = delete;

  /// Of who calls: the session has begun, and with whom.
  void Begun(const SessionId& session, RemoteActor target, IdentitySource identity);
  /// Whether the session's call connection is there.
  void Attached(bool attached);
  /// The session is over: whatever is still to come will not. References that are held over it stay, until they are
  /// let go of.
  void End(const std::string& why);
  /// The other end's process is gone, and with it all that it held, or had.
  void Dead(const std::string& why);

  /// The other end may read these until they are taken back.
  void Give(std::vector<store::ObjectId> ids);
  void TakeBack(std::vector<store::ObjectId> ids);
  /// The other end may read this result, and hold what lies inside it, until it says that it needs it no more.
  void GiveResult(const store::ObjectId& id, Handles handles, std::vector<store::ObjectId> inside);
  /// Its reply was not received, and will not be sent again.
  void WithdrawResult(const store::ObjectId& id);

  /// A copy of the other end's object in this process's memory: one that is here still, or a new one. `then`
  /// gets it with one handle.
  void Copy(const store::ObjectId& id, BulkRoute::Then then);
  /// References of the other end's, by their names there: see RemoteRefs::Take. None of a session that is over.
  void TakeRefs(std::vector<store::ObjectId> names, std::function<void(std::shared_ptr<Handles>)> then);
  using ResultDone = std::function<void(StatusOr<store::Writing>, const std::vector<store::ObjectId>&)>;
  /// The other end's result, once, which it then lets go of, and what stands here for the references inside it.
  void PullResult(const store::ObjectId& id, std::vector<store::ObjectId> inside, ResultDone done);
  /// The same of one whose bytes came otherwise: there is no memory.
  void TakeResult(const store::ObjectId& id, std::vector<store::ObjectId> inside, ResultDone done);
  /// The same of one that nobody wants.
  void Decline(const store::ObjectId& id);

 private:
  BulkSession(BulkMover& mover, std::shared_ptr<BulkRoute> road) : mover_(mover), road_(std::move(road)) {}
  static std::shared_ptr<BulkSession> New(Duration grace, const SessionId& session, std::string identity);
  void FetchResult(const store::ObjectId& id, bool pulls, std::vector<store::ObjectId> inside, ResultDone done);
  template <class Work>
  void Do(Work work);

  BulkMover& mover_;
  const std::shared_ptr<BulkRoute> road_;
};

}  // namespace troupe::actors
