#include "tests/sim/client_host.h"

#include <algorithm>
#include <utility>

#include "head/core/machine/job_terms.h"

namespace troupe::sim {
namespace {

constexpr std::uint64_t kAfterEvery = 4;  // a launch in so many starts after another one

bool StartsAfterAnother(const wire::LaunchSpec& spec) {
  return std::any_of(spec.environment.env.begin(), spec.environment.env.end(),
                     [](const wire::EnvVar& each) { return each.name == head::kJobAfter; });
}

}  // namespace

void ClientHost::Submit(wire::LaunchSpec spec) {
  if (ended_) return;
  const RequestId request = RequestId::Random(random_);
  if (plan_.cancels && request.hi % kAfterEvery == 0) StartAfterAnother(request, &spec);
  open_[request].spec = std::move(spec);
  Ask(request);
}

void ClientHost::StartAfterAnother(const RequestId& request, wire::LaunchSpec* spec) const {
  std::vector<LaunchId> known;
  for (const auto& [launch, outcome] : outcomes_) known.push_back(launch);
  for (const auto& [asked, wanted] : open_) {
    if (!wanted.launch.IsNil()) known.push_back(wanted.launch);
  }
  if (known.empty()) return;
  wire::EnvVar after;
  after.name = head::kJobAfter;
  after.value = known[request.lo % known.size()].Hex();
  spec->environment.env.push_back(std::move(after));
}

void ClientHost::Write() {
  if (ended_) return;
  const RequestId request = RequestId::Random(random_);
  writes_[request] = request.Hex();
  checker_.OnWriting(id_, request);
  AskWrite(request);
}

// Repeats the write under one id: however often it arrives it is one write.
void ClientHost::AskWrite(const RequestId& request) {
  asked_writes_[++ids_] = request;
  wire::KvPut put;
  put.key = "of " + std::to_string(id_.lo);
  put.request = request;
  Say(std::move(put), ids_);
}

void ClientHost::End() {
  ended_ = true;
  if (link_) link_->Reset();
}

std::string ClientHost::Waiting() const {
  std::string out;
  for (const auto& [request, wanted] : open_) out += " " + wanted.launch.Short();
  return out + WaitingFor(true);
}

void ClientHost::Dial() {
  loop_.In(loop_.Between(Ms(1), plan_.dial_most), "client dials", [this] {
    if (ended_ || (link_ && link_->open())) return;
    auto link = std::make_shared<Link>(loop_, plan_);
    const SessionId session = head_.Accept(link, wire::Role::kClient, id_, false, token);
    if (session.IsNil()) {
      Dial();
      return;
    }
    link_ = link;
    // Weak: a link that kept itself alive through its own callbacks would outlive the run.
    const auto current = [this, weak = std::weak_ptr<Link>(link)] {
      return link_ && weak.lock() == link_;
    };
    EndPoint mine;
    mine.on_message = [this, current](wire::Message message) {
      if (current() && !ended_) OnMessage(message);
    };
    mine.on_closed = [this, current] {
      if (!current()) return;
      link_.reset();
      if (!ended_) Dial();
    };
    link->Open(head_.EndPointOf(session), std::move(mine));
    asked_.clear();
    asked_writes_.clear();
    asked_actors_.clear();
    for (const auto& [request, wanted] : open_) Ask(request);
    for (const auto& [request, value] : writes_) AskWrite(request);
    for (const auto& [actor, made] : actors_) AskActor(actor);
  });
}

void ClientHost::Say(wire::Body body, std::uint64_t id) {
  if (!link_) return;
  wire::Message message;
  message.id = id;
  message.body = std::move(body);
  link_->ToHead(std::move(message));
}

// A repeat on every connection: the request's id makes it one launch.
void ClientHost::Ask(const RequestId& request) {
  const Wanted& wanted = open_.at(request);
  asked_[++ids_] = request;
  if (wanted.launch.IsNil()) {
    wire::SubmitLaunch submit;
    submit.spec = wanted.spec;
    submit.request = request;
    Say(std::move(submit), ids_);
    return;
  }
  wire::WaitMarker wait;
  wait.launch = wanted.launch;
  wait.timeout_ms = static_cast<std::uint64_t>(Millis(plan_.wait));
  Say(wait, ids_);
}

void ClientHost::Learn(const LaunchId& launch, wire::Outcome outcome) {
  wire::Marker marker;
  marker.launch = launch;
  marker.outcome = outcome;
  checker_.OnObserved(marker);
  outcomes_[launch] = outcome;
  const auto learnt =
      std::erase_if(open_, [&](const auto& each) { return each.second.launch == launch; });
  if (learnt > 0 && on_learnt) on_learnt();
}

void ClientHost::MakeActor(wire::ActorSpec spec) {
  if (ended_) return;
  const ActorId actor = spec.actor;
  actors_[actor].spec = std::move(spec);
  AskActor(actor);
}

void ClientHost::TakeName(wire::ActorSpec spec) {
  if (ended_) return;
  for (auto& [actor, made] : actors_) {
    if (made.spec.name != spec.name || made.kills) continue;
    made.kills = true;
    AskActor(actor);
  }
  MakeActor(std::move(spec));
}

void ClientHost::KillActors() {
  for (auto& [actor, made] : actors_) {
    made.kills = true;
    AskActor(actor);
  }
}

// On every connection: what the head told of it may be lost with the one before.
void ClientHost::AskActor(const ActorId& actor) {
  const Made& made = actors_.at(actor);
  asked_actors_[++ids_] = actor;
  if (!made.asked) {
    wire::CreateActor create;
    create.spec = made.spec;
    return Say(std::move(create), ids_);
  }
  Say(wire::WatchActor{actor, false}, ids_);
  if (!made.kills) return;
  wire::KillActor kill;
  kill.actor = actor;
  Say(kill, ++ids_);
}

bool ClientHost::OnActor(const wire::Message& message) {
  const auto asked = asked_actors_.find(message.reply_to);
  if (const auto* error = wire::GetIf<wire::ErrorReply>(&message.body)) {
    if (asked == asked_actors_.end()) return false;
    const ActorId actor = asked->second;
    asked_actors_.erase(asked);
    const Made& made = actors_.at(actor);
    const auto code = static_cast<ErrorCode>(error->code);
    const bool taken = code == ErrorCode::kAlreadyExists && !made.spec.name.empty();
    checker_.Expect(!made.asked && (taken || code == ErrorCode::kInfeasible),
                    "an actor's maker was refused: " + error->text);
    loop_.In(Ms(500), "ask again", [this, actor] {
      if (!ended_ && actors_.count(actor) > 0) AskActor(actor);
    });
    return true;
  }
  const auto* update = wire::GetIf<wire::ActorUpdate>(&message.body);
  if (update == nullptr) return false;
  if (asked != asked_actors_.end()) asked_actors_.erase(asked);
  const auto entry = actors_.find(update->info.actor);
  if (entry == actors_.end()) return true;
  Made& made = entry->second;
  const bool kills_now = !std::exchange(made.asked, true) && made.kills;
  made.told = update->info;
  if (update->info.state == wire::ActorState::kDead) {
    checker_.Expect(made.kills, "an actor that may be started again and again is dead: " +
                                    update->info.failure.cause);
    actors_.erase(entry);
    return true;
  }
  if (kills_now) AskActor(update->info.actor);
  const wire::ActorAddress& address = update->info.address;
  const bool waits = update->info.state == wire::ActorState::kStarting && !address.process.IsNil();
  if (waits && address.process != made.brought) {
    made.brought = address.process;
    loop_.In(loop_.Between(Ms(0), plan_.latency_most), "brings",
             [this, process = address.process] { bring(process); });
  }
  return true;
}

std::string ClientHost::WaitingFor(bool all) const {
  std::string out;
  if (ended_) return out;
  for (const auto& [actor, made] : actors_) {
    if (!made.asked && !made.spec.name.empty()) continue;  // another caller may have the name
    const wire::ActorAddress& at = made.told.address;
    const bool answers = made.told.state == wire::ActorState::kAlive &&
                         checker_.Runs(actor, at.incarnation, at.process);
    if (!answers && !made.kills && (all || made.spec.run_resources.empty()))
      out += " " + actor.Short();
  }
  return out;
}

void ClientHost::OnMessage(const wire::Message& message) {
  if (OnActor(message)) return;
  if (const auto* update = wire::GetIf<wire::LaunchUpdate>(&message.body)) {
    if (update->info.state == wire::LaunchState::kTerminal) {
      Learn(update->info.launch, update->info.outcome);
    }
    return;
  }
  const auto write = asked_writes_.find(message.reply_to);
  if (write != asked_writes_.end()) {
    checker_.Expect(wire::Holds<wire::Ok>(message.body), "a write was refused");
    checker_.OnWritten(id_, write->second);
    writes_.erase(write->second);
    asked_writes_.erase(write);
    return;
  }
  const auto asked = asked_.find(message.reply_to);
  if (asked == asked_.end()) return;
  const RequestId request = asked->second;
  if (const auto* marker = wire::GetIf<wire::MarkerReply>(&message.body)) {
    Learn(marker->marker.launch, marker->marker.outcome);
    return;
  }
  const auto wanted = open_.find(request);
  if (wanted == open_.end()) return;
  if (const auto* accepted = wire::GetIf<wire::LaunchAccepted>(&message.body)) {
    asked_.erase(asked);
    wanted->second.launch = accepted->launch;
    Ask(request);
    if (random_.Chance(250) && plan_.cancels) {
      wire::CancelLaunch cancel;
      cancel.launch = accepted->launch;
      cancel.hard = random_.Chance(500);
      loop_.In(Ms(random_.Below(3000)), "cancel", [this, cancel] { Say(cancel, ++ids_); });
    }
  } else if (const auto* error = wire::GetIf<wire::ErrorReply>(&message.body)) {
    asked_.erase(asked);
    const auto code = static_cast<ErrorCode>(error->code);
    if (code == ErrorCode::kTimeout) return Ask(request);
    const bool later = code == ErrorCode::kInfeasible || code == ErrorCode::kTooLarge;
    if (later && wanted->second.launch.IsNil()) {
      // The nodes have not joined yet, or are lost, or the owner's quota has no room: ask again.
      loop_.In(plan_.ask_again, "ask again", [this, request] {
        if (!ended_ && open_.count(request) > 0) Ask(request);
      });
      return;
    }
    if (code == ErrorCode::kInvalid && StartsAfterAnother(wanted->second.spec)) {
      open_.erase(wanted);  // the launch it was to start after failed or was cancelled
      return;
    }
    checker_.Fail("a client was refused: " + error->text);
  }
}

}  // namespace troupe::sim
