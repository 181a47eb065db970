#include "actors/api/actor_link.h"

#include <algorithm>
#include <utility>

#include "actors/caller/reactor.h"
#include "actors/core/call/call_frame.h"
#include "runtime/os/host.h"

namespace troupe::api {
namespace {

constexpr std::size_t kLinesShown = 30;

/// The last lines of a text, each indented.
std::string LastLines(const std::string& text, const char* indent) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::string shown;
  const std::size_t from = lines.size() > kLinesShown ? lines.size() - kLinesShown : 0;
  for (std::size_t i = from; i < lines.size(); ++i) shown += "\n" + std::string(indent) + lines[i];
  return shown;
}

/// With the text as it is, which names the actor already.
void FailChannel(actors::Channel& channel, ErrorCode code, std::string_view text) {
  actors::ByteBuffer body;
  actors::AppendRuntimeError(body, code, text);
  channel.FailWith(actors::kFlagRuntimeError, body.view());
}

}  // namespace

/// The connection to another host ended for good: the next call dials anew.
class ActorLink::Lost : public actors::Completion {
 public:
  Lost(std::weak_ptr<ActorLink> link, const actors::Channel* channel)
      : link_(std::move(link)), channel_(channel) {}
  void Run() override {
    if (const std::shared_ptr<ActorLink> link = link_.lock()) link->OnLost(channel_);
  }

 private:
  const std::weak_ptr<ActorLink> link_;
  const actors::Channel* const channel_;
};

std::string DeathText(const wire::ActorInfo& info, const std::string& label) {
  const wire::Failure& failure = info.failure;
  std::string text =
      label + " is dead: " + (failure.cause.empty() ? "its process is gone" : failure.cause);
  const std::string pid = "pid " + std::to_string(failure.pid);
  if (!failure.node_name.empty() && !failure.located)
    text += " (on " + failure.node_name + (failure.pid > 0 ? ", " + pid : "") + ")";
  if (!failure.traceback.empty()) {
    text += LastLines(failure.traceback, "  ");
  } else if (!failure.log_tail.empty()) {
    text += "\n  last lines of its stderr:" + LastLines(failure.log_tail, "    ");
  }
  return text;
}

ActorLink::ActorLink(const ActorId& actor, std::string class_name, actors::IdentitySource identity)
    : actor_(actor),
      label_("actor " + class_name + "(" + actor.Short() + ")"),
      identity_(std::move(identity)) {}

StatusOr<std::shared_ptr<actors::Channel>> ActorLink::Open() {
  MutexLock lock(mutex_);
  if (channel_ != nullptr && !verdict_ && !channel_->Usable()) {
    // The actor's process on this host is gone, which the head will report: later calls wait for
    // that report.
    lost_.push_back(std::exchange(channel_, nullptr));
    if (alive_ && alive_->boot_id == os::BootId()) {
      alive_.reset();
      state_.Suspect();
    }
  }
  if (channel_ == nullptr) {
    actors::ChannelOptions options;
    options.description = label_;
    TROUPE_ASSIGN(channel_, actors::Channel::Later(actors::CallReactor::Current(), options));
    if (verdict_) {
      FailChannel(*channel_, verdict_->code, verdict_->text);
    } else if (alive_) {
      AimLocked();
    }
  }
  return channel_;
}

void ActorLink::AimLocked() {
  if (alive_->boot_id == os::BootId()) {
    // An address that cannot be reached has failed the channel: its calls report the error.
    channel_->Aim(alive_->unix_path).IgnoreError();
    return;
  }
  channel_->OnDisconnect(std::make_unique<Lost>(weak_from_this(), channel_.get()));
  actors::RemoteActor target;
  target.host = alive_->host;
  target.port = alive_->port;
  target.process = alive_->process.Hex();
  target.actor = actor_;
  channel_->AimRemote(std::move(target), identity_);
}

void ActorLink::OnLost(const actors::Channel* channel) {
  MutexLock lock(mutex_);
  if (channel_.get() == channel) lost_.push_back(std::exchange(channel_, nullptr));
  std::erase_if(lost_, [](const auto& each) { return each->Outstanding() == 0; });
}

void ActorLink::Told(const wire::ActorInfo& info) {
  MutexLock lock(mutex_);
  for (const LinkOrder order : state_.Told(info.state, info.address.incarnation))
    ObeyLocked(order, info);
}

void ActorLink::ObeyLocked(LinkOrder order, const wire::ActorInfo& info) {
  switch (order) {
    case LinkOrder::kEnd:
      FailLocked(ErrorCode::kActorDied, DeathText(info, label_));
      break;
    case LinkOrder::kLoseSight:
      FailLocked(ErrorCode::kActorUnavailable,
                 label_ + " is out of reach: " + info.failure.cause +
                     "; it may be back, and what was called may have run");
      break;
    case LinkOrder::kRenew:
      verdict_.reset();
      channel_.reset();
      break;
    case LinkOrder::kRetire: {
      alive_.reset();
      if (channel_ != nullptr) lost_.push_back(std::exchange(channel_, nullptr));
      const char* now = info.state == wire::ActorState::kAlive ? "was" : "is being";
      for (const auto& each : std::exchange(lost_, {}))
        each->Lose("its process is gone; it " + std::string(now) + " started again");
      break;
    }
    case LinkOrder::kAim:
      alive_ = info.address;
      for (const auto& each : std::exchange(lost_, {}))
        each->Lose("its process is gone; it was started again");
      if (channel_ != nullptr) AimLocked();
      break;
  }
}

void ActorLink::FailLocked(ErrorCode code, const std::string& text) {
  verdict_ = Verdict{code, text};
  alive_.reset();
  if (channel_ != nullptr) FailChannel(*channel_, code, text);
  for (const auto& each : std::exchange(lost_, {})) FailChannel(*each, code, text);
}

void ActorLink::End(ErrorCode code, const std::string& text) {
  MutexLock lock(mutex_);
  if (verdict_ && verdict_->code == ErrorCode::kActorDied) return;
  state_.End();
  FailLocked(code, text);
}

bool ActorLink::dead() {
  MutexLock lock(mutex_);
  return verdict_ && verdict_->code == ErrorCode::kActorDied;
}

}  // namespace troupe::api
