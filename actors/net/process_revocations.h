// The tokens that this process has heard were revoked (runtime/net/revocations.h): by its worker,
// or, in a driver, by the head.
#pragma once

#include "runtime/net/revocations.h"

namespace troupe::actors {

/// Lives as long as the process. A forked child begins with what its parent had heard, and hears
/// anew.
net::Revocations& ProcessRevocations();

}  // namespace troupe::actors
