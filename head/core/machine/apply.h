// Apply: the fold that makes the durable state out of events. The only code that writes durable
// members; used live and in replay, so that both give the same state.
//
// Pure, total: an event that does not fit (its subject is unknown) changes nothing.
#pragma once

#include "head/core/machine/state.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

void Apply(State& state, const wire::Event& event);

}  // namespace troupe::head
