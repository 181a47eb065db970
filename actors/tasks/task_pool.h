// The tasks that this process runs on processes of one kind: TaskDispatch decides, this acts.
//
// A task is kept, encoded, until it is answered, so that it can be made again when its process is lost, without
// Python. What a lane answers sends it the next tasks, on the thread that read the answer. A function's
// definition precedes its first call on each lane. A task whose arguments are to come waits for them outside the line;
// one of them that failed is its answer.
//
// Thread-safe: one lock for all pools of the process, taken before a channel's. Never blocks, runs no Python;
// `wake` is called without the lock and must do neither.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/caller/call_observer.h"
#include "actors/caller/channel.h"
#include "actors/slots/item_stream.h"
#include "actors/objects/object_handles.h"
#include "actors/core/policy/task_history.h"
#include "actors/core/policy/task_dispatch.h"
#include "actors/caller/pending_arguments.h"

namespace troupe::actors {

class CallHolds;

class TaskPool : public CallObserver, public ArgumentKeeper, public std::enable_shared_from_this<TaskPool> {
 public:
  static constexpr std::size_t kWaitingMax = 1u << 20;
  static constexpr std::size_t kWaitingBytesMax = 256u << 20;
  static constexpr std::string_view kDefine = "__define__";

  enum class Retried : std::uint8_t { kNone, kAll, kSome };  // exceptions of a task
  /// Tells functions and shapes from all others of this process, also from those that are gone.
  static std::uint64_t NewId();
  struct Function {
    const std::uint64_t id = NewId();
    std::string definition;  // encoded arguments of kDefine: the key of its calls, and what it is
    Handles refs;            // inside the definition
    std::size_t refs_at = 0;  // where in it the value begins that holds them
    std::uint16_t definition_arguments = 2;
    std::int32_t retries = 0;  // when its process is lost; -1: any number
    Retried retried = Retried::kNone;
    std::uint64_t calls_max = 0;  // in one process; 0: any number
    std::uint64_t number = 0;     // for who judges
    std::shared_ptr<const std::string> name;  // for people
    TaskDispatch::Kind kind;
  };
  /// Method and keyword names of calls, encoded. As long-lived as its function, or as the one call that has it.
  struct Shape {
    const std::uint64_t id = NewId();
    std::string names;
    std::uint16_t keyword_count = 0;
  };
  struct Call {
    std::shared_ptr<Function> function;
    const Shape* shape = nullptr;
    std::shared_ptr<const Shape> own_shape;  // nullptr: its function has it
    std::uint16_t argument_count = 0;
    std::string values;
    Handles held;                        // what `values` names
    PendingArguments to_come;            // into `values`
    std::shared_ptr<ItemStream> items;
    std::uint64_t parent = 0;  // the task that starts this one; 0: none
  };

  /// `values` outlives all pools.
  TaskPool(std::function<void()> wake, const ArgumentCodec& values);
  ~TaskPool() override;
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  struct Begun {
    Slot* slot;     // one reference for the caller
    LaneId lane;    // 0: it waits
  };
  Begun Begin(Call call);
  /// Too much waits; see Channel::WhenRoom.
  bool Full() const;
  Slot* WhenRoom();

  /// A process that is there: `channel` was made with this as its observer, and gets nothing else to send.
  LaneId Open(std::shared_ptr<Channel> channel);
  /// It gets no more tasks. True: nothing is with it, and it is forgotten.
  bool Close(LaneId lane);

  /// The same, and it is kept until Close.
  void Stop(LaneId lane);
  /// Calls a method of the process itself, without arguments, behind the tasks that are with it. One reference for the
  /// caller; nullptr: it cannot be asked any more.
  Slot* Ask(LaneId lane, std::string_view method);

  /// For a while it gets no more tasks.
  void Pause(LaneId lane, bool paused);
  /// Tasks that are with no process; those of them whose arguments are to come are counted apart.
  std::size_t waiting() const;
  std::size_t held_back() const;

  enum class Cancelled { kOver, kDropped, kAsked };
  /// Of any pool of this process; it is not made again. kAsked: a process has it (`*lane`), which was
  /// asked not to begin it, or is to be ended (`force`): then its end is the task's error. `recursive`: what it started
  /// is to be cancelled too, by its process.
  static Cancelled Cancel(Slot* slot, bool force, bool recursive, LaneId* lane);
  /// Those that `parent` started and that are not over, of all pools; one reference each.
  static std::vector<Slot*> Children(std::uint64_t parent);
  /// Of a streaming call: see Channel::Taken.
  static void Taken(Slot* slot, std::uint64_t items);
  /// Ends all that waits, with this answer.
  void FailWaiting(std::uint16_t flags, std::string_view body);

  enum class Stage { kArguments, kWaits, kGiven, kRuns };  // arguments to come; for a process; with one; first there
  struct Listed {
    Slot* slot;  // one reference
    std::string name;
    Stage stage;
    LaneId lane;  // 0: none
  };
  /// The tasks that are not over, the oldest first, so many at most.
  std::vector<Listed> List(std::size_t most) const;

  /// The latest tasks of all pools of this process that are over, so many at most, the oldest of them first.
  static std::vector<TaskHistory::Ended> LatestEnded(std::size_t most);

  struct View {
    std::vector<TaskDispatch::LaneView> lanes;
    std::size_t waiting = 0;
    Duration work{};
    Instant now{};
  };
  View Look();
  /// `wake` is called once more than this many wait, once; -1: it is not.
  void WakeAbove(std::int64_t waiting);
  /// `wake` is called once more than this many processes that take tasks have none, once; -1: it is not.
  void WakeAboveIdle(std::int64_t idle);

  struct Doubtful {
    Slot* slot;  // one reference
    std::uint64_t function;
  };
  /// Answers that raised and may be a reason to go again: that is for Judge to say.
  std::vector<Doubtful> TakeDoubtful();
  void Judge(Slot* slot, bool again);

  void Answered(std::uint64_t channel_id, const std::vector<ObservedAnswer>& answers,
                bool as_leader) override;

 private:
  struct Task;
  struct Lane {
    std::shared_ptr<Channel> channel;
    std::unordered_map<std::uint64_t, std::uint16_t> shapes;         // by id
    std::unordered_map<std::uint64_t, std::uint64_t> functions;  // by id: how often called
  };

  enum class Sent { kYes, kLater, kNever };
  Sent SendLocked(Task& task);
  void AppendArgumentsTo(const Lane& lane, const Task& task, ByteBuffer& frame, std::uint16_t* flags,
                         std::unique_ptr<CallHolds>* over) const;
  bool DefineLocked(Lane& lane, const Function& function, Sent* why);
  Sent IssueLocked(Lane& lane, ByteBuffer& frame, std::uint16_t flags, Slot* slot,
                   std::shared_ptr<ItemStream> items);
  void FillLaneLocked(LaneId lane, Instant now);
  void FillAllLocked();
  void ArgumentHere(std::uint64_t later, const Slot& answer) override;
  bool FillInLocked(Task& task, SlotList* finished);
  LaneId StartLocked(Task& task);
  void SettleLocked(Task& task, ObservedAnswer::Lost lost, SlotList* finished);
  void DeliverLocked(Task& task, SlotList* finished);
  static TaskHistory& HistoryLocked();
  static void NoteEndedLocked(Task& task);
  void AnswerLocked(Task& task, std::uint16_t flags, std::string_view body, SlotList* finished);
  bool TryAgainLocked(Task& task);
  void NoteWaitingLocked(SlotList* finished);
  void ObserveItems(Task& task, bool on);
  static void NoteParent(const Task& task, bool on);
  void LinkLocked(Task& task);
  void UnlinkLocked(Task& task);
  std::size_t KeptBack() const { return line_.waiting() + later_.size(); }
  void Tell(const SlotList& finished, bool as_leader);
  bool TooIdleLocked();
  bool TakeWake();

  /// Of all pools, so that a slot's task can be looked at whatever pool it is of.
  static std::mutex mutex_;

  const std::function<void()> wake_;
  const ArgumentCodec& values_;
  TaskDispatch line_;
  Task* oldest_ = nullptr;
  Task* newest_ = nullptr;
  std::map<std::uint64_t, Task*> later_;  // whose arguments are to come
  std::uint64_t next_later_ = 1;
  std::map<LaneId, Lane> lanes_;
  std::unordered_map<std::uint64_t, LaneId> by_channel_;
  std::size_t waiting_bytes_ = 0;
  std::vector<Slot*> room_waiters_;
  std::vector<Doubtful> doubtful_;
  std::int64_t wake_above_ = 0;
  std::int64_t wake_above_idle_ = -1;
  bool wake_due_ = false;
  bool expecting_ = false;
  std::vector<TaskDispatch::Task*> answered_;  // scratch
};

}  // namespace troupe::actors
