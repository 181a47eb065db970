// Views of placement groups: the answers to whoever asks for one, lists them, or follows one.
//
// Pure; nothing here changes a group.
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

/// Returns what changes of a group: whoever follows it, or asked for it, knows the rest.
wire::GroupInfo NewsOf(Turn& turn, const Group& group);
/// Tells those who follow it what is new of it.
void PushGroup(Turn& turn, const Group& group);
wire::GroupInfo InfoOf(Turn& turn, const Group& group);

}  // namespace troupe::head
