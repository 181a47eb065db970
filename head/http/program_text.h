// Metrics of programs (troupe.util.metrics) and of sweeps as text: those of a program called NAME
// as troupe_app_NAME, or as Ray would call it.
//
// Pure.
#pragma once

#include "head/http/exposition.h"
#include "head/http/totals.h"

namespace troupe::head {

void AddProgramMetrics(Exposition& text, const ProgramMetrics::Families& families);
/// Only those of programs, as ray_NAME.
void AddProgramMetricsAsRay(Exposition& text, const ProgramMetrics::Families& families);

}  // namespace troupe::head
