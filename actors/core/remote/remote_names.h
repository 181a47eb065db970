// Names of other hosts' objects in this process, and the lives that went on from here to others.
// Pure.
//
// Between hosts an object has one name, its owner's. In this process it may be known by another
// one: an object of this process's own stands for it (a stand-in), or one that another process of
// this host made for it is borrowed here.
//
//   RN-1  What has another name here is found by its name between hosts (Here), and that name by
//         the one here (NameOf), until it is forgotten. Of several that bear a name one after the
//         other the latest is found.
//   RN-2  The value behind a stand-in is asked for once, when somebody first needs it. That of a
//         life never is.
//   RN-3  A stand-in that was lost stays known to be so: who brings its name again gets another.
//   RN-4  Who gave a life is told when the first one to hand it on does so, and when nobody has it
//         any more: its source, where it is a stand-in, else its owner. A life of this process's
//         own concerns nobody else.
//   RN-5  The processes of this host that borrow a life from its stand-in count as one of those
//         who hand it on.
//   RN-6  A life of this process's own has one handle for each process of this host that hands it
//         on, from when that says so, and borrows it, to when it says the opposite. Saying either
//         again changes nothing.
//   RN-7  Nothing is kept of a name that is forgotten.
//
// Whose view: one process's object store; not locked. Whoever holds this acts on what it answers.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/ids.h"
#include "runtime/store/core/object_id.h"

namespace troupe::actors {

class RemoteNames {
 public:
  explicit RemoteNames(const ProcessId& self) : self_(self) {}

  /// Returns the object's name between hosts; `id` itself, if that is no other name.
  store::ObjectId NameOf(const store::ObjectId& id) const;
  /// Returns the local name of an object with this name between hosts; `name` itself, if no other
  /// is known.
  store::ObjectId Here(const store::ObjectId& name) const;
  /// An object that is borrowed here has that name between hosts. A name that it has already stays.
  void Call(const store::ObjectId& id, const store::ObjectId& name);

  /// An object of this process's own stands for `name` from now on.
  void StandFor(const store::ObjectId& id, const store::ObjectId& name);
  bool StandsIn(const store::ObjectId& id) const { return stand_ins_.count(id) != 0; }
  /// Returns true for a stand-in whose value nobody has asked for.
  bool Asleep(const store::ObjectId& id) const;
  /// Somebody needs its value. What is to be asked for, or nothing: it is no stand-in, or was asked
  /// for before.
  std::optional<store::ObjectId> Rouse(const store::ObjectId& id);
  /// Marks a stand-in's object as lost: its value will not come, or is gone.
  void Lose(const store::ObjectId& id);
  bool Lost(const store::ObjectId& id) const;

  /// The process that a change concerns.
  enum class Tell { kNobody, kSource, kOwner };
  /// `id`, if it is a life, is with one more holder on another host that has it from here, or with
  /// one less.
  Tell LentOn(const store::ObjectId& id, bool lent);
  /// Notes whether processes of this host borrow `id` from this one; returns whom that concerns if
  /// it is a stand-in for a life.
  Tell Borrowed(const store::ObjectId& id, bool borrowed);
  /// The effect on a life's handles here.
  enum class Handle { kNone, kAdd, kDrop };
  /// `borrower`, a process of this host, says that it hands a life on, or does so no more.
  /// `borrows`: it borrows it.
  Handle HandedOn(const ProcessId& borrower, const store::ObjectId& id, bool lent, bool borrows);

  /// Forgets the object here. Returns the name of the object it stood for, whose source may release
  /// it; nothing: it was no stand-in.
  std::optional<store::ObjectId> Forget(const store::ObjectId& id);

  /// Everything that is kept of names and of those who hand on, RN-6 aside.
  std::size_t size() const;

 private:
  struct StandIn {
    bool asleep = true;
    bool lost = false;
  };

  const ProcessId self_;
  std::map<store::ObjectId, store::ObjectId> known_as_;  // between hosts, by what it is called here
  std::map<store::ObjectId, store::ObjectId> here_;      // the other way round
  std::map<store::ObjectId, StandIn> stand_ins_;
  std::map<store::ObjectId, std::size_t> lent_on_;  // lives: how many hand them on
  std::set<store::ObjectId> lent_beside_;  // stand-ins among them that are borrowed on this host
  std::set<std::pair<ProcessId, store::ObjectId>> held_lent_on_;  // own lives, by who hands them on
};

}  // namespace troupe::actors
