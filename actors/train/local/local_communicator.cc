#include "actors/train/local/local_communicator.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "actors/train/local/pieces.h"
#include "actors/train/local/spanning_pieces.h"

namespace troupe::train {
namespace {

constexpr const char* kReleased = "it was released";
constexpr int kRanksMax = 4096;  // limit because a piece of a group over several nodes is cut into
                                 // so many parts

// How long a word of another node is waited for that is on its way, or should be.
constexpr Duration kWordWithin = std::chrono::seconds(5);
constexpr int kNamedMax = 100;  // ranks of a node that an error names

std::vector<std::string> HostsOf(const std::vector<Card>& cards) {
  std::vector<std::string> hosts;
  for (const auto& card : cards) hosts.push_back(card.host);
  return hosts;
}

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
      places_(HostsOf(spec_.cards), spec_.rank),
      door_(std::move(door)),
      on_state_(std::move(on_state)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      ends_(static_cast<std::size_t>(spec_.size)) {}

LocalCommunicator::~LocalCommunicator() {
  if (area_) area_->Stop();
  mail_.reset();
  runner_.reset();
  watch_.reset();
  connections_.reset();
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
  if (places_.ranks_of_a_node_max() > kRanksOfNodeMax || spec_.size > kRanksMax)
    return MakeError(ErrorCode::kTooLarge,
                     "a group has at most " + std::to_string(kRanksOfNodeMax) +
                         " ranks on a node and " + std::to_string(kRanksMax) + " in all");
  const Patience patience{supervisor_.clock(), supervisor_.clock().Now(), spec_.times.form_max,
                          stop_.get()};
  TROUPE_ASSIGN(auto all, Meet(patience));
  std::vector<PeerLink> links;
  std::vector<Met> met;
  for (auto& each : all) {
    if (each.channel == Channel::kWatch)
      links.emplace_back(std::move(each.fd), each.peer, each.pid);
    else
      met.push_back(std::move(each));
  }
  TROUPE_ASSIGN(auto area, Share(links, patience));
  door_ = Door();  // nobody else is to come
  MutexLock lock(mutex_);
  if (stopped_) return StoppedError();
  Begin(std::move(area), std::move(links), std::move(met));
  return absl::OkStatus();
}

void LocalCommunicator::Begin(std::unique_ptr<SharedArea> area, std::vector<PeerLink> links,
                              std::vector<Met> met) {
  PeerWatch::Hooks hooks;
  hooks.on_gone = [this](const PeerLink& peer, PeerFate fate) { OnGone(peer, fate); };
  hooks.on_stopped = [this](int peer, const std::string& why) { Note(peer, {why, false}); };
  const auto ended = [this](const Status& why) { return Ended(why); };
  const Clock& clock = supervisor_.clock();
  area_ = std::move(area);
  const auto absent = [this](std::uint64_t number) { return Absent(number); };
  std::unique_ptr<Collectives> collectives;
  if (places_.nodes() == 1) {
    collectives = std::make_unique<Pieces>(*area_, places_, clock, absent);
  } else {
    connections_ = std::make_unique<Connections>(std::move(met), spec_.size, *area_, stop_.get());
    collectives = std::make_unique<SpanningPieces>(*area_, places_, *connections_, clock, absent);
  }
  hooks.on_asked = [this](const std::string& text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return AbsentHere(number);
  };
  watch_ = std::make_unique<PeerWatch>(std::move(links), clock, std::move(hooks));
  runner_ = std::make_unique<LocalRunner>(*area_, std::move(collectives), ended);
  mail_ = std::make_unique<Mail>(Mailboxes(*area_, places_, connections_.get()), clock, ended);
}

std::string LocalCommunicator::AbsentHere(std::uint64_t number, int but) const {
  std::string ranks;
  int more = -kNamedMax;
  for (const int rank : places_.neighbours()) {
    if (rank == but || area_->line(places_.place_of(rank)).posted.load() > number || ++more > 0)
      continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return more > 0 ? ranks + " and " + std::to_string(more) + " more" : ranks;
}

std::string LocalCommunicator::Absent(std::uint64_t number) {
  std::vector<int> leaders;
  for (int node = 0; node < places_.nodes(); ++node)
    if (node != places_.node()) leaders.push_back(places_.leader_of(node));
  auto answers = watch_->Ask(leaders, std::to_string(number), kWordWithin);
  answers[places_.rank()] = AbsentHere(number, places_.rank());
  std::string ranks, silent, stopped;
  for (const auto& [_, absent] : answers)
    if (!absent.empty()) ranks += (ranks.empty() ? "rank " : ", ") + absent;
  MutexLock lock(mutex_);
  for (const int leader : leaders) {
    if (answers.count(leader) != 0) continue;
    const std::string name = std::to_string(leader) + " on " +
                             spec_.cards[static_cast<std::size_t>(leader)].name;
    // The time is over there, too, and its last word came instead of an answer.
    if (const auto& end = ends_[static_cast<std::size_t>(leader)].text; !end.empty())
      stopped += (stopped.empty() ? "rank " : "; rank ") + name + " stopped first: " + end;
    else
      silent += (silent.empty() ? "rank " : ", ") + name;
  }
  if (!ranks.empty()) ranks += " has not come to it";
  if (!silent.empty()) silent += " does not answer";
  for (const std::string& each : {silent, stopped})
    ranks += (ranks.empty() || each.empty() ? "" : ", ") + each;
  return ranks;
}

StatusOr<std::vector<Met>> LocalCommunicator::Meet(const Patience& patience) {
  std::vector<Met> all;
  const auto channels_of = [this](int peer) { return places_.is_here(peer) ? 1 : kChannels; };
  int missing = 0;  // messages that come to this rank
  for (int peer = 0; peer < spec_.size; ++peer) {
    if (peer > spec_.rank) missing += channels_of(peer);
    for (int channel = 0; peer < spec_.rank && channel < channels_of(peer); ++channel) {
      const Dialler me{spec_.rank, static_cast<Channel>(channel)};
      TROUPE_ASSIGN(auto met, Dial(spec_.cards[static_cast<std::size_t>(peer)],
                                   places_.is_here(peer), peer, me, spec_.secret, patience));
      all.push_back(std::move(met));
    }
  }
  Guests guests(door_, spec_.rank, spec_.secret);
  for (; missing > 0; --missing) {
    TROUPE_ASSIGN(auto met, guests.Next(patience));
    const bool is_known = std::any_of(all.begin(), all.end(), [&met](const Met& each) {
      return each.peer == met.peer && each.channel == met.channel;
    });
    if (met.peer <= spec_.rank || met.peer >= spec_.size || is_known ||
        static_cast<int>(met.channel) >= channels_of(met.peer) ||
        (met.pid != 0) != places_.is_here(met.peer))  // DO2
      return MakeError(ErrorCode::kJoinRefused,
                       "a second process has come as rank " + std::to_string(met.peer));
    all.push_back(std::move(met));
  }
  return all;
}

StatusOr<std::unique_ptr<SharedArea>> LocalCommunicator::Share(std::vector<PeerLink>& links,
                                                               const Patience& patience) {
  const auto ranks = static_cast<int>(places_.neighbours().size());
  const AreaShape shape =
      places_.nodes() == 1 ? AreaShape::OfOneNode(ranks)
                           : AreaShape::OfSeveralNodes(ranks, spec_.size, ResultBytes(spec_.size));
  const int leader = places_.leader_of(places_.node());
  if (spec_.rank != leader) {
    for (auto& link : links) {
      if (link.peer() != leader) continue;
      TROUPE_ASSIGN(UniqueFd memory, link.ReceiveMemory(patience));
      return SharedArea::Map(std::move(memory), places_.place(), shape);
    }
  }
  TROUPE_ASSIGN(auto area, SharedArea::Make(places_.place(), shape));
  for (auto& link : links)
    if (places_.is_here(link.peer())) TROUPE_TRY(link.SendMemory(area->memory(), patience));
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

void LocalCommunicator::OnGone(const PeerLink& peer, PeerFate fate) {
  const std::string rank = "rank " + std::to_string(peer.peer()) + " on " +
                           spec_.cards[static_cast<std::size_t>(peer.peer())].name;
  const std::string process =
      peer.pid() == 0 ? "its process" : "process " + std::to_string(peer.pid());
  switch (fate) {
    case PeerFate::kLeft:
      return Note(peer.peer(),
                  {rank + " has left the group and takes part in no more operations", false});
    case PeerFate::kEnded:
      return Note(
          peer.peer(),
          {rank + " has ended: " + process + " closed its connection without a word", true});
    case PeerFate::kSilent:
      Note(peer.peer(),
           {rank + " cannot be reached: nothing was heard of its node for 90 s", true});
      connections_->End(peer.peer());  // nothing more comes that way either
  }
}

void LocalCommunicator::Note(int peer, PeerEnd end) {
  {
    MutexLock lock(mutex_);
    ends_[static_cast<std::size_t>(peer)] = std::move(end);
    changed_.NotifyAll();
  }
  area_->MarkGone(peer);
}

Status LocalCommunicator::AwaitVerdict(int peer) {
  PeerEnd end;
  {
    const Instant now = supervisor_.clock().Now();
    MutexLock lock(mutex_);
    for (;;) {
      end = ends_[static_cast<std::size_t>(peer)];
      // The end of a remote rank's connection may be seen before its last word.
      const Duration within = end.text.empty() ? kWordWithin
                              : end.is_judged  ? spec_.verdict_within
                                               : Duration::zero();
      const Duration left = now + within - supervisor_.clock().Now();
      if (stopped_ || left <= Duration::zero()) break;
      changed_.WaitFor(mutex_, left);
    }
    if (stopped_) return StoppedError();
  }
  if (end.text.empty())
    end.text = "rank " + std::to_string(peer) + " on " +
               spec_.cards[static_cast<std::size_t>(peer)].name +
               " has ended: its connections closed without a word";
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
  if (connections_) connections_->EndAll();  // after all that was sent
  return absl::OkStatus();
}

Status LocalCommunicator::Destroy() { return absl::OkStatus(); }

void LocalCommunicator::AbortTogether(std::span<Supervised* const>) {
  // Waiters are free since Wake; what is left is for the peers to know.
  std::string reason;
  PeerWatch* watch = nullptr;
  Connections* connections = nullptr;
  {
    MutexLock lock(mutex_);
    reason = stopped_.value_or("");
    watch = watch_.get();
    connections = connections_.get();
  }
  if (watch != nullptr) watch->TellAll(FrameKind::kStopped, reason);  // LC2
  if (connections != nullptr) connections->EndAll();
}

void LocalCommunicator::Leave() { supervisor_.Release(id_); }

Status LocalCommunicator::Release() {
  Leave();
  AwaitReleased();
  MutexLock lock(mutex_);
  return *stopped_ == kReleased ? absl::OkStatus() : StoppedError();
}

}  // namespace troupe::train
