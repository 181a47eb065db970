// How much memory the objects of this process may take, and where they go beyond it, as its
// environment says.
//
//   TROUPE_OBJECT_STORE_MEMORY         bytes; else half of the machine's memory or of the control
//                                      group's
//   TROUPE_OBJECT_SPILLING_DIRECTORY   a folder on a disk; else /var/tmp or /tmp, where on one;
//                                      "none": nothing goes to disk
#pragma once

#include "runtime/store/pool.h"

namespace troupe::actors {

store::PoolOptions ObjectMemoryOptions();

}  // namespace troupe::actors
