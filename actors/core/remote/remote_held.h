// The references that this process holds of the process at the other end of a call session, on
// another host: what it tells that process of them, and what it makes of the answers. Pure;
// remote_lent.h is the other side of it.
//
//   HA-1  A set, not counts: what is said twice changes nothing. The other end keeps what is held,
//         until it is told otherwise, or hears nothing for so long that it takes this process for
//         gone.
//   HA-2  Each kHold and kLetGo has a number. An answer counts for the last word of its reference
//         alone: one that was let go of and came again is not taken for gone.
//   HA-3  On another link everything is said again.
//   HA-4  At most kAskedMax words are under way: who answers needs no room for more.
//   HA-5  A value is asked for where the other end has said, on this link, that it keeps the
//         reference.
//   HA-6  What others have from this process is said to be so, until they let go of it.
//
// Whose view: the mover's thread; not locked. `Local` is the number of the object that stands for
// the reference here; what is said of an object that another one has followed means nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/core/remote/bulk_frame.h"
#include "runtime/base/status.h"

namespace troupe::actors {

class RemoteHeld {
 public:
  using Local = std::uint64_t;
  static constexpr std::size_t kMost = 1u << 20;
  static constexpr std::size_t kAskedMax = 1024;
  static constexpr std::size_t kInsideMax = 65536;

  /// Holds a reference from now on. False: there are too many.
  bool Take(const store::ObjectId& name, Local local);
  void LetGo(const store::ObjectId& name, Local local);
  /// Asks for the value of a reference that is held.
  void Want(const store::ObjectId& name, Local local);
  /// Others have it from this process, or do no more.
  void LentOn(const store::ObjectId& name, Local local, bool lent);
  /// The other end knows of it.
  bool Knows(const store::ObjectId& name) const;
  /// Answers are awaited of references that are not known to be kept.
  bool Awaits() const { return asking_ != 0; }
  bool empty() const { return entries_.empty(); }
  /// Only such are left as were let go of: a process that ends need not hear of them.
  bool OnlyLeaving() const { return entries_.size() == leaving_; }

  // -- what the other end says --
  /// The other end says that a reference is known to be held. Returns what stands for it here;
  /// nullopt: the answer was to an earlier word.
  std::optional<Local> Held(const BulkFrame& frame);
  /// The other end refuses a reference, which is held no more. Returns what stood for it here;
  /// nullopt: the answer was to an earlier word.
  std::optional<Local> Refused(const BulkFrame& frame);
  void Dropped(const BulkFrame& frame);
  struct Value {
    Local local = 0;
    store::ObjectId name;
    std::uint16_t flags = 0;  // an answer's frame flags (call_frame.h)
    std::uint64_t bytes = 0;  // to be pulled under that name
    std::vector<store::ObjectId> inside;
  };
  /// Notes one of the references inside the value that the next kReady tells of.
  Status Inside(const BulkFrame& frame);
  StatusOr<std::optional<Value>> Ready(const BulkFrame& frame);

  /// The link is gone.
  void Unlinked();
  /// Appends the frames that are due, as far as they may be under way.
  void AppendWords(std::string& out);

  struct Lost {
    store::ObjectId name;
    Local local;
  };
  /// All that the other end has not said to keep: it does not answer. They are let go of.
  std::vector<Lost> GiveUpAsked();
  /// All: the other end is gone.
  std::vector<Lost> LoseAll();

 private:
  enum class State : std::uint8_t { kAsking, kHeld, kLeaving };
  struct Entry {
    State state = State::kAsking;
    std::uint64_t number = 0;
    Local local = 0;
    bool said = false;       // the other end was told on some link
    bool told = false;  // reported on this link
    bool confirmed = false;  // answered on this link
    bool wanted = false;
    bool want_told = false;
    bool lent_on = false;
  };
  using Entries = std::map<store::ObjectId, Entry>;
  void Move(Entry& entry, State state);
  void Say(Entries::iterator at);
  void Erase(Entries::iterator at);
  Entry* AnswerTo(const BulkFrame& frame, Entries::iterator* at);

  Entries entries_;
  std::set<store::ObjectId> unsaid_;
  std::size_t asking_ = 0;
  std::size_t leaving_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t numbers_ = 0;
  std::vector<store::ObjectId> inside_;
};

}  // namespace troupe::actors
