// The references that the process at the other end of a call session, on another host, holds of
// this one: remote_held.h seen from there. Pure.
//
//   LA-1  A reference is kept from the kHold that this end grants to the kLetGo, or until that
//         process is taken for gone. Saying either again changes nothing.
//   LA-2  Who holds a reference and was told of its value may hold what lies inside it.
//   LA-3  A value is told of once per kWant.
//   LA-4  A life that others have from the other end outlives that: who holds it then is not known.
//
// Whose view: the mover's thread; not locked. Who makes it keeps the objects themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/core/remote/bulk_frame.h"

namespace troupe::actors {

class RemoteLent {
 public:
  static constexpr std::size_t kMost = 1u << 20;

  bool Lends(const store::ObjectId& name) const { return lent_.count(name) != 0; }
  /// Returns true if a reference lies inside a value that the other end was told of.
  bool GivesInside(const store::ObjectId& name) const { return inside_.count(name) != 0; }
  bool full() const { return lent_.size() >= kMost; }
  bool empty() const { return lent_.empty(); }
  std::size_t size() const { return lent_.size(); }

  void Lend(const store::ObjectId& name) { lent_.emplace(name, Entry()); }
  /// Notes whether others have it from the other end.
  void NoteOn(const store::ObjectId& name, bool on);
  /// Returns true if it outlives the other end.
  bool Outlives(const store::ObjectId& name) const;
  std::vector<store::ObjectId> names() const;
  /// False: it was not lent.
  bool TakeBack(const store::ObjectId& name);
  /// The other end asks for its value. True: it is to be told of, once it is there.
  bool Want(const store::ObjectId& name);
  /// The value of a reference that is lent is there: appends what is said of it. False: nobody
  /// asked.
  bool Tell(const store::ObjectId& name, std::uint16_t flags, std::uint64_t bytes,
            std::vector<store::ObjectId> inside, std::string& out);
  void Clear();

 private:
  struct Entry {
    bool wanted = false;
    bool on = false;
    std::vector<store::ObjectId> inside;
  };
  void Forget(Entry& entry);

  std::map<store::ObjectId, Entry> lent_;
  std::map<store::ObjectId, std::uint64_t> inside_;  // in how many of them
};

}  // namespace troupe::actors
