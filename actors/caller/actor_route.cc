#include "actors/caller/actor_route.h"

#include <functional>

#include "actors/net/call_dial.h"
#include "actors/net/tls_loop.h"
#include "actors/net/unix_stream.h"
#include "runtime/async/deadline.h"

namespace troupe::actors {

/// On the background thread: another connection to an actor of this host.
class ActorRoute::RedialHere : public Completion {
 public:
  RedialHere(std::weak_ptr<RouteUser> user, std::string path)
      : user_(std::move(user)), path_(std::move(path)) {}
  void Run() override {
    const std::shared_ptr<RouteUser> user = user_.lock();
    if (user == nullptr) return;
    StatusOr<UnixStream> stream = UnixStream::Connect(path_, UnixStream::Wait::kNo);
    if (stream.ok()) return user->Attach(CallStream(*std::move(stream)));
    user->LoseActor();
  }

 private:
  const std::weak_ptr<RouteUser> user_;
  const std::string path_;
};

bool ActorRoute::AimHere(std::string path) {
  if (!std::exchange(aimless_, false)) return false;
  path_ = std::move(path);
  redial_ = RedialPolicy(grace_, /*once=*/true);
  return true;
}

bool ActorRoute::AimRemote(RemoteActor target, IdentitySource identity) {
  if (!std::exchange(aimless_, false)) return false;
  target_ = std::move(target);
  identity_ = std::move(identity);
  return true;
}

std::optional<RedialPolicy::Step> ActorRoute::Lost(Instant now, std::string_view reason) {
  const std::optional<RedialPolicy::Step> step = redial_.Lost(now);
  if (step) lost_reason_ = reason;
  return step;
}

void ActorRoute::Dial(std::weak_ptr<RouteUser> user) const {
  RedialPolicy::Step step;
  step.limit = grace_;
  Spawn("dial", std::move(user), step);
}

void ActorRoute::Redial(std::weak_ptr<RouteUser> user, RedialPolicy::Step step,
                        Completions& completions) const {
  if (!here()) return Spawn("dial again", std::move(user), step);
  completions.Post(std::make_unique<RedialHere>(std::move(user), path_));
}

void ActorRoute::Spawn(const char* name, std::weak_ptr<RouteUser> user,
                       RedialPolicy::Step step) const {
  TlsLoop::Current().Spawn(name, Reach(std::move(user), target_, identity_, step));
}

/// Holds the user only while it is called: nobody but its own users keeps it.
async::Task<void> ActorRoute::Reach(std::weak_ptr<RouteUser> weak, RemoteActor target,
                                    IdentitySource identity, RedialPolicy::Step step) {
  if (step.pause > Duration::zero()) co_await async::SleepFor(step.pause);
  if (weak.expired()) co_return;
  std::function<bool()> wanted = [weak] {
    const std::shared_ptr<RouteUser> user = weak.lock();
    return user != nullptr && user->WantsConnection();
  };
  auto dialling = DialActor(std::move(target), std::move(identity), step.limit, std::move(wanted));
  StatusOr<CallStream> stream = co_await std::move(dialling);
  const std::shared_ptr<RouteUser> user = weak.lock();
  if (user == nullptr) co_return;
  if (stream.ok()) {
    user->Attach(*std::move(stream));
  } else {
    user->GiveUp(stream.status());
  }
}

}  // namespace troupe::actors
