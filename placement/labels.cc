#include "placement/labels.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace troupe::placement {
namespace {

constexpr std::string_view kAnyValue = "exists()";

struct Term {
  bool negated = false;
  bool malformed = false;
  bool any_value = false;  // then there are no values
  std::vector<std::string_view> values;
};

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Term Parse(std::string_view text) {
  Term term;
  text = Trimmed(text);
  if (!text.empty() && text.front() == '!') {
    term.negated = true;
    text = Trimmed(text.substr(1));
  }
  if (text == kAnyValue) {
    term.any_value = true;
  } else if (text.substr(0, 3) != "in(") {
    term.values.push_back(text);
  } else if (text.back() != ')') {
    term.malformed = true;
  } else {
    text = text.substr(3, text.size() - 4);
    for (std::size_t comma = 0; comma != std::string_view::npos; text.remove_prefix(comma + 1)) {
      comma = text.find(',');
      term.values.push_back(Trimmed(text.substr(0, comma)));
      if (comma == std::string_view::npos) break;
    }
  }
  for (const std::string_view value : term.values) term.malformed = term.malformed || value.empty();
  return term;
}

bool SameText(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

}  // namespace

bool TermHolds(std::string_view text, const std::string* value) {
  const Term term = Parse(text);
  if (term.malformed) return false;
  if (term.any_value) return (value != nullptr) != term.negated;
  const bool among = value != nullptr && std::any_of(term.values.begin(), term.values.end(),
                                                     [value](std::string_view wanted) {
                                                       return SameText(wanted, *value);
                                                     });
  return among != term.negated;
}

std::string MismatchText(const std::string& key, const std::string& term,
                         const std::string* value) {
  if (value == nullptr) return "has no label " + key;
  return key + " is " + *value + (Parse(term).any_value ? "" : ", not " + term);
}

bool Holds(const Selector& selector, const Labels& labels) {
  return std::all_of(selector.begin(), selector.end(), [&labels](const auto& entry) {
    const auto found = labels.find(entry.first);
    return TermHolds(entry.second, found == labels.end() ? nullptr : &found->second);
  });
}

Status CheckSelector(const Selector& selector) {
  for (const auto& [key, term] : selector) {
    if (!key.empty() && !Parse(term).malformed) continue;
    return MakeError(ErrorCode::kInvalid,
                     "label selector {'" + key + "': '" + term +
                         "'}: write a value, !value, in(a,b), !in(a,b), exists() or !exists()");
  }
  return absl::OkStatus();
}

std::string SelectorText(const Selector& selector) {
  std::string out;
  for (const auto& [key, text] : selector) {
    if (!out.empty()) out += ", ";
    const Term term = Parse(text);
    const bool list = term.values.size() != 1 || text.find("in(") != std::string::npos;
    if (term.any_value) {
      out += key + (term.negated ? " missing" : " present");
    } else if (!list && !term.negated) {
      out += key + "=" + text;
    } else if (!list) {
      out += key + "!=" + std::string(term.values[0]);
    } else {
      const std::string_view rest = Trimmed(text);
      out += key + (term.negated ? " not " + std::string(Trimmed(rest.substr(1)))
                                 : " " + std::string(rest));
    }
  }
  return out;
}

}  // namespace troupe::placement
