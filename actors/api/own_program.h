// This program, as other processes are started from it. Throws the public headers' errors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "actors/api/session.h"

namespace troupe::api {

/// The path of its file.
std::string OwnFile();
/// Returns the current directory; "" if it was removed.
std::string OwnDirectory();
/// The variables of a process that it starts: `env`, its namespace and job.
std::vector<wire::EnvVar> VariablesOf(const std::map<std::string, std::string>& env,
                                      const SessionPlace& place);

}  // namespace troupe::api
