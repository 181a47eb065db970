// Decisions on certificates: who gets one, and with which identity; signing is not done here
// (decision 18).
//
// A client gets one for itself. A process behind a worker gets one as the actor it is, or as the
// rank, only while this head has that actor or rank on that worker's node: a worker can vouch for
// nothing that was not given to it. The shell signs (Effects::certificates).
#pragma once

#include "head/core/machine/turn.h"

namespace troupe::head {

void OnCertifyProcess(Turn& turn, const Request& request, const wire::CertifyProcess& message);

}  // namespace troupe::head
