// Encoded arguments of tasks as actors/tasks/task_pool.h takes them (values.h).
#pragma once

#include "actors/caller/argument_codec.h"

namespace troupe::bindings {

/// The one of this process. Its functions need no GIL.
const actors::ArgumentCodec& TaskArguments();

}  // namespace troupe::bindings
