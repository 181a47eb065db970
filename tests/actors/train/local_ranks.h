// A rank of a group over memory in a process of its own: forms it with the others of the test.
//
//   LocalTest test(3);                                // before the ranks are forked
//   ExpectSuccess(RunRanks(3, {}, [&](Rank& rank) {
//     LocalMember member(rank, test);
//     member.Run({.kind = Collective::kBarrier});
//   }));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/train/local/local_communicator.h"
#include "tests/actors/train/ranks.h"

namespace troupe::train {

/// The number of each rank's node: ranks of different ones share no memory, and meet by TCP at this
/// machine's loopback.
using Layout = std::vector<int>;
inline Layout OneNode(int size) { return Layout(static_cast<std::size_t>(size)); }
/// Ranks in turn on so many nodes.
inline Layout InTurn(int size, int nodes) {
  Layout layout;
  for (int rank = 0; rank < size; ++rank) layout.push_back(rank % nodes);
  return layout;
}

/// State shared by the ranks of one test: their cards, by a page that they inherit, and the secret.
class LocalTest {
 public:
  explicit LocalTest(int size) : LocalTest(OneNode(size)) {}
  explicit LocalTest(Layout layout);
  ~LocalTest();
  LocalTest(const LocalTest&) = delete;
  LocalTest& operator=(const LocalTest&) = delete;

  int size() const { return static_cast<int>(layout_.size()); }
  /// This rank's door, open to those that may come, and published.
  Door Open(Rank& rank);
  const Secret& secret() const { return secret_; }
  void Publish(Rank& rank, const Card& card);
  /// Blocks until all have published.
  std::vector<Card> Cards(Rank& rank) const;

 private:
  struct Page;
  const Layout layout_;
  const Secret secret_{"what only the ranks of this test know"};
  Page* page_;
};

class LocalMember {
 public:
  /// Forms the group; ends the process where that fails. `adapt` may change its specification.
  LocalMember(Rank& rank, LocalTest& test, const std::function<void(LocalSpec&)>& adapt = {});
  LocalCommunicator& group() { return *group_; }
  Supervisor& supervisor() { return *supervisor_; }
  /// Starts and waits for a minute.
  Status Try(const Operation& operation);
  /// Ends the process where the operation fails.
  void Run(const Operation& operation);

 private:
  Rank& rank_;
  std::unique_ptr<Supervisor> supervisor_;
  std::shared_ptr<LocalCommunicator> group_;
};

}  // namespace troupe::train
