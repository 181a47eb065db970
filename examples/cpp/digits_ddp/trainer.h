// A rank that trains: an actor that holds a torch module. Its header needs no torch.
#pragma once

#include <troupe/troupe.h>

#include <cstdint>
#include <memory>
#include <string>

class Trainer {
 public:
  /// `data`: lines of 64 pixels and a digit; `seed`: of the module, the same on all ranks.
  Trainer(const std::string& data, std::int64_t seed);
  ~Trainer();

  /// Begins, or goes on, as a member of the latest group "digits": from the checkpoint, if there is
  /// one. Returns how many epochs that one has seen.
  std::int64_t Join(const std::string& checkpoint);
  /// Trains on this rank's share of the data; its mean loss. Rank 0 then writes the checkpoint.
  double Epoch(std::int64_t epoch, const std::string& checkpoint);
  /// The share of the held-out digits that all ranks together get right.
  double Accuracy();
  std::int64_t Pid() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
