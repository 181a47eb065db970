// The GPUs of one node that somebody holds and nobody uses: since when, and whether that was told.
//
//   IG-1  A GPU is idle from the first look at which its holder used less than kIdleRatio of it. A
//         look at which it is busy, or held by another or by nobody, ends that. So does a pause of
//         kLookPause without a look: nobody knows what the GPU did meanwhile.
//   IG-2  Each idle time is told of once, when it has lasted so long; the next only after the GPU
//         was busy, or its holder has changed.
//
// Pure; a value. An entry for each GPU that is held and idle, and none else.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/time.h"

namespace troupe::head {

class IdleGpus {
 public:
  /// A GPU below this share, measured each few seconds, does nothing.
  static constexpr double kIdleRatio = 0.05;
  static constexpr Duration kLookPause = std::chrono::seconds(60);

  struct Look {
    std::uint32_t gpu = 0;
    GroupId holder;  // the reservation; nil: nobody's
    double ratio = 0;
  };
  struct Idle {
    std::uint32_t gpu = 0;
    GroupId holder;
    Duration lasts{};
  };

  /// Notes these looks, and returns the GPUs whose idle time has now lasted for `after`.
  std::vector<Idle> See(const std::vector<Look>& looks, Instant now, Duration after);
  /// Returns the GPUs that See has returned and that are idle still.
  std::vector<Idle> Told(Instant now) const;

 private:
  struct Spell {
    GroupId holder;
    Instant since{};
    Instant seen{};
    bool told = false;
  };
  std::map<std::uint32_t, Spell> spells_;  // by GPU
};

}  // namespace troupe::head
