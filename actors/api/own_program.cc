#include "actors/api/own_program.h"

#include <troupe/error.h>
#include <unistd.h>

#include <climits>
#include <utility>

namespace troupe::api {

std::string OwnFile() {
  char path[PATH_MAX] = "";
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path - 1);
  if (size < 0) throw Error("this program's own file cannot be found: /proc/self/exe");
  return std::string(path, static_cast<std::size_t>(size));
}

std::string OwnDirectory() {
  char path[PATH_MAX] = "";
  return ::getcwd(path, sizeof path) != nullptr ? path : "";
}

std::vector<wire::EnvVar> VariablesOf(const std::map<std::string, std::string>& env,
                                      const SessionPlace& place) {
  std::map<std::string, std::string> all = env;
  all.emplace("TROUPE_NAMESPACE", place.namespace_);
  all.emplace("TROUPE_JOB_ID", place.job);
  std::vector<wire::EnvVar> variables;
  for (const auto& [name, value] : all) {
    wire::EnvVar each;
    each.name = name;
    each.value = value;
    variables.push_back(std::move(each));
  }
  return variables;
}

}  // namespace troupe::api
