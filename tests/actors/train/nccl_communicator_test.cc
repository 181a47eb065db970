// Behaviour of NcclCommunicator alone: every collective, errors of arguments and of the library,
// waits that are over, stops at each place where a caller may wait, and the orderly end.
#include "actors/train/nccl_communicator.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/async/real_clock.h"
#include "tests/actors/train/gpu_ranks.h"

namespace troupe::train {
namespace {

constexpr auto kMinute = std::chrono::seconds(kSecondsMax);

/// A rank with a supervisor and one group of all ranks, which no slowness of the machine ends.
struct Member {
  Member(Rank& rank, const std::string& library)
      : gpu(rank, library), supervisor(async::RealClock::Shared(), EndThisProcess) {}

  std::shared_ptr<NcclCommunicator> Form(Rank& rank, GroupHooks hooks = {}) {
    GroupSpec spec{"dp", 1, rank.index(), rank.size(), gpu.device(), {gpu.ShareId("id")}, {}};
    spec.times.call_max = kMinute;
    spec.times.survivors_max = std::chrono::milliseconds(1);
    auto group = NcclCommunicator::Form(gpu.cuda(), gpu.nccl(), supervisor, spec, std::move(hooks));
    const Status status = group->AwaitReady();
    rank.Require(status.ok(), MessageOf(status));
    return group;
  }

  Gpu gpu;
  Supervisor supervisor;
};

std::vector<RankEnd> OnFake(int size, const std::function<void(Rank&, Member&)>& body,
                            const Environments& environments = {},
                            const std::string& library = "2.28") {
  return RunRanks(size, environments, [&](Rank& rank) {
    Member member(rank, library);
    body(rank, member);
  });
}

void Expect(Rank& rank, const Status& status, ErrorCode code, const std::string& words) {
  rank.Require(ErrorCodeOf(status) == code, "another code: " + MessageOf(status));
  rank.Require(MessageOf(status).find(words) != std::string::npos,
               "no '" + words + "' in: " + MessageOf(status));
}

TEST(NcclCommunicator, EveryCollectiveAndTheOrderlyEnd) {
  for (const std::string library : {"2.26", "2.30"})
    ExpectSuccess(OnFake(
        3,
        [](Rank& rank, Member& member) {
          const auto group = member.Form(rank);
          const std::size_t count = 12;
          std::vector<float> values;
          for (std::size_t i = 0; i < 3 * count; ++i)
            values.push_back(static_cast<float>(rank.index() * 3 + static_cast<int>(i / count)));
          const auto from = member.gpu.ToDevice(values);
          const auto to = member.gpu.Allocate(3 * count * sizeof(float));
          const auto run = [&](Collective kind, int root = 0) {
            const Operation operation{.kind = kind,
                                      .send = Gpu::At(from),
                                      .recv = Gpu::At(to),
                                      .count = count,
                                      .root = root};
            const auto work = rank.Take(group->Start({&operation, 1}));
            const Status status = work->Wait(kMinute);
            rank.Require(status.ok() && work->Done(), MessageOf(status));
            return member.gpu.ToHost<float>(to, 3 * count);
          };
          const auto mine = static_cast<float>(rank.index());
          rank.Require(run(Collective::kAllReduce)[count - 1] == 0 + 3 + 6, "all-reduce");
          rank.Require(run(Collective::kBroadcast, 2)[0] == 6, "broadcast");
          rank.Require(run(Collective::kReduce, 1)[0] == (rank.index() == 1 ? 9 : 6), "reduce");
          rank.Require(run(Collective::kAllGather)[2 * count] == 6, "all-gather");
          rank.Require(run(Collective::kReduceScatter)[0] == 9 + 3 * mine, "reduce-scatter");
          rank.Require(run(Collective::kAllToAll)[2 * count] == 6 + mine, "all-to-all");
          const int next = (rank.index() + 1) % 3, before = (rank.index() + 2) % 3;
          const Operation ring[] = {
              {.kind = Collective::kSend, .send = Gpu::At(from), .count = count, .root = next},
              {.kind = Collective::kRecv, .recv = Gpu::At(to), .count = count, .root = before}};
          const Status status = rank.Take(group->Start(ring))->Wait(kMinute);
          rank.Require(status.ok(), MessageOf(status));
          rank.Require(member.gpu.ToHost<float>(to, 1)[0] == static_cast<float>(3 * before),
                       "ring");
          rank.Require(group->seq() == 7 && group->progress().finished == 7, "numbers");
          rank.Require(group->Release().ok(), "release");
          const Operation late{.send = Gpu::At(from), .recv = Gpu::At(to), .count = 1};
          Expect(rank, group->Start({&late, 1}).status(), ErrorCode::kFenced, "it was released");
        },
        {}, library));
}

TEST(NcclCommunicator, AWrongArgumentIsTheCallersAndStopsNothing) {
  ExpectSuccess(OnFake(2, [](Rank& rank, Member& member) {
    const auto group = member.Form(rank);
    const auto buffer = member.gpu.Allocate(64);
    const Operation wrong{.kind = Collective::kBroadcast,
                          .send = Gpu::At(buffer),
                          .recv = Gpu::At(buffer),
                          .count = 4,
                          .root = 9};
    const auto status = group->Start({&wrong, 1}).status();
    Expect(rank, status, ErrorCode::kInvalid, "group dp, epoch 1, rank");
    Expect(rank, status, ErrorCode::kInvalid, "starting broadcast: NCCL 2.28.9: invalid argument");
    const Operation right{.send = Gpu::At(buffer), .recv = Gpu::At(buffer), .count = 4};
    rank.Require(rank.Take(group->Start({&right, 1}))->Wait(kMinute).ok(), "it goes on");
    rank.Require(group->Release().ok(), "release");
  }));
}

TEST(NcclCommunicator, AWaitThatIsOverNamesItsLengthAndStopsNothing) {
  ExpectSuccess(OnFake(2, [](Rank& rank, Member& member) {
    const auto group = member.Form(rank);
    const auto buffer = member.gpu.Allocate(64);
    const Operation operation{.send = Gpu::At(buffer), .recv = Gpu::At(buffer), .count = 4};
    if (rank.index() == 1) rank.Await("over", 1);
    const auto work = rank.Take(group->Start({&operation, 1}));
    if (rank.index() == 0) {
      Expect(rank, work->Wait(std::chrono::milliseconds(20)), ErrorCode::kTimeout,
             "operation 1 was not done after 0.02");
      rank.board().Add("over");
    }
    rank.Require(work->Wait(kMinute).ok(), "it ends when the other comes");
    rank.Require(group->Release().ok(), "release");
  }));
}

TEST(NcclCommunicator, AnErrorOfTheLibraryStopsTheGroupWithItsWords) {
  // The first operation connects, and its caller may see the error itself; that of the second is
  // seen by the supervisor. Either way all get the same.
  for (const std::string passage : {"1", "2"})
    ExpectSuccess(OnFake(1,
                         [](Rank& rank, Member& member) {
                           const auto group = member.Form(rank);
                           const auto buffer = member.gpu.Allocate(64);
                           const Operation operation{
                               .send = Gpu::At(buffer), .recv = Gpu::At(buffer), .count = 4};
                           Status status;
                           while (status.ok()) {
                             const auto work = group->Start({&operation, 1});
                             status = work.ok() ? (*work)->Wait(kMinute) : work.status();
                           }
                           Expect(rank, status, ErrorCode::kFenced, "closed by remote peer");
                           Expect(rank, group->Start({&operation, 1}).status(), ErrorCode::kFenced,
                                  "closed by remote peer");
                           group->AwaitReleased();
                         },
                         {{0, {{"FAKE_NCCL_FAULTS", "operation=error@" + passage}}}}));
}

TEST(NcclCommunicator, AKernelsErrorIsNoSuccessAndStopsTheGroup) {
  ExpectSuccess(OnFake(
      1,
      [](Rank& rank, Member& member) {
        const auto group = member.Form(rank);
        const auto buffer = member.gpu.Allocate(64);
        const Operation operation{.send = Gpu::At(buffer), .recv = Gpu::At(buffer), .count = 4};
        const auto work = rank.Take(group->Start({&operation, 1}));
        Expect(rank, work->Wait(kMinute), ErrorCode::kFenced, "operation 1: CUDA error 700");
        group->AwaitReleased();
      },
      {{0, {{"FAKE_CUDA_KERNEL_ERROR", "700"}}}}));
}

TEST(NcclCommunicator, AStopFreesWhoeverWaitsForTheConnection) {
  const auto body = [](Rank& rank, Member& member) {
    const auto buffer = member.gpu.Allocate(64);
    const Operation operation{.send = Gpu::At(buffer), .recv = Gpu::At(buffer), .count = 4};
    for (int round = 0; round < 50; ++round) {  // before, while and after it begins to wait
      const auto group = member.Form(rank);
      std::thread stops([&] { group->Stop("asked by the test"); });
      Expect(rank, group->Start({&operation, 1}).status(), ErrorCode::kFenced, "asked by the test");
      stops.join();
      group->AwaitReleased();
    }
  };
  ExpectSuccess(OnFake(1, body, {{0, {{"FAKE_NCCL_FAULTS", "connect=hang"}}}}));
}

TEST(NcclCommunicator, AStopFreesWhoeverFormsAndWhoeverReleases) {
  ExpectSuccess(OnFake(2, [](Rank& rank, Member& member) {
    const auto group = member.Form(rank);
    if (rank.index() == 0) {
      std::thread stops([&] {
        rank.Await("releasing", 1);
        group->Stop("the other does not come");
      });
      rank.board().Add("releasing");
      Expect(rank, group->Release(), ErrorCode::kFenced, "the other does not come");
      stops.join();
      GroupSpec alone{"tp", 1, 0, 2, 0, {}, {}};
      alone.ids.emplace_back();
      member.gpu.Check(member.gpu.nccl().call.get_unique_id(&alone.ids[0]), "id");
      const auto forming =
          NcclCommunicator::Form(member.gpu.cuda(), member.gpu.nccl(), member.supervisor, alone);
      forming->Stop("nobody else comes");
      Expect(rank, forming->AwaitReady(), ErrorCode::kFenced, "nobody else comes");
    }
    rank.Pass("end", 2);
    group->Stop("the end of the test");
  }));
}

TEST(NcclCommunicator, ALibraryThatTakesOneIdRefusesSeveral) {
  ExpectSuccess(OnFake(1, [](Rank& rank, Member& member) {
    GroupSpec none{"dp", 1, 0, 1, 0, {}, {}};
    const auto group =
        NcclCommunicator::Form(member.gpu.cuda(), member.gpu.nccl(), member.supervisor, none);
    Expect(rank, group->AwaitReady(), ErrorCode::kFenced, "by 0 ids");
  }));
}

}  // namespace
}  // namespace troupe::train
