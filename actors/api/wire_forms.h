// Conversions of a program's C++ values into messages. Throws InvalidError for values that make no
// sense.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/wire/messages.h"

namespace troupe::api {

/// {"CPU": 1, "GPU": 0.5}; zero amounts are left out.
std::vector<wire::Resource> ResourcesOf(const std::map<std::string, double>& amounts);
wire::Strategy StrategyOf(const std::string& name);
wire::Where WhereOf(const std::map<std::string, std::string>& labels);
GroupId GroupIdOf(const std::string& hex);
/// A new id.
template <class Id>
Id NewId();

}  // namespace troupe::api
