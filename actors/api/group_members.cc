#include "actors/api/group_members.h"

#include <troupe/train.h>

#include <map>
#include <optional>
#include <utility>

#include "actors/api/calls.h"
#include "actors/train/process_groups.h"
#include "runtime/async/os_random.h"
#include "runtime/base/mutex.h"

namespace troupe {

GroupError::~GroupError() = default;

namespace train {

/// A group that is formed; left by its end.
class GroupMember {
 public:
  explicit GroupMember(std::shared_ptr<LocalCommunicator> group) : group_(std::move(group)) {}
  ~GroupMember() {
    group_->Leave();
    LeaveInProcess(std::move(group_));
  }
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;
  LocalCommunicator& group() const { return *group_; }

 private:
  std::shared_ptr<LocalCommunicator> group_;
};

}  // namespace train

namespace {

using train::GroupMember;

// How long an operation that lost a member waits for word of what killed it.
constexpr std::chrono::seconds kVerdictWithin{2};
// Nothing of a group over memory can be stuck but on a machine that runs nothing of the process.
constexpr std::chrono::minutes kStuckAfter{1};
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kGroupsMax = 256;
constexpr Duration kForEver = std::chrono::hours(24 * 365);

struct Groups {
  Mutex mutex;
  std::map<std::string, train::Door> doors ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::shared_ptr<GroupMember>> formed ABSL_GUARDED_BY(mutex);
};

Groups& Here() {
  static auto* const groups = new Groups();  // outlives every static of a program
  return *groups;
}

[[noreturn]] void ThrowGroup(const Status& status) { throw GroupError(MessageOf(status)); }

std::vector<train::Card> CardsOf(const Value::List& texts) {
  std::vector<train::Card> cards;
  for (const Value& text : texts) {
    StatusOr<train::Card> card = train::Card::Parse(text.AsBytes());
    if (!card.ok()) ThrowGroup(card.status());
    cards.push_back(*std::move(card));
  }
  return cards;
}

train::Door TakeDoor(const std::string& name) {
  Groups& groups = Here();
  MutexLock lock(groups.mutex);
  auto found = groups.doors.extract(name);
  if (found.empty()) throw GroupError("the group " + name + " has no door here: it is formed once");
  return std::move(found.mapped());
}

}  // namespace

namespace api {

Value OpenGroupDoor(const Value::List& arguments) {
  const std::string name = arguments.at(0).AsString();
  StatusOr<train::Door> door = train::Door::Open();
  if (!door.ok()) ThrowGroup(door.status());
  const std::string card = door->card().Text();
  Groups& groups = Here();
  std::shared_ptr<GroupMember> before;  // let go of without the lock
  MutexLock lock(groups.mutex);
  if (groups.doors.size() + groups.formed.size() >= kGroupsMax)
    throw GroupError("this actor is in " + std::to_string(kGroupsMax) + " groups already");
  if (auto former = groups.formed.extract(name); !former.empty()) {
    before = std::move(former.mapped());
    before->group().Stop("the group " + name + " is formed anew");
  }
  groups.doors.erase(name);
  groups.doors.emplace(name, *std::move(door));
  lock.Unlock();
  return Value::OfBytes(card);
}

Value FormGroupHere(const Value::List& arguments) {
  const std::string name = arguments.at(0).AsString();
  train::LocalSpec spec;
  spec.name = name;
  spec.rank = static_cast<int>(arguments.at(1).AsInt());
  spec.secret = Secret(arguments.at(2).AsBytes());
  spec.cards = CardsOf(arguments.at(3).AsList());
  spec.size = static_cast<int>(spec.cards.size());
  spec.times.form_max = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(arguments.at(4).AsFloat()));
  spec.times.call_max = kStuckAfter;
  spec.verdict_within = kVerdictWithin;
  auto member =
      std::make_shared<GroupMember>(train::FormInProcess(std::move(spec), TakeDoor(name)));
  const Status formed = member->group().AwaitReady();
  if (!formed.ok()) ThrowGroup(formed);
  Groups& groups = Here();
  MutexLock lock(groups.mutex);
  std::swap(groups.formed[name], member);
  lock.Unlock();
  return {};
}

}  // namespace api

namespace train {

int Group::rank() const { return member_->group().rank(); }
int Group::size() const { return member_->group().size(); }

void Group::Run(Kind kind, const void* send, void* recv, std::size_t count, int type, int how,
                Timeout timeout) {
  static_assert(static_cast<int>(Reduce::kAvg) == static_cast<int>(ReduceOp::kAvg));
  static_assert(static_cast<int>(DataType::kFloat32) == 7 &&
                static_cast<int>(DataType::kInt64) == 4);
  constexpr Collective kKinds[] = {Collective::kAllReduce, Collective::kBroadcast,
                                   Collective::kAllGather, Collective::kBarrier};
  Operation operation;
  operation.kind = kKinds[static_cast<int>(kind)];
  operation.send = send;
  operation.recv = recv;
  operation.count = count;
  operation.type = DataType{type};
  if (kind == Kind::kAllReduce) operation.op = ReduceOp{how};
  if (kind == Kind::kBroadcast) operation.root = how;
  StatusOr<std::shared_ptr<Work>> work = member_->group().Start({&operation, 1});
  const Status ended =
      work.ok() ? (*work)->Wait(timeout ? Duration(*timeout) : kForEver) : work.status();
  if (ended.ok()) return;
  if (ErrorCodeOf(ended) == ErrorCode::kTimeout) throw TimeoutError(MessageOf(ended));
  if (ErrorCodeOf(ended) == ErrorCode::kInvalid) throw InvalidError(MessageOf(ended));
  throw GroupError(MessageOf(ended));
}

namespace {

/// If a member fails because its group does not form, that is the group's error, not that of its
/// code.
Value Answer(const AnyRef& ref, const TimeLeft& time) {
  try {
    return ref.GetValue(time.left());
  } catch (const TaskError& error) {
    throw GroupError(error.what());
  }
}

}  // namespace

void FormGroup(const std::string& name, const std::vector<AnyActor>& members, Timeout timeout) {
  if (members.empty() || name.empty())
    throw InvalidError("a group has a name and at least one member");
  const TimeLeft time(timeout);
  std::vector<AnyRef> opened;
  for (const AnyActor& member : members) opened.push_back(member.Call(api::kGroupCard, name));
  Value::List cards;
  for (const AnyRef& each : opened) cards.push_back(Answer(each, time));
  const Value secret = Value::OfBytes(async::RandomBytes(kSecretBytes));
  const double seconds =
      timeout ? std::chrono::duration<double>(*time.left()).count() : 86400.0 * 365;
  std::vector<AnyRef> formed;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    formed.push_back(members[rank].Issue(
        api::kGroupForm, {Value::String(name), Value::Int(static_cast<std::int64_t>(rank)), secret,
                          Value::OfList(cards), Value::Float(seconds)}));
  }
  for (const AnyRef& each : formed) Answer(each, time);
}

Group GetGroup(const std::string& name) {
  Groups& groups = Here();
  MutexLock lock(groups.mutex);
  const auto found = groups.formed.find(name);
  if (found != groups.formed.end()) return Group(found->second);
  std::string known;
  for (const auto& [each, member] : groups.formed) known += (known.empty() ? "" : ", ") + each;
  throw NotFoundError("this actor is in no group " + name +
                      "; it is in: " + (known.empty() ? "none" : known) +
                      "\n  troupe::train::FormGroup(name, actors) forms one, in the program that "
                      "has their handles");
}

}  // namespace train
}  // namespace troupe
