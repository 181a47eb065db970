// Labels of nodes, and selectors over them, written as Ray writes them:
//   "v"         is v                   "!v"         is not v
//   "in(a,b)"   is one of these        "!in(a,b)"   is none of these
//   "exists()"  has any value          "!exists()"  there is no such label
// A node without the label holds for the negative forms only. Values compare without regard to
// case. All terms of a selector must hold; the empty one holds for every node. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace troupe::placement {

using Labels = std::map<std::string, std::string>;
/// Label key to term.
using Selector = std::map<std::string, std::string>;

/// Returns true if `term` holds for a label's value; null: the node has no such label. A malformed
/// term holds for none.
bool TermHolds(std::string_view term, const std::string* value);
/// Says why a term does not hold: "has no label gpu_type", "gpu_type is A10, not H100".
std::string MismatchText(const std::string& key, const std::string& term, const std::string* value);
bool Holds(const Selector& selector, const Labels& labels);
/// kInvalid, naming the key, for a term that can never be meant: "", "!", "in()", "in(a", "in(a,)".
Status CheckSelector(const Selector& selector);
/// "gpu_type=H100, zone not in(a,b)"; empty for the empty selector.
std::string SelectorText(const Selector& selector);

}  // namespace troupe::placement
