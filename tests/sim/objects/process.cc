#include "tests/sim/objects/process.h"

#include <algorithm>

#include "tests/sim/objects/world.h"

namespace troupe::sim {
namespace {

constexpr std::uint64_t kLargeBytes = 3u << 20;
constexpr std::uint64_t kSmallBytes = 200'000;
constexpr std::size_t kSegmentsMost = 3;

store::Options SimOptions() {
  store::Options options;
  options.resume_window = std::chrono::seconds(2);
  return options;
}

}  // namespace

ObjectsProcess::ObjectsProcess(ObjectsWorld& world, ProcessId process, NodeId where)
    : id(process), node(where), table(process, SimOptions()), world_(world) {}

void ObjectsProcess::Act() {
  if (handles_.size() > 12 || views.size() > 8) return DropSomething();
  const std::uint64_t draw = world_.random().Below(100);
  if (draw < 18) return PutSomething();
  if (draw < 45) return CallSomebody();
  if (draw < 70 && !seen_.empty()) return GetSomething(seen_[world_.random().Below(seen_.size())]);
  if (draw < 97) return DropSomething();
  table.Forked();
  world_.Forked(*this);
}

void ObjectsProcess::LetGo() {
  letting_go = true;
  waits_.clear();
  while (!handles_.empty()) {
    table.DropHandle(handles_.back(), world_.now());
    handles_.pop_back();
  }
  for (const View& view : views) table.DropView(view.object, world_.now());
  views.clear();
  DoEffects();
}

void ObjectsProcess::Handle(const store::ObjectId& object) {
  handles_.push_back(object);
  seen_.push_back(object);
  if (seen_.size() > 16) seen_.erase(seen_.begin());
}

// A value that is there lies only in later ones; one that is to come could close a cycle, and
// cycles of values are not collected.
bool ObjectsProcess::MayContain(const store::ObjectId& object) const {
  return table.Look(object).known == store::Known::kValue;
}

void ObjectsProcess::PutSomething() {
  std::vector<store::ObjectId> inside;
  for (std::uint64_t n = world_.random().Below(3); n > 0 && !handles_.empty(); --n) {
    const auto& object = handles_[world_.random().Below(handles_.size())];
    if (MayContain(object)) inside.push_back(object);
  }
  if (world_.random().Chance(300)) {
    Handle(table.Put(store::Value::Inline("x"), inside, world_.now()));
    return DoEffects();
  }
  const store::ObjectId object = table.Put(store::Value(), {}, world_.now());
  Handle(object);
  store::Answer answer;
  const auto value = Write(object, /*assign_later=*/false);
  answer.value = value ? *value : store::Value::Error("out of memory");
  table.Fulfil(object, answer, id, world_.now());
  DoEffects();
}

std::optional<store::Value> ObjectsProcess::Write(const store::ObjectId& object,
                                                  bool assign_later) {
  const std::uint64_t bytes = world_.random().Chance(500) ? kLargeBytes : kSmallBytes;
  auto taken = slots.Take(bytes);
  if (!taken && slots.segments() < kSegmentsMost) {
    store::SegmentShape shape = *store::ShapeFor(bytes);
    shape.slots = std::min(shape.slots, 2u);
    slots.Add(shape);
    taken = slots.Take(bytes);
  }
  if (!taken) return std::nullopt;
  store::Location location;
  location.node = node;
  location.slot = {id, taken->at.segment, taken->at.slot};
  location.generation = taken->generation;
  world_.Written(location.slot, location.generation);
  slots.Lend(taken->at, object.owner);
  const auto assign = [this, location, object] {
    if (!alive) return;
    world_.ToKeeper(*this, [location, object](store::Keeper& keeper) {
      keeper.Assign(location.slot, location.generation, object);
    });
  };
  if (world_.StepKills(id)) return std::nullopt;
  if (assign_later) {
    world_.loop().In(std::chrono::milliseconds(4), "late assign", assign);
  } else {
    assign();
  }
  return store::Value::At(location);
}

void ObjectsProcess::CallSomebody() {
  const auto others = world_.Others(id);
  if (others.empty()) return;
  ObjectsProcess& to = *others[world_.random().Below(others.size())];
  if (closed.count(to.id) != 0) return;
  if (!world_.ConnectedPair(id, to.id)) return world_.Dial(id, to.id);
  Session& session = sessions_[to.id];
  CallFrame call;
  call.number = ++session.sent;
  call.result = table.Expect(world_.now());
  OutCall out;
  out.result = call.result;
  for (std::uint64_t n = world_.random().Below(4); n > 0 && !handles_.empty(); --n) {
    const auto& object = handles_[world_.random().Below(handles_.size())];
    store::Lent lent = table.Lend(object, to.id, world_.now());
    if (lent.handed.loan == 0) continue;
    out.loans.push_back(lent.handed.loan);
    for (const auto& inner : lent.answer.contained) {
      if (inner.loan != 0) out.loans.push_back(inner.loan);
    }
    call.args.push_back(std::move(lent));
  }
  session.pending[call.number] = std::move(out);
  Handle(call.result);
  DoEffects();
  world_.Count("calls");
  const ProcessId from = id;
  ObjectsWorld& world = world_;
  const ProcessId target = to.id;
  world_.Send(id, to.id, [&world, from, target, call](std::uint64_t) {
    world.Find(target)->OnCall(from, call);
  });
  world_.StepKills(id);
}

void ObjectsProcess::OnCall(const ProcessId& caller, const CallFrame& call) {
  Session& session = sessions_[caller];
  if (call.number <= session.received) return;
  session.received = call.number;
  std::vector<store::ObjectId> args;
  for (const store::Lent& lent : call.args) {
    const bool from_owner = lent.handed.object.owner == caller;
    if (table.Receive(caller, lent.handed, from_owner ? &lent.answer : nullptr, world_.now())) {
      args.push_back(lent.handed.object);
    }
  }
  DoEffects();
  if (world_.StepKills(id)) return;
  ++running_;
  const Duration runs = world_.loop().Between(
      Duration{}, std::chrono::milliseconds(world_.random().Chance(100) ? 1500 : 200));
  for (const store::ObjectId& arg : args) {
    if (world_.random().Chance(400)) GetSomething(arg);
    if (world_.random().Chance(600)) {
      world_.loop().In(runs / 2, "get in method", [this, arg] {
        if (alive && !letting_go) GetSomething(arg);
      });
    }
  }
  world_.loop().In(runs, "method ends", [this, caller, call, args] {
    if (alive) EndRun(caller, call.number, call.result, args);
  });
}

void ObjectsProcess::EndRun(const ProcessId& caller, std::uint64_t number,
                            const store::ObjectId& result,
                            const std::vector<store::ObjectId>& args) {
  --running_;
  if (world_.StepKills(id)) return;
  for (const store::ObjectId& arg : args) {
    if (!letting_go && world_.random().Chance(300)) {
      table.AddHandle(arg);
      Handle(arg);
    }
    table.DropHandle(arg, world_.now());
    table.EndCall(arg, world_.now());
  }
  DoEffects();
  if (closed.count(caller) != 0 || !table.Mind(caller, world_.now())) return DoEffects();
  ReplyFrame reply;
  reply.number = number;
  reply.result = result;
  reply.answer = MakeResult(caller, result);
  DoEffects();
  if (world_.StepKills(id)) return;  // after write and Assign, before the reply
  sessions_[caller].replies[number] = reply;
  const ProcessId from = id;
  ObjectsWorld& world = world_;
  world_.Send(id, caller, [&world, from, caller, reply](std::uint64_t) {
    world.Find(caller)->OnReply(from, reply);
  });
  world_.StepKills(id);
}

store::Answer ObjectsProcess::MakeResult(const ProcessId& caller, const store::ObjectId& result) {
  store::Answer answer;
  const std::uint64_t draw = world_.random().Below(100);
  if (draw < 10) {
    answer.value = store::Value::Error("raised");
    return answer;
  }
  if (draw < 60) {
    if (auto value = Write(result, Is(store::Mutant::kReplyBeforeAssign))) {
      answer.value = *value;
      return answer;
    }
  }
  answer.value = store::Value::Inline("y");
  for (std::uint64_t n = world_.random().Below(3); n > 0 && !handles_.empty(); --n) {
    const auto& object = handles_[world_.random().Below(handles_.size())];
    if (MayContain(object))
      answer.contained.push_back(table.LendInside(object, caller, world_.now()));
  }
  return answer;
}

void ObjectsProcess::OnReply(const ProcessId& callee, const ReplyFrame& reply) {
  Session& session = sessions_[callee];
  auto pending = session.pending.find(reply.number);
  if (Is(store::Mutant::kDupReply))
    pending = session.pending.begin();  // all waits end with this
  if (pending == session.pending.end()) {
    // A call that was given up: the table frees what came. A repeat of what was answered: nothing.
    if (session.given_up.erase(reply.number) != 0)
      table.Fulfil(reply.result, reply.answer, callee, world_.now());
    return DoEffects();
  }
  const store::ObjectId result = pending->second.result;
  session.pending.erase(pending);
  table.Fulfil(result, reply.answer, callee, world_.now());
  DoEffects();
  world_.Count("replies");
  const ProcessId from = id;
  ObjectsWorld& world = world_;
  const std::uint64_t number = reply.number;
  world_.Send(id, callee, [&world, from, callee, number](std::uint64_t) {
    world.Find(callee)->sessions_[from].replies.erase(number);
  });
}

void ObjectsProcess::FailCall(Session& session, std::uint64_t number, const ProcessId& peer) {
  const auto call = session.pending.find(number);
  table.Recall(peer, call->second.loans, world_.now());
  table.Fail(call->second.result, "not sent, or unknown", world_.now());
  session.given_up.insert(number);
  session.pending.erase(call);
}

void ObjectsProcess::OnResumed(const ProcessId& peer, std::uint64_t calls_received,
                               bool remembered) {
  Session& session = sessions_[peer];
  std::vector<std::uint64_t> over;
  for (const auto& [number, call] : session.pending) {
    if (number > calls_received || !remembered) over.push_back(number);
  }
  for (const std::uint64_t number : over) FailCall(session, number, peer);
  if (!remembered) {
    for (const auto& [number, reply] : session.replies) {
      std::vector<std::uint64_t> loans;
      for (const auto& inner : reply.answer.contained) loans.push_back(inner.loan);
      table.Recall(peer, loans, world_.now());
      for (const auto& at : reply.answer.value.locations)
        table.Withdraw(reply.result, at, world_.now());
    }
    session.replies.clear();
  }
  DoEffects();
  const ProcessId from = id;
  ObjectsWorld& world = world_;
  for (const auto& [number, reply] : session.replies) {
    world_.Send(id, peer, [&world, from, peer, reply = reply](std::uint64_t) {
      world.Find(peer)->OnReply(from, reply);
    });
  }
}

std::uint64_t ObjectsProcess::CallsReceivedFrom(const ProcessId& caller) {
  return sessions_[caller].received;
}

void ObjectsProcess::OnDead(const ProcessId& peer) {
  CloseTo(peer);
  table.Dead(peer, "killed", world_.now());
  DoEffects();
}

void ObjectsProcess::CloseTo(const ProcessId& peer) {
  closed.insert(peer);
  const auto session = sessions_.find(peer);
  if (session == sessions_.end()) return;
  for (const auto& [number, call] : session->second.pending) {
    table.Fail(call.result, "its actor died", world_.now());
  }
  sessions_.erase(session);
}

void ObjectsProcess::GetSomething(const store::ObjectId& object) {
  table.Want(object, world_.now());
  const store::Sight sight = table.Look(object);
  if (sight.known == store::Known::kWaiting) {
    if (std::count(handles_.begin(), handles_.end(), object) != 0) waits_.insert(object);
    return DoEffects();
  }
  if (sight.known != store::Known::kValue) return DoEffects();
  if (sight.value.kind == store::ValueKind::kSegments) {
    if (table.AddView(object)) {
      world_.Mapped(*this, object, sight.value.locations.front());
      views.push_back(
          {object, sight.value.locations.front().slot, sight.value.locations.front().generation});
    }
  }
  const auto& state = table.state();
  std::vector<store::ObjectId> inside;
  if (object.owner == id) {
    inside = state.owned.at(object.sequence).contained;
  } else {
    inside = state.borrowed.Find(object)->contained;
  }
  for (const store::ObjectId& inner : inside) {
    if (table.Look(inner).known == store::Known::kNothing) continue;
    table.AddHandle(inner);
    Handle(inner);
  }
  DoEffects();
}

void ObjectsProcess::DropSomething() {
  if (!views.empty() && (handles_.empty() || world_.random().Chance(300))) {
    const std::size_t at = world_.random().Below(views.size());
    table.DropView(views[at].object, world_.now());
    views.erase(views.begin() + static_cast<std::ptrdiff_t>(at));
  } else if (!handles_.empty()) {
    const std::size_t at = world_.random().Below(handles_.size());
    const store::ObjectId object = handles_[at];
    handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(at));
    if (std::count(handles_.begin(), handles_.end(), object) == 0) waits_.erase(object);
    table.DropHandle(object, world_.now());
  }
  DoEffects();
}

std::string ObjectsProcess::Unended() const {
  if (running_ != 0) return "a method still runs";
  for (const auto& [peer, session] : sessions_) {
    if (!session.pending.empty()) return "a call to " + peer.Short() + " has no end";
  }
  for (const store::ObjectId& object : waits_) {
    if (table.Look(object).known == store::Known::kWaiting)
      return "a get of " + object.Text() + " has no end";
  }
  return "";
}

std::string ObjectsProcess::Leaks() const {
  const store::State& state = table.state();
  if (!state.owned.empty()) {
    const auto& [sequence, own] = *state.owned.begin();
    std::string why = store::ObjectId{id, sequence}.Text() + " is still owned: handles " +
                      std::to_string(own.holds.handles) + ", views " +
                      std::to_string(own.holds.views) + ", containers " +
                      std::to_string(own.holds.containers);
    for (const ProcessId& borrower : own.borrowers) why += ", borrower " + borrower.Short();
    for (const auto& [to, loan] : own.loans)
      why += ", loan " + std::to_string(loan) + " to " + to.Short();
    return why;
  }
  for (const auto& [owner, objects] : state.borrowed.by_owner()) {
    const auto& [sequence, ref] = *objects.begin();
    return store::ObjectId{owner, sequence}.Text() + " is still borrowed, state " +
           std::to_string(static_cast<int>(ref.state));
  }
  for (const auto& [peer, record] : state.peers) {
    if (!record.loans_open.empty()) return "a loan to " + peer.Short() + " is open";
    if (!record.borrows.empty()) return peer.Short() + " is still listed";
    if (!record.stream.kept().empty()) return "a frame to " + peer.Short() + " is not acknowledged";
    if (record.dead_since) return peer.Short() + " is not buried";
  }
  if (slots.InUse() != 0) return "a slot is still lent";
  return "";
}

}  // namespace troupe::sim
