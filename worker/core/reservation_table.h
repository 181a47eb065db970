// The reservations of this node: the only authority on it (P1). The head plans; this table decides.
//
// Pure; view: one node. A reservation is (group, attempt); a higher attempt of a group replaces a
// lower one, and an attempt once seen is never accepted again (tombstone), so that a late or
// repeated message changes nothing. A released reservation is DRAINING until its processes and
// child leases are gone; only then is what it held free again.
//
//   LEASED --Release or a higher attempt--> DRAINING --last process, last child gone--> free
//
// A child lease (parent given) is taken out of its parent's reservation and ends with it.
// Invariants: P1 the sum of what is held or draining and what is free is the capacity, always;
// P7 a device is whole in one reservation, or shared by fractions that sum to at most one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "worker/core/resource_pool.h"

namespace troupe::worker {

struct ReservationKey {
  GroupId group;
  std::uint64_t attempt = 0;
  friend bool operator<(const ReservationKey& a, const ReservationKey& b) {
    return a.group != b.group ? a.group < b.group : a.attempt < b.attempt;
  }
  friend bool operator==(const ReservationKey& a, const ReservationKey& b) {
    return a.group == b.group && a.attempt == b.attempt;
  }
};

struct ReserveAnswer {
  bool granted = false;
  std::vector<wire::BundleGrant> grants;
  std::string reason;  // when refused, for a person
  // older attempts that are DRAINING now: end their processes
  std::vector<ReservationKey> superseded;
};

class ReservationTable {
 public:
  /// `devices` say where the GPUs are; none is needed.
  ReservationTable(Amounts capacity, const std::vector<std::uint32_t>& gpu_ids,
                   const std::vector<wire::Device>& devices = {});

  ReserveAnswer Reserve(const wire::Reserve& request);
  /// Begins the release of (group, attempt) and of its child leases; idempotent, and a tombstone
  /// when nothing is held. Returns the leases that are DRAINING now: end their processes.
  std::vector<ReservationKey> Release(const ReservationKey& key);

  /// A process lives in a lease. False when the lease is not held (or DRAINING): do not start it.
  bool Attach(const ReservationKey& key, ProcessId process);
  void Detach(ProcessId process);

  /// So much of the CPUs of a lease is not needed: it is free until the lease needs it again.
  /// False: nothing changes.
  bool Lend(const ReservationKey& key, std::uint64_t cpus);

  /// Leases that became free since the last call, in the order in which they did.
  std::vector<ReservationKey> TakeFreed();

  bool Held(const ReservationKey& key) const;
  /// Returns true if the reservation is held and not DRAINING.
  bool Usable(const ReservationKey& key) const;
  std::vector<wire::Holding> Holdings() const;
  std::vector<ProcessId> ProcessesOf(const ReservationKey& key) const;
  /// Bytes of memory that this bundle of it has been given, or all of them for -1; 0 where none
  /// were asked for.
  std::uint64_t MemoryOf(const ReservationKey& key, std::int32_t bundle) const;
  Amounts Free() const { return node_.Free(); }
  /// Grows with every change of Free().
  std::uint64_t version() const { return version_; }
  /// P1, for tests: what is held at the top level plus what is free, equals the capacity.
  bool Conserves() const;

 private:
  struct Lease {
    std::map<std::uint32_t, Take> bundles;
    ResourcePool inside;  // resources that child leases may take
    std::set<ProcessId> processes;
    std::set<ReservationKey> children;
    bool has_parent = false;
    ReservationKey parent;
    bool draining = false;
    std::uint64_t lent = 0;  // how many of its CPUs
  };

  void Remember(const GroupId& group, std::uint64_t attempt);
  const ReservationKey* Newest(const GroupId& group) const;
  void BeginRelease(const ReservationKey& key, std::vector<ReservationKey>* draining);
  void FreeIfDrained(ReservationKey key);
  ResourcePool& PoolOf(const Lease& lease);
  bool TakeAll(const wire::Reserve& request, ResourcePool& pool, Lease* lease,
               std::string* reason) const;
  static std::vector<wire::BundleGrant> GrantsOf(const Lease& lease);

  const Amounts capacity_;
  ResourcePool node_;
  std::map<ReservationKey, Lease> leases_;
  std::map<ProcessId, ReservationKey> lease_of_;
  std::map<GroupId, std::uint64_t> seen_;
  std::deque<GroupId> seen_order_;
  std::vector<ReservationKey> freed_;
  std::uint64_t version_ = 1;
};

}  // namespace troupe::worker
