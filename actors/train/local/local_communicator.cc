#include "actors/train/local/local_communicator.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/os/host.h"

namespace troupe::train {
namespace {

constexpr const char* kReleased = "it was released";

}  // namespace

std::shared_ptr<LocalCommunicator> LocalCommunicator::Form(Supervisor& supervisor, LocalSpec spec,
                                                           Door door, OnState on_state) {
  std::shared_ptr<LocalCommunicator> group(
      new LocalCommunicator(supervisor, std::move(spec), std::move(door), std::move(on_state)));
  GroupRules rules(group->Name(), group->spec_.times, false);
  group->id_ = supervisor.Add(group, std::move(rules));
  return group;
}

LocalCommunicator::LocalCommunicator(Supervisor& supervisor, LocalSpec spec, Door door,
                                     OnState on_state)
    : supervisor_(supervisor),
      spec_(std::move(spec)),
      door_(std::move(door)),
      on_state_(std::move(on_state)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      ends_(static_cast<std::size_t>(spec_.size)) {}

LocalCommunicator::~LocalCommunicator() {
  if (area_) area_->Stop();
  mail_.reset();
  runner_.reset();
  watch_.reset();
}

std::string LocalCommunicator::Name() const {
  return "group " + spec_.name + ", epoch " + std::to_string(spec_.epoch) + ", rank " +
         std::to_string(spec_.rank) + " of " + std::to_string(spec_.size);
}

Status LocalCommunicator::StoppedError() {
  mutex_.AssertHeld();
  return MakeError(ErrorCode::kFenced, Name() + ": stopped: " + *stopped_ +
                                           "\n  what its operations wrote is undefined; form the "
                                           "group anew under the next epoch");
}

Status LocalCommunicator::AwaitReady() {
  MutexLock lock(mutex_);
  while (state_ == GroupState::kForming && !stopped_) changed_.Wait(mutex_);
  if (stopped_) return StoppedError();
  return absl::OkStatus();
}

void LocalCommunicator::AwaitReleased() {
  MutexLock lock(mutex_);
  while (state_ != GroupState::kReleased) changed_.Wait(mutex_);
}

Status LocalCommunicator::Init() {
  if (static_cast<int>(spec_.cards.size()) != spec_.size || spec_.rank < 0 ||
      spec_.rank >= spec_.size || spec_.secret.empty())
    return MakeError(ErrorCode::kInvalid, std::to_string(spec_.cards.size()) + " cards of " +
                                              std::to_string(spec_.size) + " ranks, or no secret");
  if (spec_.size > kRanksOfNodeMax)
    return MakeError(ErrorCode::kTooLarge,
                     "a node has at most " + std::to_string(kRanksOfNodeMax) + " ranks of a group");
  const Patience patience{supervisor_.clock(), supervisor_.clock().Now(), spec_.times.form_max,
                          stop_.get()};
  TROUPE_ASSIGN(auto links, Meet(patience));
  TROUPE_ASSIGN(auto area, Share(links, patience));
  door_ = Door();  // nobody else is to come
  PeerWatch::Hooks hooks;
  hooks.on_gone = [this](const PeerLink& peer, bool in_order) { OnGone(peer, in_order); };
  hooks.on_stopped = [this](int peer, const std::string& why) { Note(peer, {why, false}); };
  MutexLock lock(mutex_);
  if (stopped_) return StoppedError();
  area_ = std::move(area);
  watch_ = std::make_unique<PeerWatch>(std::move(links), std::move(hooks));
  const auto ended = [this](const Status& why) { return Ended(why); };
  runner_ = std::make_unique<LocalRunner>(*area_, supervisor_.clock(), ended);
  mail_ = std::make_unique<Mail>(*area_, supervisor_.clock(), ended);
  return absl::OkStatus();
}

StatusOr<std::vector<PeerLink>> LocalCommunicator::Meet(const Patience& patience) {
  std::vector<PeerLink> links;
  for (int peer = 0; peer < spec_.rank; ++peer) {
    TROUPE_ASSIGN(auto link, PeerLink::Dial(spec_.cards[static_cast<std::size_t>(peer)], peer,
                                            spec_.rank, spec_.secret, patience));
    links.push_back(std::move(link));
  }
  while (static_cast<int>(links.size()) < spec_.size - 1) {
    TROUPE_ASSIGN(auto link, PeerLink::Accept(door_, spec_.rank, spec_.secret, patience));
    const int peer = link.peer();
    const bool known = std::any_of(links.begin(), links.end(),
                                   [peer](const PeerLink& each) { return each.peer() == peer; });
    if (peer <= spec_.rank || peer >= spec_.size || known)
      return MakeError(ErrorCode::kJoinRefused,
                       "a second process has come as rank " + std::to_string(peer));
    links.push_back(std::move(link));
  }
  return links;
}

StatusOr<std::unique_ptr<SharedArea>> LocalCommunicator::Share(std::vector<PeerLink>& links,
                                                               const Patience& patience) {
  if (spec_.rank > 0) {
    TROUPE_ASSIGN(UniqueFd memory, links.front().ReceiveMemory(patience));
    return SharedArea::Map(std::move(memory), spec_.rank, spec_.size);
  }
  TROUPE_ASSIGN(auto area, SharedArea::Make(spec_.rank, spec_.size));
  for (auto& link : links) TROUPE_TRY(link.SendMemory(area->memory(), patience));
  return area;
}

StatusOr<std::shared_ptr<LocalWork>> LocalCommunicator::StartLocal(
    std::span<const Operation> operations) {
  std::size_t messages = 0;
  for (const auto& operation : operations) {
    if (const Status status = CheckOperation(operation, spec_.size); !status.ok())
      return MakeError(ErrorCode::kInvalid, Name() + ": " + MessageOf(status));
    if (operation.kind == Collective::kSend || operation.kind == Collective::kRecv) ++messages;
  }
  if (operations.empty() || (messages != 0 && messages != operations.size()))
    return MakeError(ErrorCode::kInvalid,
                     Name() + ": one work is of collectives, or of sends and receives");
  MutexLock one(start_mutex_);
  {
    MutexLock lock(mutex_);
    if (stopped_) return StoppedError();
    if (state_ != GroupState::kReady)
      return MakeError(ErrorCode::kFenced, Name() + ": no operation can be started while it is " +
                                               std::string(NameOf(state_)));
  }
  // Ranks count the collectives alike, and each its messages.
  auto work = std::make_shared<LocalWork>(supervisor_.clock(), Name(),
                                          messages == 0 ? ++seq_ : ++messages_);
  if (messages == 0)
    runner_->Start(work, {operations.begin(), operations.end()});
  else
    mail_->Start(work, {operations.begin(), operations.end()});
  return work;
}

StatusOr<std::shared_ptr<Work>> LocalCommunicator::Start(std::span<const Operation> operations) {
  TROUPE_ASSIGN(auto work, StartLocal(operations));
  return std::shared_ptr<Work>(std::move(work));
}

Status LocalCommunicator::Ended(const Status& why) {
  if (ErrorCodeOf(why) == ErrorCode::kConnection) return AwaitVerdict(std::stoi(MessageOf(why)));
  if (ErrorCodeOf(why) == ErrorCode::kCancelled) {
    MutexLock lock(mutex_);
    if (!stopped_) stopped_ = "its process ends";
    return StoppedError();
  }
  return Fail(MessageOf(why));
}

void LocalCommunicator::OnGone(const PeerLink& peer, bool in_order) {
  const std::string rank = "rank " + std::to_string(peer.peer()) + " on " + os::HostName();
  if (in_order)
    Note(peer.peer(), {rank + " has left the group and takes part in no more operations", false});
  else
    Note(peer.peer(), {rank + " has ended: process " + std::to_string(peer.pid()) +
                           " closed its connection without a word",
                       true});
}

void LocalCommunicator::Note(int peer, PeerEnd end) {
  {
    MutexLock lock(mutex_);
    ends_[static_cast<std::size_t>(peer)] = std::move(end);
  }
  area_->MarkGone(peer);
}

Status LocalCommunicator::AwaitVerdict(int peer) {
  PeerEnd end;
  {
    const Instant until = supervisor_.clock().Now() + spec_.verdict_within;
    MutexLock lock(mutex_);
    end = ends_[static_cast<std::size_t>(peer)];
    while (end.is_judged && !stopped_) {
      const Duration left = until - supervisor_.clock().Now();
      if (left <= Duration::zero()) break;
      changed_.WaitFor(mutex_, left);
    }
    if (stopped_) return StoppedError();
  }
  return Fail(end.text);
}

Status LocalCommunicator::Fail(const std::string& why) {
  Wake(why);
  Stop(why);
  MutexLock lock(mutex_);
  return StoppedError();
}

void LocalCommunicator::Stop(const std::string& reason) {
  const Supervisor::Id ids[] = {id_};
  supervisor_.Stop(ids, reason);
}

void LocalCommunicator::Wake(const std::string& reason) {
  MutexLock lock(mutex_);
  if (stopped_) return;
  stopped_ = reason;
  changed_.NotifyAll();
  const std::uint64_t one = 1;
  while (write(stop_.get(), &one, sizeof one) < 0) continue;
  if (area_) area_->Stop();
}

void LocalCommunicator::Tell(GroupState state, const std::string& text) {
  {
    MutexLock lock(mutex_);
    state_ = state;
    if (state == GroupState::kReleased && !stopped_) stopped_ = kReleased;
    changed_.NotifyAll();
  }
  if (on_state_) on_state_(state, text);
}

Status LocalCommunicator::Watch(Instant, std::optional<Instant>&) { return absl::OkStatus(); }

Status LocalCommunicator::Revoke() {
  return MakeError(ErrorCode::kInternal, "memory is not revoked: a stop ends what runs in it");
}

Status LocalCommunicator::Finalize() {
  runner_->Drain();
  mail_->Drain();
  watch_->TellAll(FrameKind::kLeaves, {});
  return absl::OkStatus();
}

Status LocalCommunicator::Destroy() { return absl::OkStatus(); }

void LocalCommunicator::AbortTogether(std::span<Supervised* const>) {
  // Waiters are free since Wake; what is left is for the peers to know.
  std::string reason;
  PeerWatch* watch = nullptr;
  {
    MutexLock lock(mutex_);
    reason = stopped_.value_or("");
    watch = watch_.get();
  }
  if (watch != nullptr) watch->TellAll(FrameKind::kStopped, reason);  // LC2
}

void LocalCommunicator::Leave() { supervisor_.Release(id_); }

Status LocalCommunicator::Release() {
  Leave();
  AwaitReleased();
  MutexLock lock(mutex_);
  return *stopped_ == kReleased ? absl::OkStatus() : StoppedError();
}

}  // namespace troupe::train
