#include "actors/bulk/bulk_session.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "actors/net/now.h"
#include "actors/slots/completions.h"
#include "runtime/obs/trace.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kCopiesSwept = 64;

/// Requests of references at a road's other end. The road may have ended meanwhile.
class BulkRouteSource : public RemoteSource {
 public:
  BulkRouteSource(BulkMover& mover, std::weak_ptr<BulkRoute> road)
      : mover_(mover), road_(std::move(road)) {}
  void Want(const store::ObjectId& name, std::uint64_t number) override {
    Do([name, number](BulkRoute& road) { road.end.refs().Want(name, number); });
  }
  void LetGo(const store::ObjectId& name, std::uint64_t number) override {
    Do([name, number](BulkRoute& road) { road.end.refs().LetGo(name, number); });
  }
  void LentOn(const store::ObjectId& name, std::uint64_t number, bool lent) override {
    Do([name, number, lent](BulkRoute& road) { road.end.refs().LentOn(name, number, lent); });
  }
  void Came(const store::ObjectId& name) {
    Do([name](BulkRoute& road) { road.end.refs().Came(name); });
  }

 private:
  template <class Work>
  void Do(Work work) {
    if (mover_.generation() != ForkGuard::generation()) return;
    mover_.Post([&mover = mover_, weak = road_, work] {
      const std::shared_ptr<BulkRoute> road = weak.lock();
      if (road == nullptr || road->over) return;
      work(*road);
      mover.Kick(road);
    });
  }

  BulkMover& mover_;
  const std::weak_ptr<BulkRoute> road_;
};

using Pulled = std::function<void(StatusOr<store::Writing>)>;

/// `done`, with a span of what came since now.
Pulled Recorded(Pulled done) {
  if (!obs::Tracing()) return done;
  return [began = obs::TraceNow(), done = std::move(done)](StatusOr<store::Writing> writing) {
    obs::Span span;
    span.kind = obs::SpanKind::kTransfer;
    span.begin = began;
    span.end = obs::TraceNow();
    span.name = writing.ok() ? "value from another host" : "value that did not come";
    span.value = writing.ok() ? writing->bytes : 0;
    obs::AddSpan(span);
    done(std::move(writing));
  };
}

/// The value came, or did not: who asked for it hears of that.
void Copied(BulkRoute& road, const store::ObjectId& id, StatusOr<store::Writing> writing) {
  const auto found = road.copying.find(id);
  if (found == road.copying.end()) return;
  const std::vector<BulkRoute::Then> asked = std::move(found->second);
  road.copying.erase(found);
  ObjectStore* const store = ObjectStore::Existing();
  if (!writing.ok() || store == nullptr) {
    for (const BulkRoute::Then& then : asked) then(writing.status());
    return;
  }
  const store::ObjectId copy = store->Put(*writing, store->completions().NextLocalId(), {});
  if (!road.ended) road.copies[id] = copy;
  for (std::size_t i = 1; i < asked.size(); ++i) store->AddHandle(copy);
  for (const BulkRoute::Then& then : asked) then(copy);
}

/// Forgets copies that are gone.
void Sweep(BulkRoute& road, ObjectStore& store) {
  if (road.copies.size() < kCopiesSwept) return;
  std::erase_if(road.copies, [&store](const auto& each) { return !store.Knows(each.second); });
}

void StartCopy(BulkRoute& road, const store::ObjectId& id, BulkRoute::Then then) {
  ObjectStore* const store = ObjectStore::Existing();
  if (road.ended || store == nullptr) {
    return then(MakeError(ErrorCode::kConnection, "the connection of its caller is over"));
  }
  const auto here = road.copies.find(id);
  if (here != road.copies.end() && store->TryAddHandle(here->second)) return then(here->second);
  Sweep(road, *store);
  std::vector<BulkRoute::Then>& asked = road.copying[id];
  asked.push_back(std::move(then));
  if (asked.size() > 1) return;
  // The end is the road's own: what it calls back does not outlive it.
  road.end.Pull(
      id,
      Recorded([&road, id](StatusOr<store::Writing> writing) {
        Copied(road, id, std::move(writing));
      }),
      Now());
}

}  // namespace

std::shared_ptr<BulkSession> BulkSession::New(Duration grace, const SessionId& session,
                                              std::string identity) {
  BulkMover* const mover = BulkMover::Current();
  ObjectStore* const store = ObjectStore::Current();
  if (mover == nullptr || store == nullptr) return nullptr;
  auto road = std::make_shared<BulkRoute>(*store, grace);
  road->session = session;
  road->identity = std::move(identity);
  const auto source = std::make_shared<BulkRouteSource>(*mover, road);
  road->end.refs().Begin(source, [source](const store::ObjectId& name) { source->Came(name); });
  return std::shared_ptr<BulkSession>(new BulkSession(*mover, std::move(road)));
}

std::shared_ptr<BulkSession> BulkSession::Caller(Duration grace) {
  return New(grace, SessionId(), std::string());
}

std::shared_ptr<BulkSession> BulkSession::Actor(const SessionId& session, std::string identity) {
  const std::shared_ptr<BulkSession> made = New(Duration::zero(), session, std::move(identity));
  if (made != nullptr)
    made->mover_.Post([&mover = made->mover_, road = made->road_] { mover.Claim(road); });
  return made;
}

BulkSession::~BulkSession() { End("its session is over"); }

/// Once the work is done the mover looks what follows from it.
template <class Work>
void BulkSession::Do(Work work) {
  if (mover_.generation() != ForkGuard::generation()) return;
  mover_.Post([&mover = mover_, road = road_, work = std::move(work)]() mutable {
    work(*road);
    mover.Kick(road);
  });
}

void BulkSession::Begun(const SessionId& session, RemoteActor target, IdentitySource identity) {
  BulkRoute::Way way{std::move(target), std::move(identity)};
  Do([session, way = std::move(way)](BulkRoute& road) mutable {
    road.session = session;
    road.way = std::move(way);
  });
}

void BulkSession::Attached(bool attached) {
  Do([attached](BulkRoute& road) { road.end.Attached(attached, Now()); });
}

void BulkSession::End(const std::string& why) {
  if (mover_.generation() != ForkGuard::generation() || road_->over) return;
  mover_.Post([&mover = mover_, road = road_, why] {
    mover.End(road, MakeError(ErrorCode::kConnection, why));
  });
}

void BulkSession::Dead(const std::string& why) {
  End(why);
  if (mover_.generation() != ForkGuard::generation() || road_->over) return;
  mover_.Post([&mover = mover_, road = road_, why] {
    road->end.EndRefs(why);
    mover.Settle(road);
  });
}

void BulkSession::Give(std::vector<store::ObjectId> ids) {
  Do([ids = std::move(ids)](BulkRoute& road) {
    for (const store::ObjectId& id : ids) {
      if (!road.ended) road.end.Give(id);
    }
  });
}

void BulkSession::TakeBack(std::vector<store::ObjectId> ids) {
  Do([ids = std::move(ids)](BulkRoute& road) {
    for (const store::ObjectId& id : ids) road.end.TakeBack(id);
  });
}

void BulkSession::GiveResult(const store::ObjectId& id, Handles handles,
                             std::vector<store::ObjectId> inside) {
  // Posted work is copied, and a handle cannot be.
  auto shared = std::make_shared<Handles>(std::move(handles));
  Do([id, shared, inside = std::move(inside)](BulkRoute& road) {
    if (!road.ended) road.end.GiveResult(id, std::move(*shared), inside);
  });
}

void BulkSession::WithdrawResult(const store::ObjectId& id) {
  Do([id](BulkRoute& road) { road.end.WithdrawResult(id); });
}

void BulkSession::Copy(const store::ObjectId& id, BulkRoute::Then then) {
  Do([id, then = std::move(then)](BulkRoute& road) mutable {
    StartCopy(road, id, std::move(then));
  });
}

void BulkSession::TakeRefs(std::vector<store::ObjectId> names,
                           std::function<void(std::shared_ptr<Handles>)> then) {
  Do([names = std::move(names), then = std::move(then)](BulkRoute& road) {
    if (road.over) return then(std::make_shared<Handles>());
    road.end.TakeRefs(
        names, [then](Handles handles) { then(std::make_shared<Handles>(std::move(handles))); },
        Now());
  });
}

namespace {

/// A result on its way: its bytes, and what lies inside it.
struct Fetching {
  std::optional<StatusOr<store::Writing>> writing;
  std::optional<Handles> inside;
  BulkSession::ResultDone done;
};

void Fetched(BulkRoute& road, const store::ObjectId& id, Fetching& fetching) {
  if (!fetching.writing || !fetching.inside) return;
  fetching.done(*std::move(fetching.writing), fetching.inside->ids());
  fetching.inside.reset();
  road.end.Took(id);  // the other end may let go of what lies inside: it knows who holds it
}

void Fetch(BulkRoute& road, const store::ObjectId& id, bool pulls,
           const std::vector<store::ObjectId>& inside, const BulkSession::ResultDone& done) {
  const auto fetching = std::make_shared<Fetching>();
  fetching->done = done;
  if (!pulls) fetching->writing.emplace(store::Writing());
  // The end is the road's own: what it calls back does not outlive it.
  road.end.TakeRefs(
      inside,
      [&road, id, fetching](Handles handles) {
        fetching->inside = std::move(handles);
        Fetched(road, id, *fetching);
      },
      Now());
  if (!pulls) return;
  road.end.Pull(
      id,
      Recorded([&road, id, fetching](StatusOr<store::Writing> writing) {
        fetching->writing.emplace(std::move(writing));
        Fetched(road, id, *fetching);
      }),
      Now());
}

}  // namespace

void BulkSession::FetchResult(const store::ObjectId& id, bool pulls,
                              std::vector<store::ObjectId> inside, ResultDone done) {
  Do([id, pulls, inside = std::move(inside), done = std::move(done)](BulkRoute& road) {
    if (!road.ended) return Fetch(road, id, pulls, inside, done);
    done(MakeError(ErrorCode::kConnection, "the connection to its actor is over"), {});
  });
}

void BulkSession::PullResult(const store::ObjectId& id, std::vector<store::ObjectId> inside,
                             ResultDone done) {
  FetchResult(id, /*pulls=*/true, std::move(inside), std::move(done));
}

void BulkSession::TakeResult(const store::ObjectId& id, std::vector<store::ObjectId> inside,
                             ResultDone done) {
  FetchResult(id, /*pulls=*/false, std::move(inside), std::move(done));
}

void BulkSession::Decline(const store::ObjectId& id) {
  Do([id](BulkRoute& road) { road.end.Took(id); });
}

}  // namespace troupe::actors
