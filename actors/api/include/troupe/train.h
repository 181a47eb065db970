// Training groups: collectives between actors, over the memory of a node and TCP between nodes,
// that end by an error, and not by a hang, when one of them dies.
//
//   // the program that made the workers:
//   troupe::train::FormGroup("dp", {worker0, worker1}, 60s);
//   // in a method of each of them:
//   auto group = troupe::train::GetGroup("dp");
//   group.AllReduce(std::span<float>(gradients), troupe::train::Reduce::kAvg);
//
// Every member calls the same operations in the same order. When one of them ends, what the others
// wait for ends with GroupError, which names it; the group is then of no use, and is formed again
// by FormGroup, with a new member or without that one.
#pragma once

#include <troupe/actor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe {

/// The group was stopped, or did not form: the text says which member has ended, or why.
class TROUPE_API GroupError : public Error {
 public:
  using Error::Error;
  ~GroupError() override;
};

namespace train {

enum class Reduce { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

class GroupMember;

/// A group as one member sees it. May be copied; one thread at a time calls operations. All of them
/// block; they throw GroupError, InvalidError (unequal sizes), and TimeoutError after `timeout`,
/// upon which the operation goes on.
class TROUPE_API Group {
 public:
  explicit Group(std::shared_ptr<GroupMember> member) : member_(std::move(member)) {}

  int rank() const;
  int size() const;
  /// `data` of all members put together, on each of them.
  template <class T>
  void AllReduce(std::span<T> data, Reduce how = Reduce::kSum, Timeout timeout = std::nullopt) {
    Run(Kind::kAllReduce, data.data(), data.data(), data.size(), TypeOf<T>(), static_cast<int>(how),
        timeout);
  }
  /// The data of member `root`, on each of them.
  template <class T>
  void Broadcast(std::span<T> data, int root = 0, Timeout timeout = std::nullopt) {
    Run(Kind::kBroadcast, data.data(), data.data(), data.size(), TypeOf<T>(), root, timeout);
  }
  /// The data of all members, in the order of their ranks, on each of them.
  template <class T>
  std::vector<std::remove_const_t<T>> AllGather(std::span<T> mine, Timeout timeout = std::nullopt) {
    std::vector<std::remove_const_t<T>> all(mine.size() * static_cast<std::size_t>(size()));
    Run(Kind::kAllGather, mine.data(), all.data(), mine.size(), TypeOf<std::remove_const_t<T>>(), 0,
        timeout);
    return all;
  }
  /// Returns once all members have come to it.
  void Barrier(Timeout timeout = std::nullopt) {
    Run(Kind::kBarrier, nullptr, nullptr, 0, TypeOf<std::uint8_t>(), 0, timeout);
  }

 private:
  enum class Kind { kAllReduce, kBroadcast, kAllGather, kBarrier };

  /// NCCL's number of a type.
  template <class T>
  static constexpr int TypeOf() {
    if constexpr (std::is_same_v<T, float>) return 7;
    if constexpr (std::is_same_v<T, double>) return 8;
    static_assert(
        std::is_same_v<T, float> || std::is_same_v<T, double> ||
            (std::is_integral_v<T> && (sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8)),
        "groups take float, double, and integers of 8, 32 and 64 bits");
    constexpr int kSigned = sizeof(T) == 1 ? 0 : sizeof(T) == 4 ? 2 : 4;
    return std::is_signed_v<T> ? kSigned : kSigned + 1;
  }
  /// `how`: the reduction, or the root.
  void Run(Kind kind, const void* send, void* recv, std::size_t count, int type, int how,
           Timeout timeout);

  std::shared_ptr<GroupMember> member_;
};

/// Makes a group of that name of these actors, in C++ both, in the order of their ranks; one of
/// that name that they were in before is stopped. Blocks until it is formed. Throws GroupError,
/// TimeoutError, and what calls of the actors end with.
TROUPE_API void FormGroup(const std::string& name, const std::vector<AnyActor>& members,
                          Timeout timeout = std::chrono::seconds(60));
/// This actor's view of the latest group of that name. Throws NotFoundError, which names those that
/// it is in.
TROUPE_API Group GetGroup(const std::string& name);

}  // namespace train
}  // namespace troupe
