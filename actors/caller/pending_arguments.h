// Tells who keeps calls with missing arguments that one of them has its answer.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "actors/slots/answer.h"
#include "actors/slots/waiter.h"

namespace troupe::actors {

/// `Keeper::ArgumentHere(number, answer)` is run on the background thread; it is a friend's to call.
template <class Keeper>
class ArgumentDone : public Completion {
 public:
  ArgumentDone(std::shared_ptr<Keeper> keeper, std::uint64_t number, SlotHold answer)
      : keeper_(std::move(keeper)), number_(number), answer_(std::move(answer)) {}
  void Run() override { keeper_->ArgumentHere(number_, *answer_.get()); }

 private:
  const std::shared_ptr<Keeper> keeper_;
  const std::uint64_t number_;
  const SlotHold answer_;
};

}  // namespace troupe::actors
