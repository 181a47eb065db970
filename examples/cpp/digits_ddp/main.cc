// Trains a classifier of handwritten digits on four actors in C++, on two nodes if there are two:
//   digits_ddp digits.csv /tmp/digits.pt [--kill]        (the checkpoint goes on where it is there)
// With --kill one of them is killed on the way: another takes its place, the group is formed anew,
// and all go on from the checkpoint. digits.csv: zcat .../sklearn/datasets/data/digits.csv.gz
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "trainer.h"

namespace {

using namespace std::chrono_literals;
constexpr int kRanks = 4;
constexpr std::int64_t kSeed = 3;  // all ranks begin alike
constexpr std::int64_t kEpochs = 10;

/// Four places on two nodes, or on one where no two have room.
troupe::PlacementGroup Places() {
  const std::vector<troupe::ResourceAmounts> halves{{{"CPU", 2}}, {{"CPU", 2}}};
  try {
    return troupe::CreatePlacementGroup(halves, {.strategy = "STRICT_SPREAD"});
  } catch (const troupe::PlacementError&) {
    return troupe::CreatePlacementGroup(halves, {.strategy = "STRICT_PACK"});
  }
}

class Training {
 public:
  Training(std::string data, std::string checkpoint)
      : data_(std::move(data)), checkpoint_(std::move(checkpoint)), places_(Places()) {
    places_.Ready(60s);
    for (int rank = 0; rank < kRanks; ++rank) ranks_.push_back(Start(rank));
  }

  /// All ranks in a new group, from the checkpoint: the epoch that is next.
  std::int64_t Join() {
    for (int rank = 0; rank < kRanks; ++rank) {
      try {
        ranks_[rank].Call<&Trainer::Pid>().Get(60s);
      } catch (const troupe::ActorDiedError& died) {
        std::cout << "rank " << rank << " is replaced: " << died.what() << "\n";
        ranks_[rank] = Start(rank);
      }
    }
    troupe::train::FormGroup("digits", {ranks_.begin(), ranks_.end()}, 120s);
    std::vector<troupe::Ref<std::int64_t>> joined;
    for (const auto& each : ranks_) joined.push_back(each.Call<&Trainer::Join>(checkpoint_));
    return troupe::Get(joined, 120s)[0] + 1;
  }

  double Epoch(std::int64_t epoch, bool kill) {
    std::vector<troupe::Ref<double>> losses;
    const std::int64_t pid = kill ? ranks_[2].Call<&Trainer::Pid>().Get(60s) : 0;
    for (const auto& each : ranks_)
      losses.push_back(each.Call<&Trainer::Epoch>(epoch, checkpoint_));
    if (kill) ::kill(static_cast<pid_t>(pid), SIGKILL);
    double sum = 0;
    for (const double loss : troupe::Get(losses, 300s)) sum += loss;
    return sum / kRanks;
  }

  double Accuracy() {
    std::vector<troupe::Ref<double>> shares;
    for (const auto& each : ranks_) shares.push_back(each.Call<&Trainer::Accuracy>());
    return troupe::Get(shares, 120s)[0];
  }

 private:
  troupe::Actor<Trainer> Start(int rank) const {
    return troupe::Create<Trainer>({.num_cpus = 1, .placement_group = places_, .bundle = rank % 2},
                                   data_, kSeed);
  }

  const std::string data_, checkpoint_;
  const troupe::PlacementGroup places_;
  std::vector<troupe::Actor<Trainer>> ranks_;
};

void Train(const std::string& data, const std::string& checkpoint, bool kill) {
  Training training(data, checkpoint);
  std::int64_t epoch = training.Join();
  for (int failures = 0; epoch <= kEpochs;) {
    try {
      const double loss = training.Epoch(epoch, kill && epoch == 4 && failures == 0);
      std::printf("epoch %2d  loss %.3f  accuracy %.3f\n", static_cast<int>(epoch), loss,
                  training.Accuracy());
      std::fflush(stdout);
      ++epoch;
    } catch (const troupe::Error& error) {
      if (++failures > 3) throw;
      std::cout << "epoch " << epoch << " failed: " << error.what() << "\n";
      epoch = training.Join();
      std::cout << "going on with epoch " << epoch << "\n";
    }
  }
  const double accuracy = training.Accuracy();
  std::printf("test accuracy %.3f on %d ranks\n", accuracy, kRanks);
  if (accuracy < 0.95) throw troupe::Error("the accuracy is below 0.95");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    troupe::Init();  // in a rank's process it serves, and does not return
    if (argc < 3) throw troupe::InvalidError("digits_ddp DIGITS.CSV CHECKPOINT [--kill]");
    Train(argv[1], argv[2], argc > 3 && std::string(argv[3]) == "--kill");
  } catch (const std::exception& error) {
    std::cerr << "digits_ddp: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
