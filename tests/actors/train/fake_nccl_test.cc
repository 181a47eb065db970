// The fake NCCL itself: each rule of its README that is broken ends the process with a sentence,
// each fault does what its name says, and each version has the functions of that version.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/actors/train/gpu_ranks.h"

namespace troupe::train {
namespace {

constexpr const char* kWithRevoke = "2.28";

/// Runs ranks on a fake; the body gets a GPU.
std::vector<RankEnd> OnFake(int size, const std::function<void(Rank&, Gpu&)>& body,
                            const Environment& environment = {},
                            const char* library = kWithRevoke) {
  Environments all;
  for (int rank = 0; rank < size; ++rank) all[rank] = environment;
  return RunRanks(size, all, [&](Rank& rank) {
    Gpu gpu(rank, library);
    body(rank, gpu);
  });
}

NcclResult AllReduce(Gpu& gpu, NcclComm comm, std::size_t count = 100,
                     NcclType type = NcclType::kFloat32) {
  const auto buffer = gpu.ToDevice(std::vector<double>(count, 1));
  return gpu.nccl().call.all_reduce(Gpu::At(buffer), Gpu::At(buffer), count, type, NcclOp::kSum,
                                    comm, gpu.stream());
}

NcclComm FormAlone(Gpu& gpu, int size, const NcclUniqueId& id, int rank) {
  NcclConfig config;
  config.blocking = 0;
  NcclComm comm = nullptr;
  gpu.Check(gpu.nccl().call.init_rank(&comm, size, id, rank, &config), "forming");
  return comm;
}

TEST(FakeNccl, N1_CallWhileInProgress) {
  const auto ends = OnFake(2, [](Rank& rank, Gpu& gpu) {
    const auto id = gpu.ShareId("id");
    if (rank.index() == 0) AllReduce(gpu, FormAlone(gpu, 2, id, 0));
  });
  ExpectViolation(ends[0], "rule N1 nothing while in progress is broken: AllReduce of rank 0 of 2");
}

TEST(FakeNccl, N2_TwoThreadsInACommunicatorOrADevice) {
  for (const bool same : {true, false}) {
    const auto ends = OnFake(
        1,
        [same](Rank& rank, Gpu& gpu) {
          const auto one = gpu.Form("id");
          NcclUniqueId id;
          gpu.Check(gpu.nccl().call.get_unique_id(&id), "id");
          const auto other = FormAlone(gpu, 1, id, 0);
          gpu.Check(gpu.Settle(other), "forming");
          std::thread([&] { gpu.nccl().call.abort(one); }).detach();  // is stuck, and stays inside
          for (NcclResult state;;) gpu.nccl().call.async_error(same ? one : other, &state);
        },
        {{"FAKE_NCCL_FAULTS", "abort=stuck"}});
    ExpectViolation(ends[0], "rule N2 one thread at a time");
    EXPECT_NE(ends[0].err.find(same ? "inside rank 0 of 1" : "of the same device"),
              std::string::npos)
        << ends[0].err;
  }
}

TEST(FakeNccl, N3_DestroyAndFinalizeAfterAPeersAbort) {
  for (const bool destroys : {true, false}) {
    const auto ends = OnFake(2, [destroys](Rank& rank, Gpu& gpu) {
      const auto comm = gpu.Form("id");
      if (rank.index() == 1) gpu.nccl().call.abort(comm);
      rank.Pass("aborted", 2);
      if (rank.index() == 0) (destroys ? gpu.nccl().call.destroy : gpu.nccl().call.finalize)(comm);
    });
    ExpectViolation(ends[0], "rule N3 only abort after a peer's end is broken");
    EXPECT_NE(ends[0].err.find("after rank 1 aborted"), std::string::npos) << ends[0].err;
  }
}

TEST(FakeNccl, N3_DestroyAfterAPeersDeathAlsoWhileItWaits) {
  const auto ends = OnFake(2, [](Rank& rank, Gpu& gpu) {
    const auto comm = gpu.Form("id");
    if (rank.index() == 1) rank.Await("destroying", 1);
    if (rank.index() == 1) kill(getpid(), SIGKILL);
    rank.board().Add("destroying");
    gpu.nccl().call.destroy(comm);
  });
  ExpectViolation(ends[0], "rank 0 of 2 after rank 1 died");
  EXPECT_EQ(ends[1].signal, SIGKILL);
}

TEST(FakeNccl, N4_N11_FinalizeAndOperationsAfterRevoke) {
  for (const bool finalizes : {true, false}) {
    const auto ends = OnFake(1, [finalizes](Rank& rank, Gpu& gpu) {
      const auto comm = gpu.Form("id");
      gpu.Check(gpu.Settled(gpu.nccl().call.revoke(comm, 0), comm), "revoke");
      finalizes ? gpu.nccl().call.finalize(comm) : AllReduce(gpu, comm);
    });
    ExpectViolation(ends[0], finalizes ? "rule N4 no finalize" : "rule N11 no operation");
  }
}

TEST(FakeNccl, N5_AbortThatForgetsASplitChild) {
  const auto ends = OnFake(1, [](Rank& rank, Gpu& gpu) {
    const auto comm = gpu.Form("id");
    NcclComm child = nullptr;
    gpu.Check(gpu.Settled(gpu.nccl().call.split(comm, 0, 0, &child, nullptr), comm), "split");
    gpu.nccl().call.abort(comm);
  });
  ExpectViolation(ends[0], "rule N5 children are aborted with their parent");
}

TEST(FakeNccl, N6_ConfigurationThatWasNotInitialised) {
  const auto ends = OnFake(1, [](Rank& rank, Gpu& gpu) {
    NcclConfig config{};
    config.magic = 0;
    NcclComm comm = nullptr;
    const auto id = gpu.ShareId("id");
    gpu.nccl().call.init_rank(&comm, 1, id, 0, &config);
  });
  ExpectViolation(ends[0], "rule N6 configurations are initialised");
}

TEST(FakeNccl, N7_RanksOnOneGpuAreAsManyAsTheVersionTakes) {
  const Environment one_gpu = {{"FAKE_CUDA_DEVICES", "1"}, {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}};
  const auto forms = [](Rank& rank, Gpu& gpu) { gpu.nccl().call.abort(gpu.Form("id")); };
  for (const auto& end : OnFake(2, forms, one_gpu, "2.28"))
    ExpectViolation(end, "rule N7 one rank on a GPU is broken: Duplicate GPU detected");
  ExpectSuccess(OnFake(2, forms, one_gpu, "2.30"));
  for (const auto& end : OnFake(3, forms, one_gpu, "2.30")) ExpectViolation(end, "Duplicate GPU");
}

TEST(FakeNccl, N8_RanksThatCallDifferentThings) {
  for (const bool counts : {true, false}) {
    const auto ends = OnFake(2, [counts](Rank& rank, Gpu& gpu) {
      const auto comm = gpu.Form("id");
      if (counts)
        AllReduce(gpu, comm, rank.index() ? 100 : 99);
      else
        AllReduce(gpu, comm, 100, rank.index() ? NcclType::kFloat32 : NcclType::kFloat64);
      gpu.Settle(comm);
      gpu.cuda().call.stream_synchronize(gpu.stream());
    });
    const bool told = ends[0].signal == SIGABRT || ends[1].signal == SIGABRT;
    EXPECT_TRUE(told);
    EXPECT_NE((ends[0].err + ends[1].err).find("rule N8 all ranks call the same"),
              std::string::npos);
    EXPECT_NE((ends[0].err + ends[1].err).find(counts ? "99 elements" : "of type 8"),
              std::string::npos);
  }
}

TEST(FakeNccl, N9_CallAfterTheEnd) {
  const auto ends = OnFake(1, [](Rank& rank, Gpu& gpu) {
    const auto comm = gpu.Form("id");
    gpu.Check(gpu.nccl().call.abort(comm), "abort");
    int size;
    gpu.nccl().call.count(comm, &size);
  });
  ExpectViolation(ends[0], "rule N9 no call after the end is broken: ncclCommCount");
}

TEST(FakeNccl, N10_RevokeBeforeItIsReady) {
  const auto ends = OnFake(2, [](Rank& rank, Gpu& gpu) {
    const auto id = gpu.ShareId("id");
    if (rank.index() == 0) gpu.nccl().call.revoke(FormAlone(gpu, 2, id, 0), 0);
  });
  ExpectViolation(ends[0], "rule N10 only what is ready is revoked");
}

TEST(FakeNccl, N12_AbortFreesWhatAPeersKernelReads) {
  const auto ends = OnFake(2,
                           [](Rank& rank, Gpu& gpu) {
                             const auto comm = gpu.Form("id");
                             if (rank.index() == 0) AllReduce(gpu, comm);
                             gpu.Settle(comm);
                             rank.Pass("entered", 2);
                             if (rank.index() == 1) gpu.Check(gpu.nccl().call.abort(comm), "abort");
                             gpu.cuda().call.stream_synchronize(gpu.stream());
                           },
                           {{"FAKE_NCCL_FAULTS", "peer=unmaps"}});
  ExpectViolation(ends[0], "rank 1 aborted while rank 0 of 2 was in an operation");
  ExpectSuccess({ends[1]});
}

TEST(FakeNccl, AFaultIsAnAsynchronousErrorAtItsPassage) {
  ExpectSuccess(OnFake(
      1,
      [](Rank& rank, Gpu& gpu) {
        const auto comm = gpu.Form("id");
        gpu.Check(gpu.Settled(AllReduce(gpu, comm), comm), "the first passes");
        gpu.Check(gpu.cuda().call.stream_synchronize(gpu.stream()), "stream");
        gpu.Check(AllReduce(gpu, comm), "the second begins");
        NcclResult state = NcclResult::kSuccess;
        while (state == NcclResult::kSuccess) gpu.nccl().call.async_error(comm, &state);
        rank.Require(state == NcclResult::kRemoteError, "the state");
        rank.Require(std::string(gpu.nccl().call.last_error(comm)).find("closed by remote peer") !=
                         std::string::npos,
                     "the last error");
        int size;
        rank.Require(gpu.nccl().call.count(comm, &size) == NcclResult::kRemoteError,
                     "later calls return it");
        gpu.Check(gpu.nccl().call.abort(comm), "abort");
      },
      {{"FAKE_NCCL_FAULTS", "operation=error@2"}}));
}

TEST(FakeNccl, APeersDeathIsSilentOrARemoteError) {
  const auto ends =
      OnFake(2,
             [](Rank& rank, Gpu& gpu) {
               const auto comm = gpu.Form("id");
               if (rank.index() == 1) {
                 rank.Await("entered", 1);
                 kill(getpid(), SIGKILL);
               }
               gpu.Check(gpu.Settled(AllReduce(gpu, comm), comm), "all-reduce");
               rank.board().Add("entered");
               NcclResult state = NcclResult::kSuccess;
               while (state == NcclResult::kSuccess) gpu.nccl().call.async_error(comm, &state);
               rank.Require(state == NcclResult::kRemoteError, "the state");
               rank.Require(gpu.cuda().call.stream_query(gpu.stream()) == CudaResult::kNotReady,
                            "the kernel spins until it is aborted");
               gpu.Check(gpu.nccl().call.abort(comm), "abort");
               gpu.Check(gpu.cuda().call.stream_synchronize(gpu.stream()), "stream");
             },
             {{"FAKE_NCCL_FAULTS", "peer=error"}});
  ExpectSuccess({ends[0]});
}

TEST(FakeNccl, FaultsThatCannotBeReadEndTheProcess) {
  for (const auto& [fault, words] :
       {std::pair{"operation=burn", "PLACE=ACTION"}, std::pair{"init=hang@x", "passage"},
        std::pair{"abort=slow:much", "milliseconds"}}) {
    const auto ends =
        OnFake(1, [](Rank& rank, Gpu& gpu) { gpu.Form("id"); }, {{"FAKE_NCCL_FAULTS", fault}});
    EXPECT_EQ(ends[0].exit_code, 2);
    EXPECT_NE(ends[0].err.find(words), std::string::npos) << ends[0].err;
  }
}

TEST(FakeNccl, EachVersionHasItsFunctions) {
  struct Version {
    const char* name;
    int code;
    bool revoke, shrink, grow, multi_rank;
  };
  for (const Version& each : {Version{"2.26", 22605, false, false, false, false},
                              Version{"2.28", 22809, true, true, false, false},
                              Version{"2.30", 23007, true, true, true, true}}) {
    ExpectSuccess(OnFake(
        1,
        [&](Rank& rank, Gpu& gpu) {
          const auto& features = gpu.nccl().features();
          rank.Require(gpu.nccl().version() == each.code, "version");
          rank.Require(features.revoke == each.revoke && features.shrink == each.shrink &&
                           features.grow == each.grow && features.multi_rank == each.multi_rank &&
                           features.scalable,
                       "features");
        },
        {}, each.name));
  }
}

}  // namespace
}  // namespace troupe::train
