// A for the fake NCCL and the real one: real processes form communicators, compute with
// every type and operation, are refused what NCCL refuses, and stop one another. With
// TROUPE_NCCL_LIB it runs against that library on the GPUs that are there; where the two differ,
// the fake is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/actors/train/gpu_ranks.h"

namespace troupe::train {
namespace {

class NcclConformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ranks_ = RanksFor(GetParam());
    if (ranks_ < 2)
      GTEST_SKIP() << "needs two GPUs, or NCCL 2.30 with NCCL_MULTI_RANK_GPU_ENABLE=1";
  }
  /// Rules are punished as the real library does.
  Environments AsReal() const {
    Environments all;
    for (int rank = 0; rank < ranks_; ++rank) all[rank] = {{"FAKE_NCCL_ON_VIOLATION", "as-real"}};
    return all;
  }
  void OnRanks(const std::function<void(Rank&, Gpu&)>& body,
               const Environments& environments = {}) {
    const std::string library = GetParam();
    ExpectSuccess(RunRanks(ranks_, environments, [&](Rank& rank) {
      Gpu gpu(rank, library);
      body(rank, gpu);
    }));
  }
  int ranks_ = 0;
};

/// All ranks contribute rank+1 to `count` elements; the first result.
float SumOfRanks(Rank& rank, Gpu& gpu, NcclComm comm, int size, int mine, std::size_t count) {
  const auto buffer = gpu.ToDevice(std::vector<float>(count, static_cast<float>(mine + 1)));
  gpu.Check(
      gpu.Settled(gpu.nccl().call.all_reduce(Gpu::At(buffer), Gpu::At(buffer), count,
                                             NcclType::kFloat32, NcclOp::kSum, comm, gpu.stream()),
                  comm),
      "all-reduce");
  const auto values = gpu.ToHost<float>(buffer, count);
  const auto expected = static_cast<float>(size * (size + 1) / 2);
  rank.Require(values.front() == expected && values.back() == expected,
               "all-reduce gave " + std::to_string(values.front()) + " and " +
                   std::to_string(values.back()) + ", not " + std::to_string(expected));
  return values.front();
}

template <class T>
void ReduceEveryWay(Rank& rank, Gpu& gpu, NcclComm comm, NcclType type) {
  for (const auto op : {NcclOp::kSum, NcclOp::kProd, NcclOp::kMax, NcclOp::kMin, NcclOp::kAvg}) {
    const std::size_t count = 1003;
    std::vector<T> mine(count);
    for (std::size_t i = 0; i < count; ++i)
      mine[i] = static_cast<T>(rank.index() + 1 + static_cast<int>(i % 3));
    const auto from = gpu.ToDevice(mine);
    const auto to = gpu.Allocate(count * sizeof(T));
    gpu.Check(gpu.Settled(gpu.nccl().call.all_reduce(Gpu::At(from), Gpu::At(to), count, type, op,
                                                     comm, gpu.stream()),
                          comm),
              "all-reduce");
    const auto values = gpu.ToHost<T>(to, count);
    for (std::size_t i = 0; i < count; ++i) {
      const int least = 1 + static_cast<int>(i % 3), most = least + rank.size() - 1;
      double expected = 0;
      if (op == NcclOp::kMax) expected = most;
      if (op == NcclOp::kMin) expected = least;
      if (op == NcclOp::kProd) expected = 1;
      for (int value = least; value <= most; ++value) {
        if (op == NcclOp::kProd) expected *= value;
        if (op == NcclOp::kSum || op == NcclOp::kAvg) expected += value;
      }
      if (op == NcclOp::kAvg) expected /= rank.size();
      if (std::is_integral_v<T>)
        expected = static_cast<double>(static_cast<T>(static_cast<std::int64_t>(expected)));
      rank.Require(std::abs(static_cast<double>(values[i]) - expected) < 1e-6,
                   "type " + std::to_string(static_cast<int>(type)) + " op " +
                       std::to_string(static_cast<int>(op)) + ": " + std::to_string(values[i]) +
                       ", not " + std::to_string(expected));
    }
  }
}

TEST_P(NcclConformance, CommunicatorsSayWhoIsWho) {
  OnRanks([](Rank& rank, Gpu& gpu) {
    const auto comm = gpu.Form("id");
    int size = 0, index = -1, device = -1;
    gpu.Check(gpu.nccl().call.count(comm, &size), "count");
    gpu.Check(gpu.nccl().call.user_rank(comm, &index), "rank");
    gpu.Check(gpu.nccl().call.cuda_device(comm, &device), "device");
    rank.Require(size == rank.size() && index == rank.index() && device == gpu.device(),
                 "size, rank or device");
    gpu.Check(gpu.nccl().call.finalize(comm), "finalize");
    gpu.Check(gpu.Settle(comm), "finalize");
    gpu.Check(gpu.nccl().call.destroy(comm), "destroy");
  });
}

TEST_P(NcclConformance, ReducesEveryTypeWithEveryOperation) {
  OnRanks([](Rank& rank, Gpu& gpu) {
    const auto comm = gpu.Form("id");
    ReduceEveryWay<std::int8_t>(rank, gpu, comm, NcclType::kInt8);
    ReduceEveryWay<std::uint8_t>(rank, gpu, comm, NcclType::kUint8);
    ReduceEveryWay<std::int32_t>(rank, gpu, comm, NcclType::kInt32);
    ReduceEveryWay<std::uint32_t>(rank, gpu, comm, NcclType::kUint32);
    ReduceEveryWay<std::int64_t>(rank, gpu, comm, NcclType::kInt64);
    ReduceEveryWay<std::uint64_t>(rank, gpu, comm, NcclType::kUint64);
    ReduceEveryWay<float>(rank, gpu, comm, NcclType::kFloat32);
    ReduceEveryWay<double>(rank, gpu, comm, NcclType::kFloat64);
    SumOfRanks(rank, gpu, comm, rank.size(), rank.index(), 300'001);  // more than one piece
    gpu.Check(gpu.nccl().call.destroy(comm), "destroy");
  });
}

TEST_P(NcclConformance, ReducesHalfFloats) {
  // 1.5 + 2 is exact in both; bits are compared.
  OnRanks([](Rank& rank, Gpu& gpu) {
    const auto comm = gpu.Form("id");
    struct Case {
      NcclType type;
      std::uint16_t one_and_a_half, two, sums[5];
    };
    // Sums of ranks that bring 1.5, 2, 2, 2.
    for (const Case& each :
         {Case{NcclType::kFloat16, 0x3e00, 0x4000, {0, 0, 0x4300, 0x4580, 0x4780}},
          Case{NcclType::kBfloat16, 0x3fc0, 0x4000, {0, 0, 0x4060, 0x40b0, 0x40f0}}}) {
      const auto buffer = gpu.ToDevice(
          std::vector<std::uint16_t>(77, rank.index() == 0 ? each.one_and_a_half : each.two));
      gpu.Check(gpu.Settled(gpu.nccl().call.all_reduce(Gpu::At(buffer), Gpu::At(buffer), 77,
                                                       each.type, NcclOp::kSum, comm, gpu.stream()),
                            comm),
                "all-reduce");
      const auto values = gpu.ToHost<std::uint16_t>(buffer, 77);
      rank.Require(values[76] == each.sums[rank.size()], "bits " + std::to_string(values[76]));
    }
    gpu.Check(gpu.nccl().call.destroy(comm), "destroy");
  });
}

TEST_P(NcclConformance, MovesDataBetweenAllRanks) {
  OnRanks([](Rank& rank, Gpu& gpu) {
    const auto comm = gpu.Form("id");
    const auto& call = gpu.nccl().call;
    const int size = rank.size(), mine = rank.index();
    const std::size_t count = 70'001;  // ints: more than one piece, and no multiple
    const auto at = [&](CudaPointer from, std::size_t block) { return from + block * count * 4; };
    const auto value = [](int from, int to) { return from * 100 + to; };
    const auto done = [&](NcclResult result) {
      gpu.Check(gpu.Settled(result, comm), "collective");
    };
    const auto expect = [&](CudaPointer from, int expected, const std::string& what) {
      const auto values = gpu.ToHost<int>(from, count);
      rank.Require(
          values.front() == expected && values.back() == expected,
          what + ": " + std::to_string(values.front()) + ", not " + std::to_string(expected));
    };
    const auto one = gpu.ToDevice(std::vector<int>(count, value(mine, 0)));
    std::vector<int> blocks;
    for (int to = 0; to < size; ++to) blocks.insert(blocks.end(), count, value(mine, to));
    const auto many = gpu.ToDevice(blocks);
    const auto out = gpu.Allocate(count * 4 * static_cast<std::size_t>(size));

    done(
        call.broadcast(Gpu::At(one), Gpu::At(out), count, NcclType::kInt32, 1, comm, gpu.stream()));
    expect(out, value(1, 0), "broadcast");
    done(call.reduce(Gpu::At(one), Gpu::At(out), count, NcclType::kInt32, NcclOp::kMax, 1, comm,
                     gpu.stream()));
    if (mine == 1) expect(out, value(size - 1, 0), "reduce");
    done(call.all_gather(Gpu::At(one), Gpu::At(out), count, NcclType::kInt32, comm, gpu.stream()));
    for (int from = 0; from < size; ++from)
      expect(at(out, static_cast<std::size_t>(from)), value(from, 0), "all-gather");
    done(call.reduce_scatter(Gpu::At(many), Gpu::At(out), count, NcclType::kInt32, NcclOp::kMin,
                             comm, gpu.stream()));
    expect(out, value(0, mine), "reduce-scatter");
    done(call.group_start());
    for (int peer = 0; peer < size; ++peer) {
      const auto block = static_cast<std::size_t>(peer);
      gpu.Check(
          call.send(Gpu::At(at(many, block)), count, NcclType::kInt32, peer, comm, gpu.stream()),
          "send");
      gpu.Check(
          call.recv(Gpu::At(at(out, block)), count, NcclType::kInt32, peer, comm, gpu.stream()),
          "receive");
    }
    done(call.group_end());
    for (int from = 0; from < size; ++from)
      expect(at(out, static_cast<std::size_t>(from)), value(from, mine), "sends and receives");
    if (gpu.nccl().features().all_to_all) {
      done(call.broadcast(Gpu::At(one), Gpu::At(out), count, NcclType::kInt32, 0, comm,
                          gpu.stream()));
      done(call.all_to_all(Gpu::At(many), Gpu::At(out), count, NcclType::kInt32, comm,
                           gpu.stream()));
      for (int from = 0; from < size; ++from)
        expect(at(out, static_cast<std::size_t>(from)), value(from, mine), "all-to-all");
    }
    gpu.Check(call.destroy(comm), "destroy");
  });
}

TEST_P(NcclConformance, WrongArgumentsAreRefusedAndSaid) {
  OnRanks(
      [](Rank& rank, Gpu& gpu) {
        const auto comm = gpu.Form("id");
        const auto& call = gpu.nccl().call;
        const auto buffer = gpu.Allocate(64);
        rank.Require(
            call.broadcast(Gpu::At(buffer), Gpu::At(buffer), 4, NcclType::kFloat32, rank.size(),
                           comm, gpu.stream()) == NcclResult::kInvalidArgument,
            "a root that is no rank");
        rank.Require(std::string(call.last_error(nullptr)).find("root") != std::string::npos,
                     std::string("the last error: ") + call.last_error(nullptr));
        rank.Require(
            call.all_reduce(Gpu::At(buffer), Gpu::At(buffer), 4, NcclType(99), NcclOp::kSum, comm,
                            gpu.stream()) == NcclResult::kInvalidArgument,
            "a type that is none");
        NcclConfig config;
        config.magic = 1;
        NcclComm other = nullptr;
        rank.Require(
            call.init_rank(&other, 1, NcclUniqueId{}, 0, &config) == NcclResult::kInvalidArgument,
            "a configuration that was not initialised");
        gpu.Check(call.destroy(comm), "destroy");
      },
      AsReal());
}

TEST_P(NcclConformance, NothingButAbortWhileInitialisationIsInProgress) {
  OnRanks(
      [](Rank& rank, Gpu& gpu) {
        const auto id = gpu.ShareId("id");
        if (rank.index() == 0) {  // alone: it cannot end by itself
          NcclConfig config;
          config.blocking = 0;
          NcclComm comm = nullptr;
          const auto& call = gpu.nccl().call;
          gpu.Check(call.init_rank(&comm, rank.size(), id, 0, &config), "forming");
          int size = 0;
          rank.Require(call.count(comm, &size) == NcclResult::kInvalidArgument,
                       "count in progress");
          NcclResult state;
          gpu.Check(call.async_error(comm, &state), "state");
          rank.Require(state == NcclResult::kInProgress, "it is in progress");
          gpu.Check(call.abort(comm), "abort in initialisation");
        }
        rank.Pass("end", rank.size());
      },
      AsReal());
}

TEST_P(NcclConformance, AbortEndsAnOperationThatARankNeverEnters) {
  OnRanks([](Rank& rank, Gpu& gpu) {
    const auto comm = gpu.Form("id");
    SumOfRanks(rank, gpu, comm, rank.size(), rank.index(), 100);
    if (rank.index() != 1) {
      const auto buffer = gpu.ToDevice(std::vector<float>(1000, 1));
      gpu.Check(gpu.nccl().call.all_reduce(Gpu::At(buffer), Gpu::At(buffer), 1000,
                                           NcclType::kFloat32, NcclOp::kSum, comm, gpu.stream()),
                "all-reduce");
      rank.Require(gpu.cuda().call.stream_query(gpu.stream()) == CudaResult::kNotReady,
                   "it waits for the rank that does not come");
    }
    rank.Pass("entered", rank.size());
    gpu.Check(gpu.nccl().call.abort(comm), "abort");
    gpu.Check(gpu.cuda().call.stream_synchronize(gpu.stream()), "the stream is free");
    rank.Pass("end", rank.size());
  });
}

TEST_P(NcclConformance, SplitChildrenComputeAndAreAbortedWithTheirParent) {
  OnRanks([](Rank& rank, Gpu& gpu) {
    const auto comm = gpu.Form("id");
    const auto& call = gpu.nccl().call;
    NcclComm child = nullptr;
    const int color = rank.index() % 2, members = (rank.size() + 1 - color) / 2;
    gpu.Check(gpu.Settled(call.split(comm, color, -rank.index(), &child, nullptr), comm), "split");
    gpu.Check(gpu.Settle(child), "split");
    int index = -1;
    gpu.Check(call.user_rank(child, &index), "rank");
    rank.Require(index == members - 1 - rank.index() / 2, "ranks are ordered by their keys");
    SumOfRanks(rank, gpu, child, members, index, 5000);
    NcclComm none = nullptr;
    gpu.Check(gpu.Settled(call.split(comm, rank.index() == 0 ? kNcclNoColor : 3, 0, &none, nullptr),
                          comm),
              "split");
    rank.Require((rank.index() == 0) == (none == nullptr), "no colour, no communicator");
    rank.Pass("computed", rank.size());
    gpu.Check(call.group_start(), "group");
    gpu.Check(call.abort(child), "abort");
    if (none) gpu.Check(call.abort(none), "abort");
    gpu.Check(call.abort(comm), "abort");
    gpu.Check(call.group_end(), "abort");
  });
}

TEST_P(NcclConformance, SeveralIdsFormOneCommunicator) {
  OnRanks([](Rank& rank, Gpu& gpu) {
    if (!gpu.nccl().features().scalable) return;
    gpu.ShareId("first", 0);
    gpu.ShareId("second", 1);
    NcclUniqueId ids[2] = {rank.board().ids[0], rank.board().ids[1]};
    NcclConfig config;
    config.blocking = 0;
    NcclComm comm = nullptr;
    gpu.Check(gpu.nccl().call.init_scalable(&comm, rank.size(), rank.index(), 2, ids, &config),
              "forming");
    gpu.Check(gpu.Settle(comm), "forming");
    SumOfRanks(rank, gpu, comm, rank.size(), rank.index(), 100);
    gpu.Check(gpu.nccl().call.destroy(comm), "destroy");
  });
}

TEST_P(NcclConformance, RevokeEndsOperationsAndKeepsTheCommunicator) {
  OnRanks(
      [](Rank& rank, Gpu& gpu) {
        if (!gpu.nccl().features().revoke) return;
        const auto comm = gpu.Form("id");
        const auto& call = gpu.nccl().call;
        SumOfRanks(rank, gpu, comm, rank.size(), rank.index(), 100);
        const auto buffer = gpu.ToDevice(std::vector<float>(1000, 1));
        const auto reduce = [&] {
          return call.all_reduce(Gpu::At(buffer), Gpu::At(buffer), 1000, NcclType::kFloat32,
                                 NcclOp::kSum, comm, gpu.stream());
        };
        if (rank.index() != 1) gpu.Check(reduce(), "all-reduce");
        rank.Pass("entered", rank.size());
        gpu.Check(gpu.Settled(call.revoke(comm, 0), comm), "revoke");
        gpu.Check(gpu.cuda().call.stream_synchronize(gpu.stream()), "the stream is free");
        rank.Require(reduce() == NcclResult::kInvalidUsage, "nothing runs on what was revoked");
        rank.Pass("revoked", rank.size());
        gpu.Check(call.abort(comm), "abort");
      },
      AsReal());
}

TEST_P(NcclConformance, ShrinkLeavesARankOut) {
  if (GetParam() == kReal && ranks_ < 3) GTEST_SKIP() << "needs three ranks";
  OnRanks([](Rank& rank, Gpu& gpu) {
    if (!gpu.nccl().features().shrink) return;
    const auto comm = gpu.Form("id");
    SumOfRanks(rank, gpu, comm, rank.size(), rank.index(), 100);
    int excluded[] = {1};
    if (rank.index() != 1) {
      NcclComm child = nullptr;
      gpu.Check(
          gpu.Settled(
              gpu.nccl().call.shrink(comm, excluded, 1, &child, nullptr, kNcclShrinkDefault), comm),
          "shrink");
      gpu.Check(gpu.Settle(child), "shrink");
      SumOfRanks(rank, gpu, child, rank.size() - 1, rank.index() - (rank.index() > 1), 1000);
      rank.Pass("shrunken", rank.size() - 1);
      gpu.Check(gpu.nccl().call.group_start(), "group");
      gpu.Check(gpu.nccl().call.abort(child), "abort");
      gpu.Check(gpu.nccl().call.abort(comm), "abort");
      gpu.Check(gpu.nccl().call.group_end(), "abort");
    } else {
      rank.Await("shrunken", rank.size() - 1);
      gpu.Check(gpu.nccl().call.abort(comm), "abort");
    }
  });
}

TEST_P(NcclConformance, GrowTakesARankIn) {
  if (GetParam() == kReal && ranks_ < 3) GTEST_SKIP() << "needs three ranks";
  OnRanks([](Rank& rank, Gpu& gpu) {
    if (!gpu.nccl().features().grow) return;
    const auto& call = gpu.nccl().call;
    const int before = rank.size() - 1;
    NcclComm comm = nullptr, grown = nullptr;
    NcclConfig config;
    config.blocking = 0;
    const auto id = gpu.ShareId("id", 0);
    if (rank.index() < before) {
      gpu.Check(call.init_rank(&comm, before, id, rank.index(), &config), "forming");
      gpu.Check(gpu.Settle(comm), "forming");
    }
    auto& grow_id = rank.board().ids[1];
    if (rank.index() == 0) {
      gpu.Check(call.comm_unique_id(comm, &grow_id), "making an id");
      rank.board().Add("grow id");
    }
    rank.Await("grow id", 1);
    if (rank.index() < before) {
      gpu.Check(gpu.Settled(call.grow(comm, rank.size(), rank.index() == 0 ? &grow_id : nullptr, -1,
                                      &grown, nullptr),
                            comm),
                "grow");
    } else {
      gpu.Check(call.grow(nullptr, rank.size(), &grow_id, before, &grown, &config), "grow");
    }
    gpu.Check(gpu.Settle(grown), "grow");
    SumOfRanks(rank, gpu, grown, rank.size(), rank.index(), 1000);
    rank.Pass("grown", rank.size());
    gpu.Check(call.group_start(), "group");
    gpu.Check(call.abort(grown), "abort");
    if (comm) gpu.Check(call.abort(comm), "abort");
    gpu.Check(call.group_end(), "abort");
  });
}

TEST_P(NcclConformance, InitialisationDoesNotOutliveTheProcessOfItsId) {
  // The listener behind an id dies with the process that made it: whoever waits there is told, or
  // can be aborted; nobody is formed.
  const std::string library = GetParam();
  ExpectSuccess(RunRanks(ranks_, {}, [&](Rank& rank) {
    Gpu gpu(rank, library);
    const auto id = gpu.ShareId("id");
    if (rank.index() == 0) return;
    NcclConfig config;
    config.blocking = 0;
    NcclComm comm = nullptr;
    const auto started = gpu.nccl().call.init_rank(&comm, rank.size(), id, rank.index(), &config);
    NcclResult state = started;
    if (comm && started == NcclResult::kInProgress)
      gpu.Check(gpu.nccl().call.async_error(comm, &state), "state");
    rank.Require(state != NcclResult::kSuccess, "a group was formed without its first rank");
    if (comm) gpu.Check(gpu.nccl().call.abort(comm), "abort");
  }));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Libraries, NcclConformance, testing::ValuesIn(LibrariesToTest()),
                         NameOfLibrary);

}  // namespace troupe::train
