#include "actors/api/session.h"

#include <troupe/error.h>

#include <utility>
#include <vector>

#include "actors/net/now.h"
#include "runtime/os/host.h"

namespace troupe::api {
namespace {

constexpr char kShutDown[] =
    "troupe::Shutdown() was called in this process: the session that this belongs to has ended";

Mutex current_mutex;
std::shared_ptr<Session>& CurrentSlot() {
  static auto* const slot = new std::shared_ptr<Session>();  // outlives every static of a program
  return *slot;
}

}  // namespace

Session::Session(std::shared_ptr<client::ControlClient> control, SessionPlace place)
    : control_(std::move(control)),
      place_(std::move(place)),
      identity_(
          std::make_shared<client::ProcessIdentity>(control_, control_->joined().credentials)) {}

Session::~Session() { Close(); }

void Session::Start(Taken taken, std::function<void()> lost) {
  taken_ = std::move(taken);
  lost_ = std::move(lost);
  reader_ = std::thread([this] { Read(); });
  runner_ = std::thread([this] { RunLater(); });
}

void Session::Close() {
  End(kShutDown);
  control_->Close();
  for (std::thread* each : {&reader_, &runner_}) {
    if (each->joinable() && each->get_id() != std::this_thread::get_id()) each->join();
  }
}

StatusOr<std::shared_ptr<Session>> Session::Current() {
  MutexLock lock(current_mutex);
  if (CurrentSlot() != nullptr) return CurrentSlot();
  return MakeError(ErrorCode::kConnection, "not connected to a cluster: call troupe::Init() first");
}

std::shared_ptr<Session> Session::SetCurrent(std::shared_ptr<Session> session) {
  MutexLock lock(current_mutex);
  return std::exchange(CurrentSlot(), std::move(session));
}

actors::IdentitySource Session::identity() const {
  return [identity = identity_] { return identity->Get(); };
}

StatusOr<wire::Message> Session::Request(wire::Body body, std::string attachment) {
  wire::Message message;
  message.body = std::move(body);
  message.attachment = std::move(attachment);
  return control_->Request(std::move(message), kRequestLimit);
}

Status Session::LookAround() {
  TROUPE_ASSIGN(const wire::Message answer, Request(wire::GetStatus()));
  const auto* status = wire::GetIf<wire::ClusterStatus>(&answer.body);
  if (status == nullptr)
    return MakeError(ErrorCode::kInternal, "GetStatus was answered with something else");
  const std::string here = os::BootId();
  for (const wire::NodeInfo& node : status->nodes)
    all_on_this_host_ = all_on_this_host_ && node.boot_id == here;
  return {};
}

std::shared_ptr<ActorLink> Session::LinkTo(const ActorId& actor, const std::string& class_name,
                                           bool* fresh) {
  MutexLock lock(mutex_);
  std::shared_ptr<ActorLink>& link = links_[actor];
  *fresh = link == nullptr;
  if (*fresh) {
    link = std::make_shared<ActorLink>(actor, class_name, identity());
    if (over_) link->End(ErrorCode::kActorUnavailable, link->label() + ": " + why_over_);
  }
  return link;
}

void Session::Forget(const ActorId& actor) {
  MutexLock lock(mutex_);
  links_.erase(actor);
}

template <class Info, class Id>
StatusOr<Info> Session::Await(std::map<Id, Info>& known, const Id& id,
                              const std::function<bool(const Info&)>& wanted, Instant until) {
  while (true) {
    const auto found = known.find(id);
    if (found != known.end() && wanted(found->second)) return found->second;
    if (over_) return MakeError(ErrorCode::kConnection, why_over_);
    const Instant now = actors::Now();
    if (now >= until) return MakeError(ErrorCode::kTimeout, "");
    if (until == Instant::max()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitFor(mutex_, until - now);
    }
  }
}

StatusOr<wire::GroupInfo> Session::AwaitGroup(
    const GroupId& id, const std::function<bool(const wire::GroupInfo&)>& wanted, Instant until) {
  MutexLock lock(mutex_);
  return Await(groups_, id, wanted, until);
}

StatusOr<wire::LaunchInfo> Session::AwaitLaunch(
    const LaunchId& id, const std::function<bool(const wire::LaunchInfo&)>& wanted, Instant until) {
  MutexLock lock(mutex_);
  return Await(launches_, id, wanted, until);
}

void Session::Post(const wire::GroupInfo& info) {
  MutexLock lock(mutex_);
  // The end of a forgotten group is no news.
  if (info.state == wire::GroupState::kRemoved && groups_.count(info.group) == 0) return;
  groups_[info.group] = info;
  changed_.NotifyAll();
}

void Session::PostReply(const wire::GroupInfo& info) {
  MutexLock lock(mutex_);
  groups_.emplace(info.group, info);
  changed_.NotifyAll();
}

void Session::Post(const wire::LaunchInfo& info) {
  MutexLock lock(mutex_);
  if (info.state == wire::LaunchState::kTerminal && launches_.count(info.launch) == 0) return;
  launches_[info.launch] = info;
  changed_.NotifyAll();
}

void Session::PostReply(const wire::LaunchInfo& info) {
  MutexLock lock(mutex_);
  launches_.emplace(info.launch, info);
  changed_.NotifyAll();
}

Status Session::Follow(const GroupId& id) {
  {
    MutexLock lock(mutex_);
    if (groups_.count(id) > 0) return {};
  }
  wire::GetGroup get;
  get.group = id;
  get.watch = true;
  TROUPE_ASSIGN(const wire::Message answer, Request(std::move(get)));
  if (const auto* update = wire::GetIf<wire::GroupUpdate>(&answer.body)) PostReply(update->info);
  return {};
}

Status Session::Follow(const LaunchId& id) {
  {
    MutexLock lock(mutex_);
    if (launches_.count(id) > 0) return {};
  }
  wire::WatchLaunch watch;
  watch.launch = id;
  TROUPE_ASSIGN(const wire::Message answer, Request(std::move(watch)));
  if (const auto* update = wire::GetIf<wire::LaunchUpdate>(&answer.body)) PostReply(update->info);
  return {};
}

void Session::ForgetGroup(const GroupId& id) {
  MutexLock lock(mutex_);
  groups_.erase(id);
}

void Session::ForgetLaunch(const LaunchId& id) {
  MutexLock lock(mutex_);
  launches_.erase(id);
}

void Session::Later(std::function<void()> action) {
  MutexLock lock(mutex_);
  if (over_) return;
  later_.push_back(std::move(action));
  changed_.NotifyAll();
}

void Session::RunLater() {
  while (true) {
    std::function<void()> action;
    {
      MutexLock lock(mutex_);
      while (later_.empty() && !over_) changed_.Wait(mutex_);
      if (over_) return;
      action = std::move(later_.front());
      later_.pop_front();
    }
    action();
  }
}

void Session::Read() {
  while (true) {
    StatusOr<std::optional<client::Push>> push = control_->NextPush(std::nullopt);
    if (!push.ok()) {
      End("the connection to the cluster at " + place_.address +
          " ended: " + MessageOf(push.status()));
      if (lost_) lost_();
      return;
    }
    if (*push) Take(**push);
  }
}

void Session::Take(const wire::Message& message) {
  if (taken_ && taken_(message)) return;
  if (const auto* actor = wire::GetIf<wire::ActorUpdate>(&message.body)) {
    std::shared_ptr<ActorLink> link;
    {
      MutexLock lock(mutex_);
      const auto found = links_.find(actor->info.actor);
      if (found != links_.end()) link = found->second;
    }
    if (link == nullptr) return;
    link->Told(actor->info);
    if (actor->info.state == wire::ActorState::kDead) Forget(actor->info.actor);
  } else if (const auto* group = wire::GetIf<wire::GroupUpdate>(&message.body)) {
    Post(group->info);
  } else if (const auto* launch = wire::GetIf<wire::LaunchUpdate>(&message.body)) {
    Post(launch->info);
  } else if (wire::Holds<wire::Welcome>(message.body)) {
    Later([this] { Resume(); });
  }
}

/// After a return: the head's watchers were lost with its memory, so all that is followed is asked
/// for.
void Session::Resume() {
  std::vector<std::shared_ptr<ActorLink>> links;
  std::vector<GroupId> groups;
  std::vector<LaunchId> launches;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, link] : links_) links.push_back(link);
    for (const auto& [id, info] : groups_) groups.push_back(id);
    for (const auto& [id, info] : launches_) launches.push_back(id);
  }
  for (const auto& link : links) {
    wire::WatchActor watch;
    watch.actor = link->actor();
    const StatusOr<wire::Message> answer = Request(std::move(watch));
    if (answer.ok()) {
      Take(*answer);
    } else if (ErrorCodeOf(answer.status()) == ErrorCode::kNotFound) {
      link->End(ErrorCode::kActorDied, link->label() + " is dead: " + MessageOf(answer.status()));
    }
  }
  for (const GroupId& id : groups) {
    wire::GetGroup get;
    get.group = id;
    get.watch = true;
    const StatusOr<wire::Message> answer = Request(std::move(get));
    if (answer.ok()) Take(*answer);
  }
  for (const LaunchId& id : launches) {
    wire::WatchLaunch watch;
    watch.launch = id;
    const StatusOr<wire::Message> answer = Request(std::move(watch));
    if (answer.ok()) Take(*answer);
  }
}

void Session::End(const std::string& why) {
  std::map<ActorId, std::shared_ptr<ActorLink>> links;
  std::deque<std::function<void()>> dropped;
  {
    MutexLock lock(mutex_);
    if (std::exchange(over_, true)) return;
    why_over_ = why;
    links.swap(links_);
    dropped.swap(later_);
    changed_.NotifyAll();
  }
  for (const auto& [id, link] : links)
    link->End(ErrorCode::kActorUnavailable, link->label() + ": " + why);
}

void ThrowError(ErrorCode code, const std::string& text) {
  switch (code) {
    case ErrorCode::kConnection:
    case ErrorCode::kUnknownOutcome:
      throw ConnectionError(text);
    case ErrorCode::kJoinRefused:
    case ErrorCode::kWrongCluster:
      throw JoinError(text);
    case ErrorCode::kInfeasible:
      throw PlacementError(text);
    case ErrorCode::kNotFound:
      throw NotFoundError(text);
    case ErrorCode::kAlreadyExists:
      throw AlreadyExistsError(text);
    case ErrorCode::kInvalid:
      throw InvalidError(text);
    case ErrorCode::kTooLarge:
      throw TooLargeError(text);
    case ErrorCode::kTimeout:
      throw TimeoutError(text);
    case ErrorCode::kCancelled:
      throw CancelledError(text);
    case ErrorCode::kActorDied:
      throw ActorDiedError(text);
    case ErrorCode::kActorUnavailable:
      throw ActorUnavailableError(text);
    case ErrorCode::kMaybeExecuted:
      throw MaybeExecutedError(text);
    case ErrorCode::kNotSent:
      throw NotSentError(text);
    case ErrorCode::kLaunchFailed:
      throw LaunchError(text);
    default:
      throw Error(text);
  }
}

void ThrowStatus(const Status& status) { ThrowError(ErrorCodeOf(status), MessageOf(status)); }

std::shared_ptr<Session> NeedSession() {
  StatusOr<std::shared_ptr<Session>> session = Session::Current();
  if (!session.ok()) ThrowStatus(session.status());
  return *std::move(session);
}

}  // namespace troupe::api
