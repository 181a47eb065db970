// The id under which a rank of a launch is called as an actor.
//
// Every asker gets an equal one, and every epoch has another, so that a worker, which names its
// ranks in addresses, and the head, which says in their certificates who they are, agree without a
// message. Pure.
#pragma once

#include <cstdint>

#include "runtime/base/ids.h"
#include "runtime/base/random.h"

namespace troupe {

inline ActorId RankActorId(const LaunchId& launch, std::uint64_t epoch, std::uint32_t rank) {
  Prng mix(launch.hi ^ (launch.lo * 0x9E3779B97F4A7C15ull) ^ (epoch << 32) ^ rank);
  return ActorId::Random(mix);
}

}  // namespace troupe
