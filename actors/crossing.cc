#include "actors/crossing.h"

#include <utility>

#include "actors/now.h"
#include "actors/reactor.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kCopiesSwept = 64;

/// The value came, or did not: who asked for it hears of that.
void Copied(Road& road, const store::ObjectId& id, StatusOr<store::Writing> writing) {
  const auto found = road.copying.find(id);
  if (found == road.copying.end()) return;
  const std::vector<Road::Then> asked = std::move(found->second);
  road.copying.erase(found);
  ObjectStore* const store = ObjectStore::Existing();
  if (!writing.ok() || store == nullptr) {
    for (const Road::Then& then : asked) then(writing.status());
    return;
  }
  const store::ObjectId copy = store->Put(*writing, CallReactor::Current().NextLocalId(), {});
  if (!road.over) road.copies[id] = copy;
  for (std::size_t i = 1; i < asked.size(); ++i) store->AddHandle(copy);
  for (const Road::Then& then : asked) then(copy);
}

/// Forgets copies that are gone.
void Sweep(Road& road, ObjectStore& store) {
  if (road.copies.size() < kCopiesSwept) return;
  std::erase_if(road.copies, [&store](const auto& each) { return !store.Knows(each.second); });
}

void StartCopy(Road& road, const store::ObjectId& id, Road::Then then) {
  ObjectStore* const store = ObjectStore::Existing();
  if (road.over || store == nullptr) {
    return then(MakeError(ErrorCode::kConnection, "the connection of its caller is over"));
  }
  const auto here = road.copies.find(id);
  if (here != road.copies.end() && store->TryAddHandle(here->second)) return then(here->second);
  Sweep(road, *store);
  std::vector<Road::Then>& asked = road.copying[id];
  asked.push_back(std::move(then));
  if (asked.size() > 1) return;
  // The end is the road's own: what it calls back does not outlive it.
  road.end.Pull(id, [&road, id](StatusOr<store::Writing> writing) { Copied(road, id, std::move(writing)); }, Now());
}

}  // namespace

std::shared_ptr<Crossing> Crossing::New(Duration grace, const SessionId& session, std::string identity) {
  ObjectMover* const mover = ObjectMover::Current();
  ObjectStore* const store = ObjectStore::Current();
  if (mover == nullptr || store == nullptr) return nullptr;
  auto road = std::make_shared<Road>(*store, grace);
  road->session = session;
  road->identity = std::move(identity);
  return std::shared_ptr<Crossing>(new Crossing(*mover, std::move(road)));
}

std::shared_ptr<Crossing> Crossing::Caller(Duration grace) { return New(grace, SessionId(), std::string()); }

std::shared_ptr<Crossing> Crossing::Actor(const SessionId& session, std::string identity) {
  const std::shared_ptr<Crossing> made = New(Duration::zero(), session, std::move(identity));
  if (made != nullptr) made->mover_.Post([&mover = made->mover_, road = made->road_] { mover.Claim(road); });
  return made;
}

Crossing::~Crossing() { End("its session is over"); }

/// Once the work is done the mover looks what follows from it.
template <class Work>
void Crossing::Do(Work work) {
  if (mover_.generation() != ForkGuard::generation()) return;
  mover_.Post([&mover = mover_, road = road_, work = std::move(work)]() mutable {
    work(*road);
    mover.Kick(road);
  });
}

void Crossing::Begun(const SessionId& session, RemoteActor target, IdentitySource identity) {
  Road::Way way{std::move(target), std::move(identity)};
  Do([session, way = std::move(way)](Road& road) mutable {
    road.session = session;
    road.way = std::move(way);
  });
}

void Crossing::Attached(bool attached) {
  Do([attached](Road& road) { road.end.Attached(attached, Now()); });
}

void Crossing::End(const std::string& why) {
  if (mover_.generation() != ForkGuard::generation() || road_->over) return;
  mover_.Post([&mover = mover_, road = road_, why] { mover.End(road, MakeError(ErrorCode::kConnection, why)); });
}

void Crossing::Give(std::vector<store::ObjectId> ids) {
  Do([ids = std::move(ids)](Road& road) {
    for (const store::ObjectId& id : ids) road.end.Give(id);
  });
}

void Crossing::TakeBack(std::vector<store::ObjectId> ids) {
  Do([ids = std::move(ids)](Road& road) {
    for (const store::ObjectId& id : ids) road.end.TakeBack(id);
  });
}

void Crossing::GiveResult(const store::ObjectId& id, Handles handle) {
  // What is posted is copied, a handle is not.
  auto shared = std::make_shared<Handles>(std::move(handle));
  Do([id, shared](Road& road) {
    if (!road.over) road.end.GiveResult(id, std::move(*shared));
  });
}

void Crossing::WithdrawResult(const store::ObjectId& id) {
  Do([id](Road& road) { road.end.WithdrawResult(id); });
}

void Crossing::Copy(const store::ObjectId& id, Road::Then then) {
  Do([id, then = std::move(then)](Road& road) mutable { StartCopy(road, id, std::move(then)); });
}

void Crossing::PullResult(const store::ObjectId& id, BulkEnd::Done done) {
  Do([id, done = std::move(done)](Road& road) mutable {
    if (road.over) return done(MakeError(ErrorCode::kConnection, "the connection to its actor is over"));
    BulkEnd::Done ended = [&road, id, done = std::move(done)](StatusOr<store::Writing> writing) {
      road.end.Took(id);
      done(std::move(writing));
    };
    road.end.Pull(id, std::move(ended), Now());
  });
}

void Crossing::Decline(const store::ObjectId& id) {
  Do([id](Road& road) { road.end.Took(id); });
}

}  // namespace troupe::actors
