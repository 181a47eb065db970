// Every collective over memory and between nodes by real processes, for groups of one to five ranks
// on one to three nodes and sizes from nothing over one piece to several: what each rank gets
// against what it should, computed from the ranks' numbers.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/actors/train/local_ranks.h"

namespace troupe::train {
namespace {

using Numbers = std::vector<std::int64_t>;
constexpr std::size_t kCounts[] = {0,    1,     7,
                                   1000, 65536, 200003};  // items of 8 bytes: three pieces and more

std::int64_t Value(int rank, std::size_t at) {
  return static_cast<std::int64_t>(at * 3) + rank * 1000003;
}

Numbers Of(int rank, std::size_t count) {
  Numbers numbers(count);
  for (std::size_t at = 0; at < count; ++at) numbers[at] = Value(rank, at);
  return numbers;
}

std::int64_t SumAt(int size, std::size_t at) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += Value(rank, at);
  return sum;
}

class LocalCollectives : public testing::TestWithParam<Layout> {
 protected:
  int size() const { return static_cast<int>(GetParam().size()); }
  std::size_t ranks() const { return GetParam().size(); }
  /// Each rank runs it with every count.
  void ForAll(const std::function<void(Rank&, LocalMember&, std::size_t)>& body) {
    LocalTest test(GetParam());
    ExpectSuccess(RunRanks(size(), {}, [&](Rank& rank) {
      LocalMember member(rank, test);
      for (const std::size_t count : kCounts) body(rank, member, count);
      rank.Require(member.group().Release().ok(), "release");
    }));
  }
  static void Expect(Rank& rank, const Numbers& found, std::size_t at, std::int64_t value,
                     const char* what) {
    if (found[at] == value) return;
    rank.Require(false, std::string(what) + ": " + std::to_string(found[at]) + " at " +
                            std::to_string(at) + " of " + std::to_string(found.size()) + ", not " +
                            std::to_string(value));
  }
};

TEST_P(LocalCollectives, AllReduceInPlaceAndBeside) {
  ForAll([&](Rank& rank, LocalMember& member, std::size_t count) {
    Numbers mine = Of(rank.index(), count), beside(count);
    Operation operation{.send = mine.data(), .count = count, .type = DataType::kInt64};
    operation.recv = beside.data();
    member.Run(operation);
    operation.recv = mine.data();
    member.Run(operation);
    for (std::size_t at = 0; at < count; ++at) {
      Expect(rank, beside, at, SumAt(size(), at), "beside");
      Expect(rank, mine, at, SumAt(size(), at), "in place");
    }
  });
}

TEST_P(LocalCollectives, ReduceToEveryRoot) {
  ForAll([&](Rank& rank, LocalMember& member, std::size_t count) {
    for (int root = 0; root < size(); ++root) {
      const Numbers mine = Of(rank.index(), count);
      Numbers result(count, -1);
      member.Run({.kind = Collective::kReduce,
                  .send = mine.data(),
                  .recv = result.data(),
                  .count = count,
                  .type = DataType::kInt64,
                  .op = ReduceOp::kMax,
                  .root = root});
      for (std::size_t at = 0; at < count; ++at)
        Expect(rank, result, at, rank.index() == root ? Value(size() - 1, at) : -1, "reduce");
    }
  });
}

TEST_P(LocalCollectives, BroadcastFromEveryRoot) {
  ForAll([&](Rank& rank, LocalMember& member, std::size_t count) {
    for (int root = 0; root < size(); ++root) {
      Numbers numbers = Of(rank.index(), count);
      member.Run({.kind = Collective::kBroadcast,
                  .send = numbers.data(),
                  .recv = numbers.data(),
                  .count = count,
                  .type = DataType::kInt64,
                  .root = root});
      for (std::size_t at = 0; at < count; ++at)
        Expect(rank, numbers, at, Value(root, at), "broadcast");
    }
  });
}

TEST_P(LocalCollectives, AllGatherAndGather) {
  ForAll([&](Rank& rank, LocalMember& member, std::size_t count) {
    const Numbers mine = Of(rank.index(), count);
    for (const auto kind : {Collective::kAllGather, Collective::kGather}) {
      const int root = size() - 1;
      Numbers all(count * ranks(), -1);
      member.Run({.kind = kind,
                  .send = mine.data(),
                  .recv = all.data(),
                  .count = count,
                  .type = DataType::kInt64,
                  .root = root});
      const bool gets = kind == Collective::kAllGather || rank.index() == root;
      for (std::size_t at = 0; at < all.size(); ++at)
        Expect(rank, all, at, gets ? Value(static_cast<int>(at / count), at % count) : -1,
               "gather");
    }
  });
}

TEST_P(LocalCollectives, ReduceScatter) {
  ForAll([&](Rank& rank, LocalMember& member, std::size_t count) {
    const Numbers mine = Of(rank.index(), count * ranks());
    Numbers part(count);
    member.Run({.kind = Collective::kReduceScatter,
                .send = mine.data(),
                .recv = part.data(),
                .count = count,
                .type = DataType::kInt64});
    const std::size_t begin = count * static_cast<std::size_t>(rank.index());
    for (std::size_t at = 0; at < count; ++at)
      Expect(rank, part, at, SumAt(size(), begin + at), "reduce-scatter");
  });
}

TEST_P(LocalCollectives, ScatterFromEveryRoot) {
  ForAll([&](Rank& rank, LocalMember& member, std::size_t count) {
    for (int root = 0; root < size(); ++root) {
      const Numbers mine = Of(rank.index(), rank.index() == root ? count * ranks() : 0);
      Numbers part(count);
      member.Run({.kind = Collective::kScatter,
                  .send = mine.data(),
                  .recv = part.data(),
                  .count = count,
                  .type = DataType::kInt64,
                  .root = root});
      const std::size_t begin = count * static_cast<std::size_t>(rank.index());
      for (std::size_t at = 0; at < count; ++at)
        Expect(rank, part, at, Value(root, begin + at), "scatter");
    }
  });
}

TEST_P(LocalCollectives, AllToAll) {
  ForAll([&](Rank& rank, LocalMember& member, std::size_t count) {
    const Numbers mine = Of(rank.index(), count * ranks());
    Numbers got(count * ranks());
    member.Run({.kind = Collective::kAllToAll,
                .send = mine.data(),
                .recv = got.data(),
                .count = count,
                .type = DataType::kInt64});
    const std::size_t begin = count * static_cast<std::size_t>(rank.index());
    for (std::size_t at = 0; at < got.size(); ++at)
      Expect(rank, got, at, Value(static_cast<int>(at / count), begin + at % count), "all-to-all");
  });
}

TEST_P(LocalCollectives, AllToAllOfUnequalCounts) {
  ForAll([&](Rank& rank, LocalMember& member, std::size_t count) {
    // Rank i sends i + j times the count to rank j.
    std::vector<std::size_t> send, recv;
    std::size_t sent = 0, got = 0;
    for (std::size_t peer = 0; peer < ranks(); ++peer) {
      send.push_back(count * (static_cast<std::size_t>(rank.index()) + peer));
      recv.push_back(send.back());
      sent += send.back();
      got += recv.back();
    }
    const Numbers mine = Of(rank.index(), sent);
    Numbers all(got);
    member.Run({.kind = Collective::kAllToAll,
                .send = mine.data(),
                .recv = all.data(),
                .type = DataType::kInt64,
                .send_counts = send,
                .recv_counts = recv});
    std::size_t at = 0;
    for (int peer = 0; peer < size(); ++peer) {
      std::size_t from = 0;  // begin of the peer's part for this rank
      for (int before = 0; before < rank.index(); ++before)
        from += count * static_cast<std::size_t>(peer + before);
      for (std::size_t i = 0; i < recv[static_cast<std::size_t>(peer)]; ++i, ++at)
        Expect(rank, all, at, Value(peer, from + i), "unequal all-to-all");
    }
  });
}

TEST_P(LocalCollectives, ManyOutstandingInTheirOrder) {
  LocalTest test(GetParam());
  ExpectSuccess(RunRanks(size(), {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    std::vector<Numbers> results(100, Numbers(500));
    std::vector<std::shared_ptr<Work>> works;
    for (auto& result : results) {
      result.assign(result.size(), rank.index() + 1);
      const Operation operation{.send = result.data(),
                                .recv = result.data(),
                                .count = result.size(),
                                .type = DataType::kInt64};
      works.push_back(rank.Take(member.group().Start({&operation, 1})));
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      rank.Require(works[i]->Wait(std::chrono::seconds(kSecondsMax)).ok(), "wait");
      rank.Require(works[i]->seq() == i + 1, "numbers from 1");
      Expect(rank, results[i], 499, size() * (size() + 1) / 2, "outstanding");
    }
  }));
}

/// "Nodes001": ranks 0 and 1 on one node, rank 2 on another.
std::string NameOfLayout(const testing::TestParamInfo<Layout>& info) {
  std::string name = "Nodes";
  for (const int node : info.param) name += std::to_string(node);
  return name;
}

INSTANTIATE_TEST_SUITE_P(OneNode, LocalCollectives,
                         testing::Values(OneNode(1), OneNode(2), OneNode(3), OneNode(5)),
                         NameOfLayout);
// Layouts: one rank on each node, equal numbers, fewer on one node, ranks of a node that do not
// follow each other.
INSTANTIATE_TEST_SUITE_P(SeveralNodes, LocalCollectives,
                         testing::Values(Layout{0, 1}, Layout{0, 0, 1, 1}, Layout{0, 0, 0, 1},
                                         Layout{0, 1, 0, 1, 1}, Layout{0, 1, 2},
                                         Layout{0, 0, 1, 2, 2}),
                         NameOfLayout);

TEST(LocalFloats, AreTheSameBitsOnEveryRankAndInEveryRun) {
  // Sums that depend on their order: 1e8, -1e8 and small ones.
  LocalTest test(4);
  ExpectSuccess(RunRanks(4, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    constexpr std::size_t kCount = 300001;
    const float parts[] = {1e8f, 3.14159f, -1e8f, 2.71828f};
    std::vector<float> mine(kCount, parts[rank.index()]), result(kCount);
    const float expected = ((parts[0] + parts[1]) + parts[2]) + parts[3];
    for (const std::size_t count : {std::size_t{5}, kCount}) {
      member.Run({.send = mine.data(), .recv = result.data(), .count = count});
      for (std::size_t at = 0; at < count; ++at)
        rank.Require(result[at] == expected, "in the order of the ranks");
    }
  }));
}

TEST(LocalFloats, SP2_OverNodesInTheOrderOfRanksThenOfNodes) {
  LocalTest test(Layout{0, 1, 0, 1});
  ExpectSuccess(RunRanks(4, {}, [&](Rank& rank) {
    LocalMember member(rank, test);
    constexpr std::size_t kCount = 300001;
    const float parts[] = {1e8f, 3.14159f, -1e8f, 2.71828f};
    std::vector<float> mine(kCount, parts[rank.index()]), result(kCount);
    const float expected = (parts[0] + parts[2]) + (parts[1] + parts[3]);
    for (const std::size_t count : {std::size_t{5}, kCount})
      for (const auto op : {ReduceOp::kSum, ReduceOp::kAvg}) {
        member.Run({.send = mine.data(), .recv = result.data(), .count = count, .op = op});
        for (std::size_t at = 0; at < count; ++at)
          rank.Require(result[at] == (op == ReduceOp::kSum ? expected : expected / 4),
                       "in the order of nodes: " + std::to_string(result[at]));
      }
  }));
}

}  // namespace
}  // namespace troupe::train
