// Between the wire's lists and placement's amounts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "placement/request.h"
#include "placement/resources.h"
#include "runtime/wire/messages.h"

namespace troupe::head {

placement::Resources FromWire(const std::vector<wire::Resource>& list);
std::vector<wire::Resource> ToWire(const placement::Resources& resources);
placement::Strategy FromWire(wire::Strategy strategy);
/// Returns a shell's exit code for the end: 128 and the signal, or the code.
std::int32_t ExitCodeOf(const wire::Failure& end);
/// Adds where it may go, and what each bundle asks of its node, to a request.
void Restrict(placement::Request& request, const wire::Where& where,
              const std::vector<wire::Bundle>& bundles);
/// Returns the fault, in one line; empty if there is none.
std::string ObjectionTo(const wire::Where& where, const std::vector<wire::Bundle>& bundles);
std::map<std::string, std::string> LabelsFromWire(const std::vector<wire::Label>& list);

}  // namespace troupe::head
